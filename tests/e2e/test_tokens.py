"""Tokens as the command makes and ends them, and what the deployed gateway thinks of them how soon."""

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import httpx
import pytest

from knowledge import bootstrap
from knowledge.domain.access import Role
from knowledge.errors import NotFound
from knowledge.services.tokens import Tokens
from tests.e2e.conftest import LOCAL, Stack

pytestmark = pytest.mark.e2e

# Source: template.yaml, `ReauthorizeEvery`; docs/operations.md states it.
REAUTHORIZED_AFTER_S = 30
# Of the token that expires during the test.
LIFETIME = timedelta(seconds=2)
UPLOAD = {"category": "e2e", "file_name": "refused.md", "content": "x"}


class Callers:
    """Tokens of names that nobody else has."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.names: list[str] = []

    def create(self, role: Role = Role.READER, lifetime: timedelta | None = None) -> tuple[str, str]:
        """A name and its token."""
        self.names.append(f"e2e-{uuid4().hex}")
        return self.names[-1], self.tokens.create(self.names[-1], role, lifetime).secret


@pytest.fixture
def callers(stack: Stack) -> Iterator[Callers]:
    callers = Callers(bootstrap.tokens(json.loads((LOCAL / "outputs.json").read_text())["TableName"]))
    yield callers
    for name in callers.names:
        try:
            callers.tokens.revoke(name)
        except NotFound:
            continue


def call(stack: Stack, secret: str, method: str = "GET", path: str = "/documents", **options: object) -> httpx.Response:
    headers = {"Authorization": f"Bearer {secret}", "Origin": "https://console.example.com"}
    url = str(stack.api.base_url).rstrip("/") + path
    return httpx.request(method, url, headers=headers, timeout=30.0, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("role", "method", "path", "needed"),
    [
        (Role.READER, "POST", "/documents", "writer"),
        (Role.READER, "DELETE", "/documents/abc", "reviewer"),
        (Role.WRITER, "DELETE", "/documents/abc", "reviewer"),
    ],
)
def test_a_new_token_is_good_at_once_and_what_its_role_may_not_do_names_the_role_needed(
    stack: Stack, callers: Callers, role: Role, method: str, path: str, needed: str
) -> None:
    name, secret = callers.create(role)
    assert call(stack, secret).status_code == 200
    refused = call(stack, secret, method, path, json=UPLOAD)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_permitted")
    assert f"the role {needed} is needed" in refused.json()["error"]["message"]
    assert f"{name!r} has the role {role}" in refused.json()["error"]["message"]
    assert refused.headers["access-control-allow-origin"] == "*"


def test_a_token_that_was_revoked_or_rotated_or_has_expired_is_refused_within_the_time_that_is_stated(
    stack: Stack, callers: Callers
) -> None:
    revoked, rotated, overlapping = (callers.create() for _ in range(3))
    _, expiring = callers.create(lifetime=LIFETIME)
    watched = {"revoked": revoked[1], "rotated": rotated[1], "expired": expiring}
    for secret in (*watched.values(), overlapping[1]):
        assert call(stack, secret).status_code == 200, "and the gateway keeps that"
    callers.tokens.revoke(revoked[0])
    new = callers.tokens.rotate(rotated[0], grace=timedelta(0)).secret
    beside = callers.tokens.rotate(overlapping[0], grace=timedelta(hours=1)).secret
    ended = time.monotonic() + LIFETIME.total_seconds()
    last_good_s = dict.fromkeys(watched, 0.0)
    while time.monotonic() - ended < REAUTHORIZED_AFTER_S + 1:
        for how, secret in watched.items():
            asked_s = time.monotonic() - ended
            if call(stack, secret).status_code == 200:
                last_good_s[how] = asked_s
        time.sleep(0.1)
    print({how: round(seconds, 1) for how, seconds in last_good_s.items()})
    assert max(last_good_s.values()) <= REAUTHORIZED_AFTER_S
    for secret in watched.values():
        assert call(stack, secret).status_code == 401
    for secret in (new, overlapping[1], beside):
        assert call(stack, secret).status_code == 200
