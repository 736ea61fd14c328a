"""HTTP as API Gateway speaks it: the caller, the body, the errors. Knows no use case."""

import base64
import binascii
import functools
import json
import logging
import time
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote, unquote

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEvent
from pydantic import BaseModel, ConfigDict, ValidationError

from knowledge.domain.access import Principal, Role
from knowledge.errors import (
    Conflict,
    CorruptState,
    DependencyUnavailable,
    InvalidInput,
    KnowledgeError,
    NotAuthenticated,
    NotFound,
    NotPermitted,
    Outdated,
    TooLarge,
    UnsupportedFormat,
)

_logger = logging.getLogger(__name__)

S = TypeVar("S")
M = TypeVar("M", bound="RequestModel")
Handler = Callable[[dict[str, Any], Any], dict[str, Any]]
JSON = "application/json"
# What a page may read beside the body. Source: Fetch standard, "CORS-safelisted response-header name": the others.
_EXPOSED = {"Access-Control-Expose-Headers": ["Retry-After, WWW-Authenticate"]}

# The nearest class in the exception's ancestry decides. Source: RFC 9110, section 15.
STATUS_BY_ERROR: dict[type[KnowledgeError], int] = {
    InvalidInput: 400,
    TooLarge: 413,
    UnsupportedFormat: 415,
    NotAuthenticated: 401,
    NotPermitted: 403,
    NotFound: 404,
    Conflict: 409,
    CorruptState: 500,
    DependencyUnavailable: 503,
    KnowledgeError: 500,
}


class RequestModel(BaseModel):
    """A JSON body: no coercion, nothing unknown."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def build_http_handler(
    register: Callable[[APIGatewayRestResolver, Callable[[], S]], None],
    build: Callable[[], S],
    allowed_origin: Callable[[], str],
) -> Handler:
    """A Lambda handler for the routes that `register` adds; `build` makes the services once, on the first request.

    Every answer says that pages of `allowed_origin` may read it in a browser. The gateway answers OPTIONS by itself.
    """
    app = APIGatewayRestResolver(strip_prefixes=[])
    register(app, functools.cache(build))
    app.exception_handler(KnowledgeError)(_error_response)
    app.exception_handler(Exception)(_unexpected)
    app.not_found(_no_route)
    origin = functools.cache(allowed_origin)

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        started = time.perf_counter()
        answer = app.resolve({**event, "path": _routable_path(event)}, context)
        answer["multiValueHeaders"] |= {"Access-Control-Allow-Origin": [origin()], **_EXPOSED}
        _logger.info(
            "request_handled",
            extra={
                "method": event.get("httpMethod"),
                "path": event.get("path"),
                "status": answer["statusCode"],
                "elapsed_ms": round((time.perf_counter() - started) * 1000, 1),
            },
        )
        return answer

    return handler


def json_response(status: int, body: object, headers: dict[str, str] | None = None) -> Response[str]:
    """A JSON answer, not ASCII-escaped: Chinese text is three bytes a character, not six."""
    return Response(status, JSON, json.dumps(body, ensure_ascii=False), headers=dict(headers or {}))


def error_body(code: str, message: str, **more: object) -> dict[str, Any]:
    """The one shape of every error; of `more`, such as the `field`, what is not None is in it too."""
    known = {name: value for name, value in more.items() if value is not None}
    return {"error": {"code": code, "message": message, **known}}


def error_json(error: Exception) -> dict[str, Any]:
    """The body for `error`; with `current`, the version and perhaps the status, where the caller knew another one.

    Of an error that is not ours the caller sees nothing; the log gets the traceback.
    """
    if not isinstance(error, KnowledgeError):
        _logger.error("request_failed", exc_info=error)
        return error_body("internal_error", "an unexpected error; it has been logged")
    current = None
    if isinstance(error, Outdated):
        current = {"version": error.version, **({"status": error.status} if error.status else {})}
    return error_body(error.code, str(error), field=getattr(error, "field", None), current=current)


def status_for(error: type[KnowledgeError]) -> int:
    """The HTTP status of an error class."""
    return next(STATUS_BY_ERROR[cls] for cls in error.__mro__ if cls in STATUS_BY_ERROR)


def principal_of(event: APIGatewayProxyEvent) -> Principal:
    """The caller as the authorizer put it into the request context. Raises NotAuthenticated when it did not."""
    authorizer = (event.get("requestContext") or {}).get("authorizer") or {}
    try:
        return Principal(authorizer["actor"], Role(authorizer["role"]))
    except (KeyError, ValueError) as error:
        raise NotAuthenticated("a known token with at least the role reader is needed") from error


def path_parameters(event: APIGatewayProxyEvent) -> dict[str, str]:
    """The variables of the path, decoded once: a REST API passes them on as they were sent, percent-encoded."""
    return {name: unquote(value) for name, value in (event.get("pathParameters") or {}).items()}


def body_bytes(event: APIGatewayProxyEvent) -> bytes:
    """The request's body as it was sent. Raises InvalidInput for a body that is not the base64 it claims to be."""
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return str(body).encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("the body is not valid base64", field="body") from error


