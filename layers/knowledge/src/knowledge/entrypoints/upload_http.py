"""`POST /documents` (form or JSON) and `PUT /documents/{category}/{file_name}` (the raw file)."""

import io
from collections.abc import Callable, Sequence
from typing import TypeVar

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEvent
from multipart import MultipartError, parse_form_data

from knowledge.domain.document import DocumentStatus
from knowledge.entrypoints.document_json import document_json
from knowledge.entrypoints.http import (
    JSON,
    Handler,
    RequestModel,
    body_bytes,
    build_http_handler,
    content_type_header,
    content_type_of,
    json_body,
    json_response,
    path_parameters,
    principal_of,
)
from knowledge.errors import InvalidInput, UnsupportedFormat
from knowledge.services.documents import Documents, UploadResult

T = TypeVar("T")
FORM = "multipart/form-data"
RAW = ("text/markdown", "application/octet-stream")


class UploadBody(RequestModel):
    """A document as JSON."""

    category: str
    file_name: str
    content: str


def build_handler(build: Callable[[], Documents], allowed_origin: Callable[[], str]) -> Handler:
    """The upload function's handler."""
    return build_http_handler(_register, build, allowed_origin)


def _register(app: APIGatewayRestResolver, documents: Callable[[], Documents]) -> None:
    @app.post("/documents")
    def post_document() -> Response[str]:
        event = app.current_event
        principal = principal_of(event)
        match content_type_of(event):
            case "multipart/form-data":
                category, file_name, content = _form(event)
            case "" | "application/json":
                body = json_body(event, UploadBody)
                category, file_name = body.category, body.file_name
                content = body.content.encode("utf-8", "surrogatepass")
            case other:
                raise UnsupportedFormat(f"POST takes {FORM} or {JSON}, not {other}", field="content-type")
        result = documents().upload_document(principal, category=category, file_name=file_name, content=content)
        return _answer(result)

    @app.put("/documents/<category>/<file_name>")
    def put_document(category: str, file_name: str) -> Response[str]:
        event = app.current_event
        principal = principal_of(event)
        if content_type_of(event) not in RAW:
            given = content_type_of(event) or "no content type"
            raise UnsupportedFormat(f"PUT takes {' or '.join(RAW)}, not {given}", field="content-type")
        names = path_parameters(event)
        result = documents().upload_document(
            principal, category=names["category"], file_name=names["file_name"], content=body_bytes(event)
        )
        return _answer(result)


def _answer(result: UploadResult) -> Response[str]:
    """201 for a new document, 200 for a replaced one, 202 while its embedding is still to be finished."""
    status = 201 if result.created else 200
    return json_response(
        202 if result.record.status is DocumentStatus.PENDING else status, document_json(result.record)
    )


def _form(event: APIGatewayProxyEvent) -> tuple[str, str, bytes]:
    body = body_bytes(event)
    environ = {
        "REQUEST_METHOD": "POST",
        "CONTENT_TYPE": content_type_header(event),
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }
    try:
        fields, files = parse_form_data(environ, strict=True, memory_limit=len(body) + 1, memfile_limit=len(body) + 1)
        category = _only(fields.getall("category"), "category", "-F category=api")
    except MultipartError as error:
        raise InvalidInput("the form cannot be read: it is not valid multipart/form-data", field="body") from error
    except UnicodeDecodeError as error:
        raise InvalidInput("the form's category is not UTF-8", field="category") from error
    file = _only(files.getall("file"), "file", "-F file=@name.md")
    if not file.filename:
        raise InvalidInput("the form's file has no name: send it as -F file=@name.md", field="file")
    return category, file.filename, file.raw


def _only(parts: Sequence[T], name: str, example: str) -> T:
    if len(parts) != 1:
        problem = f"has {len(parts)} parts {name!r}; one document is taken at a time" if parts else f"has no {name}"
        raise InvalidInput(f"the form {problem}: send it as {example}", field=name)
    return parts[0]
