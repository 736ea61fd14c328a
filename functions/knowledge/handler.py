"""Knowledge items: propose, decide, search, context, settings."""

from knowledge import bootstrap
from knowledge.entrypoints.items_http import build_handler

handler = build_handler(bootstrap.knowledge_services, bootstrap.allowed_origin)
