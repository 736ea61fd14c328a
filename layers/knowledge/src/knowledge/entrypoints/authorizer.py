"""The gateway's Lambda authorizer: a bearer token in, a policy and the caller's name and role out."""

import functools
from collections.abc import Callable
from typing import Any

from knowledge.errors import NotAuthenticated
from knowledge.services.authentication import Authentication


class Unauthorized(Exception):
    """Makes the gateway answer 401. Source: API Gateway developer guide, "Output from a Lambda authorizer"."""

    def __init__(self) -> None:
        super().__init__("Unauthorized")


def build_handler(build: Callable[[], Authentication]) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """The authorizer's handler; `build` makes the service once."""
    service = functools.cache(build)

    def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
        scheme, _, token = str(event.get("authorizationToken", "")).strip().partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthorized
        try:
            principal = service().authenticate(token.strip())
        except NotAuthenticated as error:
            raise Unauthorized from error
        return {
            "principalId": principal.name,
            "policyDocument": {
                "Version": "2012-10-17",
                "Statement": [
                    {"Action": "execute-api:Invoke", "Effect": "Allow", "Resource": _every_route(event["methodArn"])}
                ],
            },
            "context": {"actor": principal.name, "role": principal.role.value},
        }

    return handler


def _every_route(method_arn: str) -> str:
    """The whole stage: the gateway caches this policy by token and uses it for other routes too."""
    api, stage = method_arn.split("/")[:2]
    return f"{api}/{stage}/*"
