"""Who is let in, and what is told to whoever is not or asks for nonsense."""

import json
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Stack

pytestmark = pytest.mark.e2e

ROUTES = [
    ("POST", "/documents"),
    ("PUT", "/documents/api/x.md"),
    ("GET", "/documents"),
    ("GET", "/documents/abc"),
    ("GET", "/documents/abc/content"),
    ("DELETE", "/documents/abc"),
    ("POST", "/lookup"),
    ("GET", "/lookup?query=x"),
]


@pytest.mark.parametrize("authorization", [None, "Bearer wrong", "Bearer", "Basic abc", "nonsense"])
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_nothing_but_health_answers_without_a_known_token(
    stack: Stack, method: str, path: str, authorization: str | None
) -> None:
    headers = {"Authorization": authorization} if authorization is not None else {}
    base = str(stack.api.base_url).rstrip("/")
    answer = httpx.request(method, base + path, headers=headers, timeout=30.0)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"]["message"]


def test_health_answers_everybody(stack: Stack) -> None:
    answer = httpx.get(str(stack.api.base_url).rstrip("/") + "/health", timeout=30.0)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


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
    assert answer.json()["error"]["message"]
    assert list_of_documents(stack) == before


def list_of_documents(stack: Stack) -> list[str]:
    documents = stack.api.get("/documents", params={"limit": "100"}).json()["documents"]
    return [json.dumps(document) for document in documents if "dropped" not in document["file_path"]]
