"""Who may what: a case for each kind of request, and the table of docs/api.md that says for whom it is."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from knowledge.domain.access import Principal, Role
from knowledge.domain.item import ItemStatus
from tests.architecture.test_docs import API
from tests.item_commands import CALLERS, REVIEWER, WRITER, Commands, proposal, word
from tests.routes import Route

Request = tuple[str, dict[str, Any]]
"""A path, and what else `Api.call` takes."""
CANDIDATE, PENDING, PUBLISHED, ARCHIVED = ItemStatus
UNPUBLISHED = (CANDIDATE, PENDING, ARCHIVED)
ITEM = "/items/{item_id}"
CATEGORY = "access"
"""Of all documents that the cases leave."""
DOCUMENT = {"category": CATEGORY, "file_name": "a.md", "content": "text"}
# Who may not see an item is told that there is none; before that, who may do so with no item at all.
HIDDEN = {Role.READER: 404, Role.WRITER: 404}
HIDDEN_IF_WRITER = {Role.WRITER: 404}


@dataclass(frozen=True)
class Case:
    """One kind of request to a route, and the least role that it is for."""

    route: str
    needs: Role | None
    request: Callable[[Commands, Principal], Request]
    what: str = ""
    refused: dict[Role, int] = field(default_factory=dict)
    """Of roles that are not enough those that are told something else than 403."""

    def __str__(self) -> str:
        return f"{self.route} {self.what}".strip()


def static(path: str, **options: Any) -> Callable[[Commands, Principal], Request]:
    return lambda commands, caller: (path, options)


def an_item(
    path: str, status: ItemStatus, body: Callable[[Any], object] | None = None, *, own: bool = False
) -> Callable[[Commands, Principal], Request]:
    """A request for a new item of that status, proposed by somebody else unless it is the caller's `own`."""

    def request(commands: Commands, caller: Principal) -> Request:
        item = commands.item(status, caller if own else Principal("test-another", Role.WRITER))
        return path.format(item_id=item["id"]), {"body": body(item) if body else None}

    return request


def version(item: Any) -> dict[str, Any]:
    return {"expected_version": item["version"]}


def to(status: str) -> Callable[[Any], dict[str, Any]]:
    return lambda item: {"status": status, **version(item)}


def a_move(before: ItemStatus, after: str, *, own: bool = False) -> Callable[[Commands, Principal], Request]:
    return an_item(f"{ITEM}/status", before, to(after), own=own)


def a_search(status: str) -> Callable[[Commands, Principal], Request]:
    return static("/items/search", query={"query": "lesson", "status": status})


def a_document(method_path: str = "/documents/{doc_id}") -> Callable[[Commands, Principal], Request]:
    def request(commands: Commands, caller: Principal) -> Request:
        body = {**DOCUMENT, "file_name": f"{word()}.md"}
        answer = commands.api.call(WRITER, "POST", "/documents", body=body)
        return method_path.format(doc_id=answer.body["doc_id"]), {}

    return request


def settings(commands: Commands, caller: Principal) -> Request:
    current = commands.api.call(REVIEWER, "GET", "/settings").body
    expected = {"expected_version": current.pop("version")}
    return "/settings", {"body": current | expected}


def decisions(commands: Commands, caller: Principal) -> Request:
    item = commands.item(ItemStatus.CANDIDATE)
    return "/items/inbox/decisions", {"body": {"decisions": [{"id": item["id"], **to("archived")(item)}]}}


def raw_file(commands: Commands, caller: Principal) -> Request:
    return f"/documents/{CATEGORY}/{word()}.md", {"body": {}, "content_type": "text/markdown"}


