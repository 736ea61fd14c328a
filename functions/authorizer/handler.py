"""Knows callers by their bearer token."""

from knowledge import bootstrap
from knowledge.entrypoints.authorizer import build_handler

handler = build_handler(bootstrap.authentication)
