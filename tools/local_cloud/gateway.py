"""Stands in front of ministack, in its process, and lets requests look as they do in AWS. Started by `ministack`."""

from collections.abc import Awaitable, Callable
from typing import Any

from ministack.app import app as ministack

Message = dict[str, Any]


async def app(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """An ASGI application: ministack, with two differences."""
    if scope["type"] == "http":
        # Policies demand TLS. Here nothing leaves the machine; the header says what a load balancer would.
        scope = scope | {"headers": [*scope["headers"], (b"x-forwarded-proto", b"https")]}
        if scope["path"].startswith("/_aws/execute-api/"):
            # A REST API hands the path and its parameters to the function as they were sent, percent signs and all;
            # ministack would decode them.
            scope["path"] = scope["raw_path"].decode("ascii")
    await ministack(scope, receive, send)
