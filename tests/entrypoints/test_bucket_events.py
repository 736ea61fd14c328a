"""S3's events as they really come, through the indexer's entry point: whatever they say, the bucket decides."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest

from knowledge.adapters.embedded_vectors import EmbeddedVectorStore
from knowledge.domain.document import DocumentStatus, doc_id_for
from tests.entrypoints.test_s3_events import deliver, message
from tests.services.world import READER, World, markdown

EVENT = json.loads((Path(__file__).parents[2] / "events" / "indexer.json").read_text(encoding="utf-8"))
RECORD: dict[str, Any] = json.loads(EVENT["Records"][0]["body"])["Records"][0]
A, B = "knowledge_base/docs/a.md", "knowledge_base/docs/b.md"


def event(name: str, key: str, **more: Any) -> dict[str, Any]:
    """The message on file with another event's name and key; blanks as `+`, everything else in percent signs."""
    stored = RECORD["s3"]["object"] | {"key": quote_plus(key, safe="/")} | more
    return message(
        {"Records": [RECORD | {"eventName": name, "s3": RECORD["s3"] | {"object": stored}}]}, f"{name} {key}"
    )


def twice(key: str) -> Callable[[World], None]:
    """The file is stored, and once more with other content."""

    def happen(world: World) -> None:
        world.drop(key, markdown("OLD"))
        world.drop(key, markdown("NEW"))

    return happen


def rename(world: World) -> None:
    world.drop(A, markdown("KEPT"))
    world.drop(B, markdown("KEPT"))
    world.objects.delete(A)


def take_away(world: World) -> None:
    world.drop(A, markdown("OLD"))
    world.objects.delete(A)


def back_to_the_version_before(world: World) -> None:
    world.drop(A, markdown("OLD"))
    newer = world.objects.put(A, markdown("NEW").encode(), content_type="text/markdown")
    world.objects.delete_version(A, newer)


def without_its_old_version(world: World) -> None:
    twice(A)(world)
    world.objects.delete_version(A, world.objects.version_ids(A)[0])


def undelete(world: World) -> None:
    take_away(world)
    world.objects.delete_version(A, world.objects.version_ids(A)[-1])


def both_compositions(world: World) -> None:
    world.drop("knowledge_base/é.md", markdown("NFC"))
    world.drop("knowledge_base/e\u0301.md", markdown("NFD"))


@dataclass(frozen=True)
class Case:
    """What happened in the bucket, the events that it sent, and the keyword of each document left at the end."""

    happened: Callable[[World], None]
    events: list[tuple[str, str]]
    left: dict[str, str] = field(default_factory=dict)


CREATED, MARKED = "ObjectCreated:Put", "ObjectRemoved:DeleteMarkerCreated"
CASES = {
    "put": Case(twice(A), [(CREATED, A), (CREATED, A)], {A: "NEW"}),
    "post": Case(twice(A), [("ObjectCreated:Post", A)], {A: "NEW"}),
    "multipart": Case(twice(A), [("ObjectCreated:CompleteMultipartUpload", A)], {A: "NEW"}),
    "restored from the archive": Case(twice(A), [("ObjectRestore:Completed", A)], {A: "NEW"}),
    "rename": Case(rename, [(CREATED, A), ("ObjectCreated:Copy", B), (MARKED, A)], {B: "KEPT"}),
    "delete marker B10": Case(take_away, [(CREATED, A), (MARKED, A)]),
    "delete in a bucket without versions": Case(take_away, [(CREATED, A), ("ObjectRemoved:Delete", A)]),
    "expired B10": Case(take_away, [(CREATED, A), ("LifecycleExpiration:DeleteMarkerCreated", A)]),
    "expired for good B10": Case(take_away, [(CREATED, A), ("LifecycleExpiration:Delete", A)]),
    "newest version deleted B10": Case(
        back_to_the_version_before, [(CREATED, A), (CREATED, A), ("ObjectRemoved:Delete", A)], {A: "OLD"}
    ),
    "old version deleted B10": Case(
        without_its_old_version, [(CREATED, A), (CREATED, A), ("ObjectRemoved:Delete", A)], {A: "NEW"}
    ),
    "marker removed, with an event": Case(
        undelete, [(CREATED, A), (MARKED, A), ("ObjectRemoved:Delete", A)], {A: "OLD"}
    ),
    "event of an object that never was": Case(lambda _: None, [(CREATED, A), ("ObjectRemoved:Delete", B)]),
    "compositions of one name B01": Case(
        both_compositions,
        [(CREATED, "knowledge_base/é.md"), (CREATED, "knowledge_base/e\u0301.md")],
        {"knowledge_base/é.md": "NFC", "knowledge_base/e\u0301.md": "NFD"},
    ),
} | {
    f"key {key!r} B01": Case(twice(key), [("ObjectCreated:Put", key)], {key: "NEW"})
    for key in (
        "knowledge_base/docs/How to deploy (v2).md",
        "knowledge_base/文档/部署 指南.md",
        "knowledge_base/1+1=2 & 100%.md",
        "knowledge_base/100%25+%2B.md",
        "knowledge_base/a//b.md",
        "knowledge_base/README.MD",
    )
}
ORDERS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "in order": lambda events: events,
    "the other way round": lambda events: events[::-1],
    "twice": lambda events: [*events, *events],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", CASES)
