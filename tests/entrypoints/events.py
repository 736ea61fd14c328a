"""API Gateway events, as the REST API's proxy integration sends them."""

import base64
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

CALLER = {"principalId": "tester", "actor": "tester", "role": "admin"}


def everybody() -> str:
    """Whose pages may read the answers."""
    return "*"


@dataclass(frozen=True)
class Context:
    """What handlers read of the Lambda context."""

    function_name: str = "function"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:eu-west-1:111122223333:function:function"
    aws_request_id: str = "5f4a1c9e-0000-4000-8000-000000000000"
    remaining_ms: int = 28_000

    def get_remaining_time_in_millis(self) -> int:
        """Time left."""
        return self.remaining_ms


def api_event(
    method: str,
    path: str,
    *,
    body: str | bytes | None = None,
    content_type: str | None = None,
    query: dict[str, str] | None = None,
    path_parameters: dict[str, str] | None = None,
    authorizer: dict[str, Any] | None = CALLER,
    is_base64: bool | None = None,
) -> dict[str, Any]:
    """One request; a body given as bytes arrives in base64, as binary media types do, path and variables encoded."""
    encoded = isinstance(body, bytes) if is_base64 is None else is_base64
    text = base64.b64encode(body).decode() if isinstance(body, bytes) else body
    resource = path
    for name, value in (path_parameters or {}).items():
        resource = resource.replace(f"/{value}", f"/{{{name}}}", 1)
    return {
        "resource": resource,
        "path": quote(path),
        "httpMethod": method,
        "headers": {"content-type": content_type} if content_type else {},
        "multiValueHeaders": {},
        "queryStringParameters": query,
        "multiValueQueryStringParameters": {name: [value] for name, value in query.items()} if query else None,
        "pathParameters": {name: quote(value, safe="") for name, value in (path_parameters or {}).items()} or None,
        "requestContext": {"requestId": "r", "authorizer": authorizer, "httpMethod": method, "stage": "v1"},
        "body": text,
        "isBase64Encoded": encoded,
    }


def json_event(method: str, path: str, value: object, **options: Any) -> dict[str, Any]:
    """A request with a JSON body."""
    return api_event(method, path, body=json.dumps(value), content_type="application/json", **options)


def form_event(fields: dict[str, str], file: tuple[str, bytes] | None, **options: Any) -> dict[str, Any]:
    """`POST /documents` as curl -F sends it."""
    boundary = "------------------------d74496d66958873e"
    parts = [f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}'.encode() for name, value in fields.items()]
    if file is not None:
        head = (
            f'Content-Disposition: form-data; name="file"; filename="{file[0]}"\r\nContent-Type: text/markdown\r\n\r\n'
        )
        parts.append(head.encode() + file[1])
    body = b"".join(b"--" + boundary.encode() + b"\r\n" + part + b"\r\n" for part in parts)
    body += b"--" + boundary.encode() + b"--\r\n"
    return api_event(
        "POST", "/documents", body=body, content_type=f"multipart/form-data; boundary={boundary}", **options
    )
