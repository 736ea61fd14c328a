"""Who is let in, and what is told to whoever is not or asks for nonsense."""

import json
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Stack, eventually
from tests.routes import Route, routes

pytestmark = pytest.mark.e2e

ORIGIN = {"Origin": "https://console.example.com"}
each_route = pytest.mark.parametrize("route", routes(), ids=str)
each_closed_route = pytest.mark.parametrize("route", [route for route in routes() if not route.is_open], ids=str)


def without_token(stack: Stack, route: Route, method: str | None = None, **headers: str) -> httpx.Response:
    """The answer to whoever sends only these headers."""
    url = str(stack.api.base_url).rstrip("/") + route.url
    return httpx.request(method or route.method, url, headers=headers, timeout=30.0)


def is_refused(answer: httpx.Response) -> bool:
    """True for the gateway's 401, as a browser may read it; fails where it does not say what is needed."""
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "at least the role reader is needed" in answer.json()["error"]["message"]
    return answer.status_code == 401


@each_closed_route
def test_nothing_but_health_answers_without_a_token_and_each_says_which_role_is_needed_F03(
    stack: Stack, route: Route
) -> None:
    assert is_refused(without_token(stack, route, **ORIGIN))


# Of one route: each of them ends a process of the local cloud's authorizer, which refuses by an error.
@pytest.mark.parametrize("authorization", ["Bearer wrong", "Bearer", "Basic abc", "nonsense"])
def test_what_is_no_known_token_is_none(stack: Stack, authorization: str) -> None:
    [route] = [route for route in routes() if str(route) == "POST /lookup"]
    assert is_refused(without_token(stack, route, Authorization=authorization, **ORIGIN))


def test_health_answers_everybody(stack: Stack) -> None:
    [health] = [route for route in routes() if route.is_open]
    answer = without_token(stack, health)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("asked", [{}, {"Access-Control-Request-Headers": "authorization,content-type"}])
@each_route
def test_a_browser_that_asks_first_may_call_every_route_F03(stack: Stack, route: Route, asked: dict[str, str]) -> None:
    answer = without_token(
        stack, route, "OPTIONS", **ORIGIN, **asked, **{"Access-Control-Request-Method": route.method}
    )
    assert answer.is_success
    assert answer.headers["access-control-allow-origin"] == "*"
    assert route.method in answer.headers["access-control-allow-methods"].split(",")
    allowed = answer.headers["access-control-allow-headers"].lower().split(",")
    assert {"authorization", "content-type"} <= set(allowed)


@each_route
def test_a_browser_may_read_what_every_route_answers_F03(stack: Stack, route: Route) -> None:
    answer = stack.api.request(route.method, route.url, headers=ORIGIN)
    assert answer.status_code != 401
    assert answer.headers["access-control-allow-origin"] == "*"


def test_a_browser_may_read_a_document_for_which_it_is_sent_on_to_the_bucket_F03(stack: Stack) -> None:
    key = "knowledge_base/e2e-large/dropped.md"
    stack.drop(key, b"x" * 3_000_000)
    document = eventually(lambda: stack.document_at(key))
    sent_on = stack.api.get(f"/documents/{document['doc_id']}/content", headers=ORIGIN)
    assert (sent_on.status_code, sent_on.headers["access-control-allow-origin"]) == (303, "*")
    # Source: Fetch standard, "HTTP-redirect fetch": after a redirect to another host the request comes from no origin.
    answer = httpx.get(sent_on.headers["location"], headers={"Origin": "null"}, timeout=30.0)
    assert (answer.status_code, len(answer.content)) == (200, 3_000_000)
    assert answer.headers["access-control-allow-origin"] == "*"
    # Too large to be indexed, it would stay FAILED, and other tests look at all documents.
    stack.s3.delete_object(Bucket=stack.bucket, Key=key)
    eventually(lambda: stack.document_at(key) is None)


def form(name: str, content: bytes, category: str = "e2e-bad") -> dict[str, Any]:
    return {"data": {"category": category}, "files": {"file": (name, content, "text/markdown")}}


BAD: list[tuple[str, str, dict[str, Any], int]] = [
    ("POST", "/lookup", {"content": "{bad", "headers": {"Content-Type": "application/json"}}, 400),
    ("POST", "/lookup", {"content": "", "headers": {"Content-Type": "application/json"}}, 400),
    ("POST", "/lookup", {"json": [1]}, 400),
    ("POST", "/lookup", {"json": {"query": 5}}, 400),
    ("POST", "/lookup", {"json": {"query": "  "}}, 400),
    ("POST", "/lookup", {"json": {"query": "x" * 3_000_000}}, 400),
    ("POST", "/lookup", {"json": {}}, 400),
    ("POST", "/lookup", {"json": {"query": "x", "colour": "red"}}, 400),
    ("POST", "/lookup", {"content": "x", "headers": {"Content-Type": "text/plain"}}, 415),
    ("GET", "/lookup", {}, 400),
    ("GET", "/documents", {"params": {"limit": "many"}}, 400),
    ("GET", "/documents", {"params": {"cursor": "garbage"}}, 400),
    ("GET", "/documents", {"params": {"status": "LOST"}}, 400),
    ("GET", "/documents/nosuchdocument", {}, 404),
    ("GET", "/documents/nosuchdocument/content", {}, 404),
    ("DELETE", "/documents/nosuchdocument", {}, 404),
    ("POST", "/documents", form("notes.txt", b"x"), 415),
    ("POST", "/documents", form("report.docx", b"x"), 415),
    ("POST", "/documents", form("../../_index/x.md", b"x"), 400),
    ("POST", "/documents", form("x.md", b"x", category="../.."), 400),
    ("POST", "/documents", form("x.md", b"caf\xe9"), 415),
    ("POST", "/documents", form("x.md", b"x" * 1_100_000), 413),
    ("POST", "/documents", {"content": b"no form", "headers": {"Content-Type": "multipart/form-data"}}, 400),
    ("PUT", "/documents/e2e-bad/x.md", {"content": b"x", "headers": {"Content-Type": "application/pdf"}}, 415),
    ("PUT", "/documents/e2e-bad/a%5C..%5Cb.md", {"content": b"x", "headers": {"Content-Type": "text/markdown"}}, 400),
    ("GET", "/nowhere", {}, 404),
    ("PATCH", "/lookup", {}, 404),
    ("DELETE", "/documents", {}, 404),
]


@pytest.mark.parametrize(("method", "path", "request_", "status"), BAD)
def test_a_bad_request_is_a_4xx_in_json_that_names_the_problem_and_changes_nothing(
    stack: Stack, method: str, path: str, request_: dict[str, Any], status: int
) -> None:
    before = list_of_documents(stack)
    answer = stack.api.request(method, path, **request_)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.json()["error"]["message"]
    assert list_of_documents(stack) == before


def list_of_documents(stack: Stack) -> list[str]:
    documents = stack.api.get("/documents", params={"limit": "100"}).json()["documents"]
    return [json.dumps(document) for document in documents if "dropped" not in document["file_path"]]
