"""`DELETE /documents/{doc_id}`."""

from collections.abc import Callable

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response

from knowledge.domain.document import DocId
from knowledge.entrypoints.http import Handler, build_http_handler, json_response, principal_of
from knowledge.services.documents import Documents


def build_handler(build: Callable[[], Documents], allowed_origin: Callable[[], str]) -> Handler:
    """The delete function's handler."""
    return build_http_handler(_register, build, allowed_origin)


def _register(app: APIGatewayRestResolver, documents: Callable[[], Documents]) -> None:
    @app.delete("/documents/<doc_id>")
    def delete_document(doc_id: str) -> Response[str]:
        record = documents().delete_document(principal_of(app.current_event), DocId(doc_id))
        return json_response(200, {"doc_id": record.doc_id, "file_path": record.file_path, "deleted": True})
