"""DELETE /documents/{doc_id}."""

from knowledge import bootstrap
from knowledge.entrypoints.delete_http import build_handler

handler = build_handler(bootstrap.documents, bootstrap.allowed_origin)
