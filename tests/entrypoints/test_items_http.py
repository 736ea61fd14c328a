"""The routes of knowledge items: what they take and refuse, and what their answers hold."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from knowledge import errors
from knowledge.domain.item import ItemStatus
from knowledge.entrypoints.http import error_json
from tests.api import Answer, done
from tests.entrypoints.functions import Gateway, hashing_embedder, moto_stack
from tests.item_commands import ADMIN, READER, REVIEWER, WRITER, Commands, proposal, word

PLACE = "/items/0123456789abcdef0123456789abcdef"
SETTINGS = {
    "expected_version": 0,
    "auto_extract": True,
    "trigger_mode": "manual_only",
    "min_messages": 4,
    "auto_inject": True,
    "vector_enabled": True,
}
NO_MESSAGES = {name: value for name, value in SETTINGS.items() if name != "min_messages"}
FIELDS = {
    "id", "kind", "title", "content", "tags", "status", "confidence", "reuse_count", "source_ref", "created_by",
    "created_at", "updated_by", "updated_at", "version", "embedding", "file_path",
}  # fmt: skip


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    with moto_stack(), hashing_embedder():
        yield Commands(Gateway())


def call(commands: Commands, method: str, path: str, body: object = None, **query: str) -> Answer:
    return commands.api.call(ADMIN, method, path, body=body, query=query or None)


@pytest.mark.parametrize(
    ("method", "path", "body", "query", "field"),
    [
        ("POST", "/items", proposal(kind="rumour"), {}, "kind"),
        ("POST", "/items", proposal(title=""), {}, "title"),
        ("POST", "/items", proposal() | {"title": 7}, {}, "title"),
        ("POST", "/items", {"kind": "pitfall", "title": "x"}, {}, "content"),
        ("POST", "/items", proposal(content="x" * 20_001), {}, "content"),
        ("POST", "/items", proposal(tags=["a, b"]), {}, "tags"),
        ("POST", "/items", proposal(tags="a"), {}, "tags"),
        ("POST", "/items", proposal(confidence=1.5), {}, "confidence"),
        ("POST", "/items", proposal(confidence="high"), {}, "confidence"),
        ("POST", "/items", proposal(source_ref="a friend"), {}, "source_ref"),
        ("POST", "/items", proposal(status="published"), {}, "status"),
        ("PATCH", PLACE, {"title": "x"}, {}, "expected_version"),
        ("PATCH", PLACE, {"expected_version": "1", "title": "x"}, {}, "expected_version"),
        ("PATCH", PLACE, {"expected_version": 1, "title": None}, {}, "title"),
        ("PATCH", PLACE, {"expected_version": 1, "status": "published"}, {}, "status"),
        ("PATCH", PLACE, {"expected_version": 1, "reuse_count": 9}, {}, "reuse_count"),
        ("POST", f"{PLACE}/status", {"expected_version": 1}, {}, "status"),
        ("POST", f"{PLACE}/status", {"status": "approved", "expected_version": 1}, {}, "status"),
        ("POST", f"{PLACE}/status", {"status": "published"}, {}, "expected_version"),
        ("POST", f"{PLACE}/archive", {}, {}, "expected_version"),
        ("POST", f"{PLACE}/restore", {"expected_version": 1, "status": "published"}, {}, "status"),
        ("POST", f"{PLACE}/reuse", {"count": 9}, {}, "count"),
        ("POST", f"{PLACE}/embedding/retry", {"model": "x"}, {}, "model"),
        ("POST", "/items/inbox/decisions", {"decisions": [{"id": "x"}]}, {}, "decisions.0.status"),
        ("GET", "/items", None, {"colour": "red"}, "colour"),
        ("GET", "/items", None, {"status": "approved"}, "status"),
        ("GET", "/items", None, {"kind": "rumour"}, "kind"),
        ("GET", "/items", None, {"limit": "0"}, "limit"),
        ("GET", "/items", None, {"limit": "101"}, "limit"),
        ("GET", "/items", None, {"limit": "many"}, "limit"),
        ("GET", "/items", None, {"cursor": "garbage"}, "cursor"),
        ("GET", "/items/inbox", None, {"status": "candidate"}, "status"),
        ("GET", PLACE, None, {"version": "1"}, "version"),
        ("GET", f"{PLACE}/timeline", None, {"type": "edited"}, "type"),
        ("GET", "/items/search", None, {"query": "x1", "limit": "21"}, "limit"),
        ("GET", "/items/search", None, {"query": "x1", "cursor": "x"}, "cursor"),
        ("POST", "/context", {}, {}, "query"),
        ("POST", "/context", {"query": "x1", "messages": []}, {}, "query"),
        ("POST", "/context", {"query": "x1", "token_budget": 8001}, {}, "token_budget"),
        ("POST", "/context", {"messages": [{"role": "user"}]}, {}, "messages.0.content"),
        ("GET", "/settings", None, {"version": "1"}, "version"),
        ("PUT", "/settings", NO_MESSAGES, {}, "min_messages"),
        ("PUT", "/settings", SETTINGS | {"min_messages": 0}, {}, "min_messages"),
        ("PUT", "/settings", SETTINGS | {"trigger_mode": "always"}, {}, "trigger_mode"),
        ("PUT", "/settings", SETTINGS | {"auto_extract": "yes"}, {}, "auto_extract"),
        ("PUT", "/settings", SETTINGS | {"theme": "dark"}, {}, "theme"),
    ],
)
def test_what_cannot_be_used_is_a_400_that_names_it(
    commands: Commands, method: str, path: str, body: object, query: dict[str, str], field: str
) -> None:
    answer = call(commands, method, path, body, **query)
    assert (answer.status, answer.body["error"].get("field")) == (400, field), answer
    assert field.rpartition(".")[2] in answer.body["error"]["message"]


def test_an_empty_query_finds_nothing_and_says_so(commands: Commands) -> None:
    answer = call(commands, "GET", "/items/search")
    assert (answer.status, answer.body["error"]["code"]) == (400, "invalid_query")


def test_a_body_that_is_no_json_is_refused(commands: Commands) -> None:
    answer = commands.api.call(WRITER, "POST", "/items", body=proposal(), content_type="text/markdown")
    assert (answer.status, answer.body["error"]["field"]) == (415, "content-type")


@pytest.mark.parametrize("item_id", ["0123456789abcdef0123456789abcdef", "x", "%E6%94%AF", "a" * 2000])
def test_an_item_that_does_not_exist_is_a_404(commands: Commands, item_id: str) -> None:
    body = {"expected_version": 1}
    for method, path, sent in (
        ("GET", "", None),
        ("PATCH", "", body),
        ("POST", "/archive", body),
        ("POST", "/reuse", None),
    ):
        answer = call(commands, method, f"/items/{item_id}{path}", sent)
        assert (answer.status, answer.body["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("status", ItemStatus)
def test_an_item_in_json_says_all_that_is_known_of_it_K1(commands: Commands, status: ItemStatus) -> None:
    item = commands.item(status, title="一课", tags=["支付", " 支付 ", "", "PAY-1"], confidence=1, source_ref="conv:7")
    shown = done(call(commands, "GET", f"/items/{item['id']}"))
    assert shown.keys() == FIELDS | {"similar"}
    assert {name: shown[name] for name in ("title", "tags", "confidence", "source_ref", "created_by", "status")} == {
        "title": "一课",
        "tags": ["支付", "PAY-1"],
        "confidence": 1,
        "source_ref": "conv:7",
        "created_by": WRITER.name,
        "status": status,
    }
    ready = {"state": "ready", "reason": None, "attempts": 0, "next_try_at": None}
    path = f"knowledge_base/pitfall/{item['id']}.md"
    assert (shown["embedding"], shown["file_path"]) == ((ready, path) if status == "published" else (None, None))


def test_what_is_not_in_an_edit_stays_as_it_is(commands: Commands) -> None:
    item = commands.propose(tags=["a1"], confidence=0.25)
    edited = commands.edit(item, WRITER, title="Another title")
    assert {**edited, "version": 1, "title": item["title"], "updated_at": "", "updated_by": ""} == {
        **{name: value for name, value in item.items() if name != "similar"},
        "updated_at": "",
        "updated_by": "",
    }
    assert commands.edit(edited, WRITER, tags=[])["tags"] == []


def test_who_knew_another_version_is_told_the_current_one_if_they_may_see_the_item_K2(commands: Commands) -> None:
    item = commands.item(ItemStatus.PUBLISHED)
    late = {"status": "archived", "expected_version": 2}
    answer = commands.api.call(REVIEWER, "POST", f"/items/{item['id']}/status", body=late)
    error = answer.body["error"]
    assert (answer.status, error["code"], error["current"]) == (
        409,
        "outdated",
        {"version": 3, "status": "published"},
    )
    candidate = commands.propose()
    another = replace(WRITER, name="test-another")
    answer = commands.api.call(another, "PATCH", f"/items/{candidate['id']}", body={"expected_version": 9})
    assert (answer.status, answer.body["error"]) == (404, {"code": "not_found", "message": "no item has this id"})


def test_a_move_that_no_item_makes_is_a_409_that_names_those_it_can_make_K2(commands: Commands) -> None:
    item = commands.propose()
    body = {"status": "published", "expected_version": 1}
    answer = commands.api.call(REVIEWER, "POST", f"/items/{item['id']}/status", body=body)
    assert (answer.status, answer.body["error"]["code"]) == (409, "conflict")
    assert "it can become pending_review, archived" in answer.body["error"]["message"]


def test_publishing_archives_what_it_supersedes_K10(commands: Commands) -> None:
    old, new = commands.item(ItemStatus.PUBLISHED), commands.item(ItemStatus.PENDING_REVIEW)
    published = commands.move(new, "published", supersedes=[old["id"]])
    assert published["status"] == "published"
    assert done(call(commands, "GET", f"/items/{old['id']}"))["status"] == "archived"
    timeline = done(call(commands, "GET", f"/items/{old['id']}/timeline"))["items"]
    assert timeline[-1]["details"]["note"] == f"superseded by {new['id']}"


def test_a_proposal_is_shown_beside_the_published_items_that_it_is_close_to_K10(commands: Commands) -> None:
    mark = word()
    old = commands.item(ItemStatus.PUBLISHED, title=f"Brew {mark}", content=f"Brew {mark} for three minutes.")
    new = commands.propose(title=f"Brew {mark}", content=f"Brew {mark} for four minutes.")
    [similar] = new["similar"]
    assert similar["item"]["id"] == old["id"]
    assert 0.5 < similar["similarity"] <= 1
    assert f"-Brew {mark} for three minutes.\n+Brew {mark} for four minutes." in similar["diff"]
    assert done(call(commands, "GET", f"/items/{new['id']}"))["similar"] == new["similar"]


def test_every_page_of_a_list_is_reached_and_no_item_twice_K3(commands: Commands) -> None:
    kind = "workflow_optimization"
    ids = [commands.propose(kind=kind, confidence=number / 7)["id"] for number in range(7)]
    found: list[str] = []
    query = {"kind": kind, "limit": "3"}
    while query.get("cursor") is not None or not found:
        page = done(call(commands, "GET", "/items/inbox", **query))
        assert page.keys() == {"items", "next_cursor"}
        found += [item["id"] for item in page["items"]]
        query["cursor"] = page["next_cursor"]
    assert found == ids[::-1]
    assert done(call(commands, "GET", "/items", kind=kind)) == {"items": [], "next_cursor": None}


def test_each_decision_of_many_is_answered_as_it_would_be_alone(commands: Commands) -> None:
    item, other = commands.item(ItemStatus.PENDING_REVIEW), commands.propose()
    decisions: list[dict[str, Any]] = [
        {"id": item["id"], "status": "published", "expected_version": 2},
        {"id": other["id"], "status": "published", "expected_version": 1},
        {"id": "nothing", "status": "archived", "expected_version": 1},
    ]
    first, second, third = done(call(commands, "POST", "/items/inbox/decisions", {"decisions": decisions}))["items"]
    assert (first["id"], first["item"]["status"], first["error"]) == (item["id"], "published", None)
    assert (second["item"], second["error"]["code"]) == (None, "conflict")
    assert (third["item"], third["error"]["code"]) == (None, "not_found")
    many = {"decisions": [decisions[2]] * 51}
    assert call(commands, "POST", "/items/inbox/decisions", many).body["error"]["field"] == "decisions"


def test_nobody_sees_anything_of_an_error_that_is_not_ours(caplog: pytest.LogCaptureFixture) -> None:
    shown = error_json(ZeroDivisionError("a secret"))
    assert shown == {"error": {"code": "internal_error", "message": "an unexpected error; it has been logged"}}
    assert "a secret" in caplog.text
    assert error_json(errors.Outdated("late", version=2))["error"]["current"] == {"version": 2}


def test_settings_hold_from_the_next_call_on_and_say_what_embeds_K7(commands: Commands) -> None:
    mark = word()
    commands.item(ItemStatus.PUBLISHED, title=f"About {mark}", content=f"Of {mark}.")

    def ask() -> tuple[bool, str | None]:
        context = done(commands.api.call(READER, "POST", "/context", body={"query": mark}))
        search = done(commands.api.call(READER, "GET", "/items/search", query={"query": mark}))
        return mark in context["text"], search["fallback"]

    before = done(call(commands, "GET", "/settings"))
    assert (before["embedding_provider"], bool(before["embedding_model"]), ask()) == ("local", True, (True, None))
    version = before.pop("version")
    off = before | {"auto_inject": False, "vector_enabled": False, "expected_version": version}
    saved = done(call(commands, "PUT", "/settings", off))
    assert (saved["version"], ask()) == (version + 1, (False, "vectors_off"))
    stale = off | {"auto_inject": True}
    assert call(commands, "PUT", "/settings", stale).body["error"]["current"] == {"version": saved["version"]}
    other = off | {"expected_version": saved["version"], "embedding_provider": "bedrock"}
    refused = call(commands, "PUT", "/settings", other)
    assert (refused.status, "make reindex" in refused.body["error"]["message"]) == (409, True)
    assert done(call(commands, "PUT", "/settings", {**before, "expected_version": saved["version"]}))["auto_inject"]