def test_the_bucket_decides_whatever_its_events_say_B04(name: str, order: str) -> None:
    case, world = CASES[name], World()
    case.happened(world)
    assert deliver(world, *ORDERS[order]([event(*one) for one in case.events])) == []
    records = {record.file_path: record for record in world.reader.list_documents(READER).records}
    assert records.keys() == case.left.keys()
    for path, keyword in case.left.items():
        assert records[path].status is DocumentStatus.INDEXED
        primary = world.ask(keyword).primary
        assert primary is not None
        assert primary.source == path
    for keyword in {"OLD", "NEW", "KEPT", "NFC", "NFD"} - set(case.left.values()):
        assert not world.ask(keyword).found
    live = [(record.doc_id, record.generation) for record in records.values()]
    assert sorted((hit.doc_id, hit.generation) for hit in world.chunks("text")) == sorted(live, key=str)


@pytest.mark.parametrize("name", ["put", "rename", "delete marker B10", "newest version deleted B10"])
def test_the_bucket_decides_also_between_any_two_events_B04(name: str) -> None:
    """Each event comes while the file is in any of the states before it, and once more at the end."""
    case, world = CASES[name], World()
    for one in case.events:
        case.happened(world)
        deliver(world, event(*one))
    assert deliver(world, *(event(*one) for one in case.events)) == []
    assert {record.file_path for record in world.reader.list_documents(READER).records} == case.left.keys()


def test_duplicates_delivered_in_parallel_are_one_change_B08() -> None:
    world = World()
    world.drop(A, markdown("ERR_77"))
    threads = [threading.Thread(target=deliver, args=(world, event(CREATED, A))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert world.registry.head().version == 1
    assert len(world.chunks("text")) == 1


def test_an_upload_causes_one_run_and_nothing_it_stores_causes_another_B08() -> None:
    world = World(vectors=EmbeddedVectorStore)
    world.upload("docs/a.md", markdown("ERR_77"))
    stored = [info.key for info in world.objects.list("")]
    assert [key for key in stored if key.startswith("knowledge_base/")] == [A]
    assert all(key.startswith("_index/") for key in stored if key != A)
    world.reset_counts()
    assert deliver(world, *(event(CREATED, key) for key in (*stored, "_index/copy-of.md"))) == []
    assert world.objects.calls == {"stat": 1}, "the file's own event is one look; the others are none"
    assert world.registry.calls == {"read": 1}
    assert world.registry.head().version == 1


def test_an_undeleted_file_sends_no_event_and_is_found_by_a_look_B10() -> None:
    world = World()
    take_away(world)
    deliver(world, event(CREATED, A), event(MARKED, A))
    assert not world.ask("OLD").found
    world.objects.delete_version(A, world.objects.version_ids(A)[-1])
    world.converger.converge(A)
    assert world.ask("OLD").primary is not None


def test_an_empty_file_is_listed_with_what_is_wrong_and_never_embedded_B06() -> None:
    world = World()
    world.drop("knowledge_base/docs/empty.md", b"")
    assert deliver(world, event(CREATED, "knowledge_base/docs/empty.md", size=0)) == []
    record = world.reader.get_document(READER, doc_id_for("knowledge_base/docs/empty.md"))
    assert record.status is DocumentStatus.INDEXED
    assert record.warnings[0].startswith("empty document")
    assert world.embedder.calls == {}