def content_type_of(event: APIGatewayProxyEvent) -> str:
    """The media type in lower case without parameters; empty when there is none."""
    return content_type_header(event).partition(";")[0].strip().lower()


def content_type_header(event: APIGatewayProxyEvent) -> str:
    """The whole Content-Type header; empty when there is none."""
    headers = event.get("headers") or {}
    return next((str(value) for name, value in headers.items() if name.lower() == "content-type"), "")


def json_body(event: APIGatewayProxyEvent, model: type[M]) -> M:
    """The body as `model`.

    Raises:
        UnsupportedFormat: the content type is not JSON.
        InvalidInput: not JSON, a repeated key, or a field that is missing, unknown or of the wrong type; named.
    """
    if content_type_of(event) not in ("", JSON):
        raise UnsupportedFormat(f"the body must be {JSON}, not {content_type_of(event)}", field="content-type")
    try:
        value = json.loads(
            body_bytes(event).decode("utf-8"), object_pairs_hook=_unrepeated, parse_constant=_no_constant
        )
    except UnicodeDecodeError as error:
        raise InvalidInput("the body is not UTF-8", field="body") from error
    except json.JSONDecodeError as error:
        message = f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise InvalidInput(message, field="body") from error
    except RecursionError as error:
        raise InvalidInput("the body is nested too deeply", field="body") from error
    except ValueError as error:  # a number of more digits than Python reads
        raise InvalidInput("the body holds a number that is too long", field="body") from error
    return validated(model, value)


def optional_json_body(event: APIGatewayProxyEvent, model: type[M]) -> M:
    """As `json_body`; no body at all is one without fields."""
    return json_body(event, model) if event.get("body") else validated(model, {})


def validated(model: type[M], value: object) -> M:
    """`value` as `model`. Raises InvalidInput naming the first field that does not fit."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "body"
        raise InvalidInput(f"{field}: {first['msg']}", field=field) from error


def _routable_path(event: dict[str, Any]) -> str:
    """The route that the gateway matched, its variables percent-encoded, whatever form it passes the path on in."""
    path = str(event.get("resource") or event.get("path"))
    for name, value in (event.get("pathParameters") or {}).items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    return path


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(f"the key {repeated!r} is repeated", field="body")
    return value


def _no_constant(name: str) -> NoReturn:
    raise InvalidInput(f"{name} is not a JSON number", field="body")


def _error_response(error: KnowledgeError) -> Response[str]:
    status = status_for(type(error))
    if status >= 500:
        _logger.error("request_refused", extra={"error_code": error.code, "reason": str(error)})
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if status == 503:
        headers["Retry-After"] = "2"
    return json_response(status, error_json(error), headers)


def _unexpected(error: Exception) -> Response[str]:
    """The outermost place."""
    return json_response(500, error_json(error))


def _no_route(_: NotFoundError) -> Response[str]:
    return json_response(404, error_body("no_such_route", "no such path, or not with this method"))
