"""Follows the bucket's events through the queue."""

from knowledge import bootstrap
from knowledge.entrypoints.s3_events import build_handler

handler = build_handler(bootstrap.indexer)
