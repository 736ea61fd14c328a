"""POST /documents and PUT /documents/{category}/{file_name}."""

from knowledge import bootstrap
from knowledge.entrypoints.upload_http import build_handler

handler = build_handler(bootstrap.documents, bootstrap.allowed_origin)
