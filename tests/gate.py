"""The walk over everything that answers, in search of what no person has published. Source: specification N6.

It has a step for every route of template.yaml, since a write answers too: who adds a route adds what it may show.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from knowledge.domain.access import Principal, Role
from knowledge.domain.document import DocumentStatus, doc_id_for
from knowledge.domain.item import ItemStatus, KnowledgeKind
from tests.api import Api
from tests.item_commands import REVIEWER, Commands, proposal, word

_PREFIX = "knowledge_base/"
_VERSION = {"expected_version": 1}


@dataclass(frozen=True)
class Marked:
    """What an item says, or said; title, content and tag each hold a word that nobody else uses."""

    state: str
    item: Any
    sentence: str
    words: tuple[str, str, str]

    @property
    def says(self) -> dict[str, Any]:
        """The fields."""
        title, content, tag = self.words
        return {"title": f"{self.sentence[:20]} {title}", "content": f"{self.sentence} {content}", "tags": [tag]}

    @property
    def doc_id(self) -> str:
        """Of its document, whether there is one or not."""
        return doc_id_for(f"{_PREFIX}{self.item['kind']}/{self.item['id']}.md")

    def has_its_word_in(self, text: str) -> bool:
        """True when something of it can be read there."""
        return any(one in text for one in self.words)


@dataclass(frozen=True)
class Marks:
    """Items in every state that somebody may come upon."""

    public: tuple[Marked, ...]
    hidden: tuple[Marked, ...]

    @property
    def all(self) -> tuple[Marked, ...]:
        """Both."""
        return self.public + self.hidden


@dataclass(frozen=True)
class Step:
    """One request."""

    method: str
    path: str
    body: object = None
    query: Mapping[str, str] | None = None
    content_type: str = "application/json"


def marked_items(commands: Commands) -> Marks:
    """Each says something else, so that none is found by what another one means."""

    def marked(state: str, sentence: str, status: ItemStatus, kind: KnowledgeKind = KnowledgeKind.PITFALL) -> Marked:
        said = Marked(state, None, sentence, (word(), word(), word()))
        return replace(said, item=commands.item(status, Principal("test-author", Role.WRITER), kind=kind, **said.says))

    published = marked("published", "The purple elevator must be greased before the parade.", ItemStatus.PUBLISHED)
    candidate = marked("candidate", "Glass beehives crack when the choir sings too loudly.", ItemStatus.CANDIDATE)
    pending = marked("in review", "Never feed a lighthouse parrot with salted almonds.", ItemStatus.PENDING_REVIEW)
    dropped = marked("dropped", "The tram conductor counts umbrellas on rainy Tuesdays.", ItemStatus.ARCHIVED)
    archived = marked("archived", "Copper kettles whistle off key in the mountains.", ItemStatus.PUBLISHED)
    restored = marked(
        "restored", "A wooden submarine needs fresh varnish.", ItemStatus.PUBLISHED, KnowledgeKind.DIAGNOSIS
    )
    edited = marked("before its edit", "Snow globes freeze without vinegar in the water.", ItemStatus.PUBLISHED)
    commands.move(archived.item, "archived")
    commands.move(commands.move(restored.item, "archived"), "pending_review")
    after = Marked("after its edit", None, "Chess clocks drift when magnets lie near.", (word(), word(), word()))
    after = replace(after, item=commands.edit(edited.item, REVIEWER, **after.says))
    return Marks((published, after), (candidate, pending, dropped, archived, restored, edited))


def leaks(api: Api, marks: Marks, caller: Principal) -> list[str]:
    """Each answer to this caller that holds a word, or unasked the id, of what nobody may read there.

    Reviewers may read every item by the routes of items, and are asked by the others. Raises AssertionError when the
    walk does not see what is published, by which it would prove nothing.
    """
    is_reviewer = caller.role.rank >= Role.REVIEWER.rank
    found, shown = list[str](), set[str]()
    public_ids = {one.item["id"] for one in marks.public}
    for route in FOR_EVERYBODY if is_reviewer else WALK:
        for step in WALK[route](marks):
            for text in _texts(api, caller, step):
                for one in marks.hidden:
                    # Whoever names an item is told nothing new by its id, nor by that of one that is public by now.
                    is_told = one.item["id"] in text and one.item["id"] not in {*public_ids, *_ids_in(step)}
                    if is_told or one.has_its_word_in(text):
                        found.append(f"{caller.role} reads what is {one.state}: {step} {text}")
                if any(one.has_its_word_in(text) for one in marks.public):
                    shown.add(route)
    expected = SHOWING & (FOR_EVERYBODY if is_reviewer else WALK.keys())
    unseen = {route for route in expected - shown if route != "POST /items" or caller.role is not Role.READER}
    assert not unseen, f"the walk does not see what is published: {unseen}"
    return found


def _ids_in(step: Step) -> list[str]:
    return re.findall("[0-9a-f]{32}", f"{step.path} {step.body}")


def _texts(api: Api, caller: Principal, step: Step) -> Iterator[str]:
    """The answer; of a list, page by page."""
    query = step.query
    while True:
        answer = api.call(caller, step.method, step.path, body=step.body, query=query, content_type=step.content_type)
        yield answer.text
        cursor = answer.body.get("next_cursor") if answer.text.startswith("{") else None
        if not cursor:
            return
        query = {**(query or {}), "cursor": cursor}


def _queries(marks: Marks) -> Iterator[str]:
    for one in marks.all:
        yield from (*one.words, one.sentence)


def _lookups(marks: Marks) -> Iterator[Step]:
    for query in _queries(marks):
        yield Step("GET", "/lookup", query={"query": query, "explain": "true", "include_sections": "true"})


def _posted_lookups(marks: Marks) -> Iterator[Step]:
    for query in _queries(marks):
        yield Step("POST", "/lookup", {"query": query, "section_title": query, "explain": True})


def _lists(path: str, name: str, values: Iterable[str], **more: str) -> Iterator[Step]:
    yield Step("GET", path, query=more or None)
    for value in values:
        yield Step("GET", path, query={name: value, **more})


def _document_lists(marks: Marks) -> Iterator[Step]:
    yield from _lists("/documents", "category", KnowledgeKind, limit="100")
    yield from _lists("/documents", "status", DocumentStatus, limit="100")


def _item_lists(marks: Marks) -> Iterator[Step]:
    yield from _lists("/items", "kind", KnowledgeKind, limit="100")
    yield from _lists("/items", "status", ItemStatus)


def _searches(marks: Marks) -> Iterator[Step]:
    for query in _queries(marks):
        yield Step("GET", "/items/search", query={"query": query, "limit": "20"})
    for one in marks.all:
        yield from _lists("/items/search", "status", ItemStatus, query=one.words[0])


def _contexts(marks: Marks) -> Iterator[Step]:
    for query in _queries(marks):
        yield Step("POST", "/context", {"query": query, "token_budget": 8000, "record_reuse": True})
        yield Step("POST", "/context", {"messages": [{"role": "user", "content": query}]})


def _proposals(marks: Marks) -> Iterator[Step]:
    for one in marks.all:
        yield Step("POST", "/items", proposal("Is there one like it", one.sentence))
        yield Step("POST", "/items", proposal(one.sentence, f"{one.sentence} Is there one like it?"))


def _uploads(marks: Marks) -> Iterator[Step]:
    for one in marks.hidden:
        body = {"category": one.item["kind"], "file_name": f"{one.item['id']}.md", "content": "text"}
        yield Step("POST", "/documents", body)


def _files(marks: Marks) -> Iterator[Step]:
    for one in marks.hidden:
        yield Step("PUT", f"/documents/{one.item['kind']}/{one.item['id']}.md", {}, content_type="text/markdown")


def _bulk(marks: Marks) -> Iterator[Step]:
    decisions = [{"id": one.item["id"], "status": "published", **_VERSION} for one in marks.all]
    yield Step("POST", "/items/inbox/decisions", {"decisions": decisions})


def _each(method: str, path: str, body: object = None) -> Callable[[Marks], Iterator[Step]]:
    """The request for every item."""
    return lambda marks: (
        Step(method, path.format(id=one.item["id"], doc_id=one.doc_id), body) for one in marks.all
    )  # fmt: skip


def _once(method: str, path: str, body: object = None) -> Callable[[Marks], Iterator[Step]]:
    return lambda marks: iter([Step(method, path, body)])


# In the order of docs/api.md; what ends something comes last.
WALK: Final[Mapping[str, Callable[[Marks], Iterator[Step]]]] = {
    "GET /lookup": _lookups,
    "POST /lookup": _posted_lookups,
    "GET /documents": _document_lists,
    "GET /documents/{category}": _each("GET", "/documents/{doc_id}"),
    "GET /documents/{category}/content": _each("GET", "/documents/{doc_id}/content"),
    "GET /items": _item_lists,
    "GET /items/{item_id}": _each("GET", "/items/{id}"),
    "GET /items/{item_id}/timeline": _each("GET", "/items/{id}/timeline"),
    "GET /items/inbox": _once("GET", "/items/inbox"),
    "GET /items/search": _searches,
    "POST /context": _contexts,
    "GET /settings": _once("GET", "/settings"),
    "GET /health": _once("GET", "/health"),
    "POST /items": _proposals,
    "POST /items/{item_id}/reuse": _each("POST", "/items/{id}/reuse"),
    "PATCH /items/{item_id}": _each("PATCH", "/items/{id}", {**_VERSION, "tags": []}),
    "POST /items/{item_id}/status": _each("POST", "/items/{id}/status", {"status": "pending_review", **_VERSION}),
    "POST /items/{item_id}/archive": _each("POST", "/items/{id}/archive", _VERSION),
    "POST /items/{item_id}/restore": _each("POST", "/items/{id}/restore", _VERSION),
    "POST /items/{item_id}/embedding/retry": _each("POST", "/items/{id}/embedding/retry"),
    "POST /items/inbox/decisions": _bulk,
    "PUT /settings": _once("PUT", "/settings", {}),
    "POST /documents": _uploads,
    "PUT /documents/{category}/{file_name}": _files,
    "DELETE /documents/{category}": lambda marks: (
        Step("DELETE", f"/documents/{one.doc_id}") for one in marks.hidden
    ),
}  # fmt: skip
# By these nobody reads what is not published, reviewers neither.
FOR_EVERYBODY: Final = frozenset(
    {
        "GET /lookup",
        "POST /lookup",
        "GET /documents",
        "GET /documents/{category}",
        "GET /documents/{category}/content",
        "POST /context",
        "POST /items",
    }
)
# By these what is published is read; by the last one readers are not let in.
SHOWING: Final = FOR_EVERYBODY | {
    "GET /items",
    "GET /items/{item_id}",
    "GET /items/search",
    "POST /items/{item_id}/reuse",
}
