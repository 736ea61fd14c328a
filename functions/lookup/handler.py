"""Lookups, reads of documents, health."""

from knowledge import bootstrap
from knowledge.entrypoints.read_http import build_handler

handler = build_handler(bootstrap.read_services, bootstrap.allowed_origin)