CASES = [
    Case("GET /health", None, static("/health")),
    Case("GET /lookup", Role.READER, static("/lookup", query={"query": "x1"})),
    Case("POST /lookup", Role.READER, static("/lookup", body={"query": "x1"})),
    Case("POST /documents", Role.WRITER, static("/documents", body=DOCUMENT)),
    Case("PUT /documents/{category}/{file_name}", Role.WRITER, raw_file),
    Case("GET /documents", Role.READER, static("/documents")),
    Case("GET /documents/{doc_id}", Role.READER, a_document()),
    Case("GET /documents/{doc_id}/content", Role.READER, a_document("/documents/{doc_id}/content")),
    Case("DELETE /documents/{doc_id}", Role.REVIEWER, a_document()),
    Case("GET /items", Role.READER, static("/items")),
    Case("GET /items", Role.READER, static("/items", query={"status": "published"}), "published"),
    *(Case("GET /items", Role.REVIEWER, static("/items", query={"status": one}), one) for one in UNPUBLISHED),
    Case("POST /items", Role.WRITER, static("/items", body=proposal())),
    Case("GET /items/{item_id}", Role.READER, an_item(ITEM, PUBLISHED), "published"),
    *(Case("GET /items/{item_id}", Role.REVIEWER, an_item(ITEM, one, own=True), one, HIDDEN) for one in UNPUBLISHED),
    Case("PATCH /items/{item_id}", Role.WRITER, an_item(ITEM, CANDIDATE, version, own=True), "own"),
    Case("PATCH /items/{item_id}", Role.REVIEWER, an_item(ITEM, CANDIDATE, version), "another's", HIDDEN_IF_WRITER),
    Case(
        "PATCH /items/{item_id}", Role.REVIEWER, an_item(ITEM, PENDING, version, own=True), "sent in", HIDDEN_IF_WRITER
    ),
    Case("PATCH /items/{item_id}", Role.REVIEWER, an_item(ITEM, PUBLISHED, version), "published"),
    Case("POST /items/{item_id}/status", Role.WRITER, a_move(CANDIDATE, "pending_review", own=True), "submit own"),
    Case(
        "POST /items/{item_id}/status", Role.REVIEWER, a_move(CANDIDATE, "pending_review"), "submit", HIDDEN_IF_WRITER
    ),
    Case("POST /items/{item_id}/status", Role.REVIEWER, a_move(PENDING, "published", own=True), "publish own"),
    Case("POST /items/{item_id}/status", Role.REVIEWER, a_move(CANDIDATE, "archived", own=True), "drop own"),
    Case("POST /items/{item_id}/status", Role.REVIEWER, a_move(PUBLISHED, "archived", own=True), "archive own"),
    Case("POST /items/{item_id}/reuse", Role.READER, an_item(f"{ITEM}/reuse", PUBLISHED)),
    Case("POST /items/{item_id}/archive", Role.REVIEWER, an_item(f"{ITEM}/archive", PUBLISHED, version)),
    Case("POST /items/{item_id}/restore", Role.REVIEWER, an_item(f"{ITEM}/restore", ARCHIVED, version)),
    Case("POST /items/{item_id}/embedding/retry", Role.REVIEWER, an_item(f"{ITEM}/embedding/retry", PUBLISHED)),
    Case("GET /items/{item_id}/timeline", Role.REVIEWER, an_item(f"{ITEM}/timeline", PUBLISHED)),
    Case("GET /items/inbox", Role.REVIEWER, static("/items/inbox")),
    Case("POST /items/inbox/decisions", Role.REVIEWER, decisions),
    Case("GET /items/search", Role.READER, static("/items/search", query={"query": "lesson"})),
    *(Case("GET /items/search", Role.REVIEWER, a_search(one), one) for one in UNPUBLISHED),
    Case("GET /settings", Role.REVIEWER, static("/settings")),
    Case("PUT /settings", Role.ADMIN, settings),
    Case("POST /context", Role.READER, static("/context", body={"query": "lesson"})),
]


def documented() -> dict[str, str]:
    """What the table of docs/api.md says that each route needs."""
    rows = [line.split("|")[1:-1] for line in API.split("## ")[0].splitlines() if line.startswith("| `")]
    return {route: needs.strip() for routes_, _, needs in rows for route in re.findall(r"`([^`]+)`", routes_)}


def assert_the_table_says_so(route: Route) -> None:
    """The cases of the route are for those roles that the table names."""
    name = re.sub("{category}(?!/{)", "{doc_id}", str(route))  # as in tests/architecture/test_docs
    needs = {str(case.needs) for case in CASES if case.route == name}
    assert set(re.findall("None|reader|writer|reviewer|admin", documented()[name].replace("nobody", "None"))) == needs


def assert_answers_every_role(commands: Commands, case: Case) -> None:
    """Each role that the case is for is answered, each other one refused, and so is who has none."""
    method = case.route.split()[0]
    unchanged = case.request(commands, WRITER)
    for caller in CALLERS:
        if case.needs is None or (caller and caller.role.rank >= case.needs.rank):
            path, options = case.request(
                commands, caller if caller and caller.role.rank >= WRITER.role.rank else WRITER
            )
            answer = commands.api.call(caller, method, path, **options)
            assert 200 <= answer.status < 300, (caller, answer)
            continue
        path, options = unchanged
        answer = commands.api.call(caller, method, path, **options)
        error = answer.body["error"]
        if caller is None:
            assert (answer.status, error["code"]) == (401, "not_authenticated")
        elif (status := case.refused.get(caller.role, 403)) == 404:
            assert (answer.status, error) == (status, {"code": "not_found", "message": "no item has this id"})
        else:
            assert (answer.status, error["code"]) == (403, "not_permitted")
            # For another item a lower role may be enough, and who has not even that is told that one.
            assert Role(error["message"].split()[2]).rank in range(caller.role.rank + 1, case.needs.rank + 1)
