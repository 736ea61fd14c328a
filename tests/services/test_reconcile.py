"""Comparing bucket, table and vectors, and mending what events cannot tell. Cases are named by their id."""

import itertools
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from knowledge.adapters.hashing_embedder import HashingEmbedder
from knowledge.adapters.memory import MemoryVectorStore
from knowledge.domain.document import Chunk, DocumentRecord, DocumentStatus, Generation, KnowledgeEntry, doc_id_for
from knowledge.errors import DependencyUnavailable, InvalidInput
from knowledge.ports import DocumentChange, EmbeddedChunk
from knowledge.retrieval.catalog_index import CatalogIndex
from knowledge.services.catalog_snapshots import CatalogSnapshots, CatalogState
from knowledge.services.catalog_source import CatalogSource
from knowledge.services.preparation import PIPELINE_VERSION
from knowledge.services.reconcile_progress import KEY, Report
from knowledge.services.reconcile_rules import Kind
from tests.services.world import World, markdown

TOPICS = ("invoices", "refunds", "webhooks", "tokens", "quotas", "backups")
LATER = timedelta(hours=2)


@pytest.fixture
def world() -> World:
    return World()


def text_of(topic: str) -> str:
    body = f"The {topic} worker must be restarted every night because its {topic} queue fills up."
    return markdown(f"ERR_{topic}", title=topic, body=body)


def path_of(topic: str) -> str:
    return f"knowledge_base/kb/{topic}.md"


def fill(world: World) -> World:
    for topic in TOPICS:
        world.upload(f"kb/{topic}.md", text_of(topic))
    return world


def record_of(world: World, topic: str) -> DocumentRecord | None:
    record: DocumentRecord | None = world.registry.read(doc_id_for(path_of(topic))).record
    return record


def generation_of(world: World, topic: str) -> Generation:
    record = record_of(world, topic)
    assert record is not None
    assert record.generation is not None
    return record.generation


def found_by_keyword(world: World, topic: str) -> str | None:
    answer = world.ask(f"what is ERR_{topic}")
    return answer.primary.source if answer.primary else None


def found_by_meaning(world: World, topic: str) -> str | None:
    answer = world.ask(f"must the {topic} worker be restarted every night")
    return answer.supplement.source if answer.supplement else None


def counts(report: Report) -> tuple[dict[Kind, int], int]:
    assert report.finished_at is not None
    return report.differences, report.repaired


def lose_vectors(world: World, topic: str) -> None:
    world.vectors.delete(doc_id_for(path_of(topic)), generation_of(world, topic))


def leave_vectors(world: World, topic: str, generation: str) -> None:
    chunk = Chunk(0, (), "left behind")
    embedded = EmbeddedChunk(chunk, world.embedder.embed_query(chunk.text))
    world.vectors.write(doc_id_for(path_of(topic)), Generation(generation), path_of(topic), [embedded])


def stored(world: World) -> set[tuple[str, str]]:
    return set(world.vectors.generations())


def committed(world: World) -> CatalogState:
    source = CatalogSource(world.objects, world.registry, world.base, max_document_bytes=world.max_document_bytes)
    loaded = source.load_committed()
    assert loaded is not None
    return loaded.state


def publish(world: World, state: CatalogState) -> None:
    pointer = CatalogSnapshots(world.objects, world.base).write(state)
    world.registry.publish([pointer], instead_of=world.registry.head().snapshots)


def keywords_found(world: World) -> set[str]:
    """By a process that starts now, among the topics and one that never was."""
    world.index, world.lookup = world.instance()
    world.index.load()
    return {topic for topic in (*TOPICS, "ghost") if world.index.exact_match(f"what is ERR_{topic}")}


def test_stores_that_agree_are_left_alone(world: World) -> None:
    fill(world)
    before = (stored(world), world.registry.head())
    report = world.reconcile(later=LATER).resume()
    assert counts(report) == ({}, 0)
    assert (report.documents, report.generations, report.statuses) == (6, 6, {DocumentStatus.INDEXED: 6})
    assert (stored(world), world.registry.head()) == before


def test_a_file_whose_delete_marker_was_removed_is_found_again_B10(world: World) -> None:
    fill(world)
    world.objects.delete(path_of("tokens"))
    world.converger.converge(path_of("tokens"))
    assert found_by_keyword(world, "tokens") is None
    world.objects.delete_version(path_of("tokens"), world.objects.version_ids(path_of("tokens"))[-1])
    assert counts(world.reconcile().resume()) == ({Kind.NOT_INDEXED: 1}, 1)
    assert found_by_keyword(world, "tokens") == path_of("tokens")
    assert found_by_meaning(world, "tokens") == path_of("tokens")
    assert counts(world.reconcile().resume()) == ({}, 0)


def test_every_missed_event_is_made_up_for_B10(world: World) -> None:
    fill(world)
    world.drop(path_of("new"), text_of("new"))
    world.drop(path_of("refunds"), text_of("returns"))
    world.objects.delete(path_of("quotas"))
    world.drop("knowledge_base/kb/photo.png", b"")
    world.drop("knowledge_base/kb/", b"")
    assert counts(world.reconcile().resume()) == ({Kind.NOT_INDEXED: 1, Kind.CHANGED: 1, Kind.GONE: 1}, 3)
    assert found_by_keyword(world, "new") == path_of("new")
    assert found_by_keyword(world, "returns") == path_of("refunds")
    assert found_by_keyword(world, "refunds") is None
    assert found_by_keyword(world, "quotas") is None
    assert counts(world.reconcile().resume()) == ({}, 0)


def test_vectors_that_were_lost_are_made_again(world: World) -> None:
    fill(world)
    lose_vectors(world, "webhooks")
    assert found_by_meaning(world, "webhooks") != path_of("webhooks")
    assert counts(world.reconcile(later=LATER).resume()) == ({Kind.VECTORS_LOST: 1}, 1)
    assert found_by_meaning(world, "webhooks") == path_of("webhooks")
    assert counts(world.reconcile(later=2 * LATER).resume()) == ({}, 0)


def test_vectors_that_a_store_may_not_show_yet_are_not_made_again(world: World) -> None:
    fill(world)
    lose_vectors(world, "webhooks")
    assert counts(world.reconcile(later=timedelta(minutes=30)).resume()) == ({}, 0)


def test_vectors_that_no_record_names_are_removed_by_a_pass_an_hour_later(world: World) -> None:
    fill(world)
    before = stored(world)
    leave_vectors(world, "tokens", "left-by-a-crash")
    leave_vectors(world, "gone", "of-a-deleted-document")
    first = world.reconcile().resume()
    assert (counts(first), first.waiting) == (({}, 0), 2)
    soon = world.reconcile(later=timedelta(minutes=50)).resume()
    assert (counts(soon), soon.waiting) == (({}, 0), 2)
    assert len(stored(world)) == len(before) + 2
    later = world.reconcile(later=timedelta(minutes=61)).resume()
    assert (counts(later), later.waiting) == (({Kind.VECTORS_UNOWNED: 2}, 2), 0)
    assert stored(world) == before


def test_vectors_that_were_replaced_and_could_not_be_removed_are_removed_and_no_longer_noted(world: World) -> None:
    fill(world)
    world.vectors.broken.add("delete")
    world.upload("kb/tokens.md", text_of("badges"))
    world.objects.delete(path_of("quotas"))
    world.converger.converge(path_of("quotas"))
    world.vectors.broken.clear()
    assert len(stored(world)) == 7
    for later in (timedelta(), LATER):
        world.reconcile(later=later).resume()
    assert len(stored(world)) == 5
    assert world.registry.read(doc_id_for(path_of("tokens"))).discarded == ()
    assert world.registry.read(doc_id_for(path_of("quotas"))).discarded == ()


def test_vectors_that_cannot_be_removed_are_tried_again_by_the_next_pass(world: World) -> None:
    leave_vectors(world, "tokens", "left-by-a-crash")
    world.reconcile().resume()
    world.vectors.broken.add("delete")
    assert counts(world.reconcile(later=LATER).resume()) == ({Kind.VECTORS_UNOWNED: 1}, 0)
    world.vectors.broken.clear()
    assert counts(world.reconcile(later=LATER).resume()) == ({Kind.VECTORS_UNOWNED: 1}, 1)
    assert stored(world) == set()


def test_a_converge_that_has_written_and_not_yet_committed_keeps_its_vectors(world: World) -> None:
    reports: list[Report] = []

    def reconcile_twice() -> None:
        reports.extend(world.reconcile(later=timedelta(minutes=minutes)).resume() for minutes in (0, 30))

    world.registry.before["commit"] = reconcile_twice
    world.upload("kb/tokens.md", text_of("tokens"))
    # The pass in between indexes the file itself; whoever loses writes nothing and takes its own vectors back.
    assert all(report.differences.get(Kind.VECTORS_UNOWNED, 0) == 0 for report in reports)
    assert stored(world) == {(doc_id_for(path_of("tokens")), generation_of(world, "tokens"))}
    assert counts(world.reconcile(later=LATER).resume()) == ({}, 0)
    assert found_by_meaning(world, "tokens") == path_of("tokens")


def test_vectors_seen_without_a_record_and_committed_since_are_kept(world: World) -> None:
    world.upload("kb/tokens.md", text_of("tokens"))
    seen: list[Report] = []
    # The record is there already, so that only its vectors are new when the pass comes by.
    world.drop(path_of("tokens"), text_of("badges"))
    world.registry.before["commit"] = lambda: seen.extend(list(world.reconcile().run(repair=False))[-1:])
    world.converger.converge(path_of("tokens"))
    assert seen[0].waiting == 1
    assert counts(world.reconcile(later=LATER).resume()) == ({}, 0)
    assert found_by_keyword(world, "badges") == path_of("tokens")


def test_an_entry_that_the_snapshot_lost_or_holds_too_much_is_set_right(world: World) -> None:
    fill(world)
    # As a fault in a snapshot that nobody noticed would have it.
    wrong = [entry for entry in committed(world).index.entries if entry.file_path != path_of("tokens")]
    wrong = [replace(entry, title="Another") if entry.file_path == path_of("quotas") else entry for entry in wrong]
    wrong.append(KnowledgeEntry(path_of("ghost"), "A ghost", ("ERR_ghost",)))
    publish(world, CatalogState(world.registry.head().version, CatalogIndex(wrong)))
    assert keywords_found(world) == {"invoices", "refunds", "webhooks", "quotas", "backups", "ghost"}
    report = world.reconcile().resume()
    assert counts(report) == ({Kind.CATALOG: 3}, 3)
    assert {one.path for one in report.told} == {path_of(topic) for topic in ("tokens", "quotas", "ghost")}
    assert keywords_found(world) == set(TOPICS)
    assert counts(world.reconcile().resume()) == ({}, 0)


def test_a_file_that_was_scanned_and_went_away_before_it_was_indexed_leaves_no_entry_for_good(world: World) -> None:
    fill(world)
    world.drop(path_of("ghost"), text_of("ghost"))
    scanned = [*committed(world).index.entries, KnowledgeEntry(path_of("ghost"), "ghost", ("ERR_ghost",))]
    publish(world, CatalogState(world.registry.head().version, CatalogIndex(scanned)))
    world.objects.delete(path_of("ghost"))
    assert world.converger.converge(path_of("ghost")) is None
    assert "ghost" in keywords_found(world)
    *_, look = world.reconcile().run(repair=False)
    assert counts(look) == ({Kind.CATALOG: 1}, 0)
    assert counts(world.reconcile().resume()) == ({Kind.CATALOG: 1}, 1)
    assert keywords_found(world) == set(TOPICS)


def test_what_is_committed_while_the_catalog_is_compared_is_no_difference(world: World) -> None:
    fill(world)
    world.registry.before["list"] = lambda: (world.upload("kb/new.md", text_of("new")), None)[1]
    report = world.reconcile().resume()
    assert (counts(report), report.documents) == (({}, 0), 7)


def test_a_catalog_that_cannot_be_read_is_left_out(world: World) -> None:
    fill(world)
    world.registry.broken.add("head")
    world.objects.delete(path_of("quotas"))
    assert counts(world.reconcile().resume()) == ({Kind.GONE: 1}, 1)


def test_a_document_that_stayed_unfinished_or_failed_is_tried_again(world: World) -> None:
    world.embedder.broken.add("embed_passages")
    world.upload("kb/tokens.md", text_of("tokens"))
    world.upload("kb/quotas.md", text_of("quotas"))
    world.converger.give_up(path_of("quotas"))
    world.embedder.broken.clear()
    # The queue may still be trying the first one.
    assert counts(world.reconcile().resume()) == ({Kind.FAILED: 1}, 1)
    assert counts(world.reconcile(later=LATER).resume()) == ({Kind.UNFINISHED: 1}, 1)
    assert found_by_meaning(world, "tokens") == path_of("tokens")
    assert found_by_meaning(world, "quotas") == path_of("quotas")


def test_a_document_that_cannot_be_repaired_is_told_with_the_reason_and_costs_no_commit(world: World) -> None:
    world.drop(path_of("latin"), b"caf\xe9")
    world.converger.converge(path_of("latin"))
    head = world.registry.head()
    report = world.reconcile(later=LATER).resume()
    assert counts(report) == ({Kind.FAILED: 1}, 0)
    assert report.unrepaired == 1
    assert "not UTF-8" in str(report.told[0].reason)
    assert world.registry.head() == head


def raising(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize("error", [DependencyUnavailable("DynamoDB", "injected"), RuntimeError("a bug")])
def test_a_document_that_fails_does_not_keep_the_others_from_being_repaired_N5(world: World, error: Exception) -> None:
    for topic in TOPICS:
        world.drop(path_of(topic), text_of(topic))
    world.objects.before["read"] = lambda: None  # what was saved, before any document
    reconcile = world.reconcile()
    world.objects.before["stat"] = lambda: world.objects.before.update(read=raising(error))
    report = reconcile.resume()
    assert counts(report) == ({Kind.NOT_INDEXED: 6}, 5)
    [failed] = [one for one in report.told if not one.is_repaired]
    assert failed.reason == str(error)
    assert counts(world.reconcile().resume()) == ({Kind.NOT_INDEXED: 1}, 1)


@pytest.mark.parametrize("broken", ["generations", "notes"])
def test_files_and_records_are_compared_while_the_vector_store_is_down(world: World, broken: str) -> None:
    fill(world)
    lose_vectors(world, "tokens")
    world.objects.delete(path_of("quotas"))
    world.vectors.broken.add(broken)
    report = world.reconcile(later=LATER).resume()
    assert counts(report) == ({Kind.GONE: 1}, 1)
    assert "injected" in str(report.left_out)
    world.vectors.broken.clear()
    report = world.reconcile(later=LATER).resume()
    assert counts(report) == ({Kind.VECTORS_LOST: 1}, 1)
    assert report.left_out is None


@pytest.mark.parametrize("store", ["objects", "registry"])
def test_a_store_that_does_not_list_is_an_error_and_what_was_done_is_kept(world: World, store: str) -> None:
    fill(world)
    getattr(world, store).broken.add("list")
    with pytest.raises(DependencyUnavailable):
        world.reconcile().resume()
    getattr(world, store).broken.clear()
    assert counts(world.reconcile().resume()) == ({}, 0)


def test_a_look_changes_nothing(world: World) -> None:
    fill(world)
    world.drop(path_of("new"), text_of("new"))
    world.objects.delete(path_of("quotas"))
    lose_vectors(world, "tokens")
    leave_vectors(world, "refunds", "left-by-a-crash")
    world.reset_counts()
    *_, report = world.reconcile(later=LATER).run(repair=False)
    assert counts(report) == ({Kind.NOT_INDEXED: 1, Kind.GONE: 1, Kind.VECTORS_LOST: 1}, 0)
    assert (report.unrepaired, report.waiting) == (3, 1)
    called = world.objects.calls + world.registry.calls + world.vectors.calls
    assert not called.keys() & {"put", "delete", "commit", "write", "note", "forget_discarded"}
    assert world.objects.stat(KEY) is None


def test_a_whole_pass_by_hand_repairs_and_shows_how_far_it_is(world: World) -> None:
    for number in range(60):
        world.drop(path_of(f"topic{number:02}"), text_of(f"topic{number:02}"))
    seen = [report.documents for report in world.reconcile().run(repair=True)]
    assert seen == sorted(seen)
    assert len(set(seen)) >= 3
    assert seen[-1] == 60
    assert counts(world.reconcile().resume()) == ({}, 0)


def test_a_pass_that_runs_out_of_time_goes_on_where_it_stopped(world: World) -> None:
    names = [f"topic{number:03}" for number in range(130)]
    for name in names[::2]:
        world.upload(f"kb/{name}.md", text_of(name))
    for name in names[1::2]:
        world.drop(path_of(name), text_of(name))
    for number in range(3):
        leave_vectors(world, f"gone{number}", "left-by-a-crash")
    invocations = list[Report]()
    while not invocations or invocations[-1].finished_at is None:
        # A new process each time, whose time is up at its fourth look at the clock; embedding goes by another clock.
        looks, up = itertools.count(), time.monotonic() + 3600.0
        reconcile = world.reconcile(clock=lambda looks=looks, up=up: up if next(looks) >= 3 else 0.0)
        invocations.append(reconcile.resume(deadline=up))
        assert len(invocations) < 50
    assert len(invocations) >= 3
    report = invocations[-1]
    assert counts(report) == ({Kind.NOT_INDEXED: 65}, 65)
    assert (report.documents, report.generations, report.waiting) == (130, 133, 3)
    assert Counter(one.path for one in report.told).most_common(1)[0][1] == 1
    assert {report.began_at for report in invocations} == {report.began_at}
    assert counts(world.reconcile(later=LATER).resume()) == ({Kind.VECTORS_UNOWNED: 3}, 3)


def test_without_leave_to_begin_only_an_unfinished_pass_goes_on(world: World) -> None:
    fill(world)
    assert world.reconcile().resume(begin=False).documents == 0
    assert world.objects.stat(KEY) is None
    assert world.reconcile(clock=lambda: 1.0).resume(deadline=0.0).finished_at is None
    through = world.reconcile().resume(begin=False)
    assert (counts(through), through.documents) == (({}, 0), 6)
    world.reset_counts()
    assert world.reconcile().resume(begin=False) == through
    assert world.objects.calls + world.registry.calls + world.vectors.calls == {"read": 1}


def test_what_was_saved_and_cannot_be_read_begins_anew(world: World) -> None:
    fill(world)
    world.objects.put(KEY, b'{"report": 1}', content_type="application/json")
    assert counts(world.reconcile().resume()) == ({}, 0)


class Renamed(HashingEmbedder):
    @property
    def name(self) -> str:
        return "renamed"


def test_functions_whose_index_is_not_built_yet_leave_every_document_alone() -> None:
    old_vectors = MemoryVectorStore("hashing")
    world = fill(World(vectors=lambda _: old_vectors))
    other = World(embedder=Renamed(), vectors=lambda _: MemoryVectorStore("renamed", beside=old_vectors), beside=world)
    report = other.reconcile(later=LATER).resume()
    assert counts(report) == ({}, 0)
    assert "re-embed needed" in str(report.left_out)
    assert report.statuses == {DocumentStatus.INDEXED: 6}


def test_documents_of_another_embedder_are_embedded_once_there_is_an_index() -> None:
    old_vectors = MemoryVectorStore("hashing")
    world = fill(World(vectors=lambda _: old_vectors))
    new_vectors = MemoryVectorStore("renamed", beside=old_vectors)
    new_vectors.begin_rebuild().note({"embedder": "renamed"})
    new_vectors.finish_rebuild()
    other = World(embedder=Renamed(), vectors=lambda _: new_vectors, beside=world)
    assert counts(other.reconcile().resume()) == ({Kind.OUTDATED: 6}, 6)
    assert found_by_meaning(other, "tokens") == path_of("tokens")


def test_what_the_embedder_refuses_is_tried_once_a_pass_and_told(world: World) -> None:
    world.drop(path_of("tokens"), text_of("tokens"))
    world.embedder.before["embed_passages"] = raising(InvalidInput("the model refuses this text"))
    report = world.reconcile().resume()
    assert counts(report) == ({Kind.NOT_INDEXED: 1}, 0)
    assert report.told[0].reason == "the model refuses this text"
    assert found_by_keyword(world, "tokens") == path_of("tokens")


def test_ten_thousand_documents_that_agree_cost_a_call_for_each_hundred() -> None:
    world, at = World(), datetime.now(UTC) - timedelta(days=1)
    chunk = EmbeddedChunk(Chunk(0, (), "text"), world.embedder.embed_query("text"))
    for number in range(10_000):
        path, generation = f"knowledge_base/{number % 7}/{number:05}.md", Generation(f"g{number}")
        world.drop(path, b"text")
        info = world.objects.stat(path)
        record = DocumentRecord(
            *(doc_id_for(path), path, DocumentStatus.INDEXED, info.etag, info.version_id, 4, "title", None, (), None),
            *(generation, 1, 1, world.embedder.name, PIPELINE_VERSION, f"r{number}", at, at),
        )
        world.registry.commit([DocumentChange(record.doc_id, path, None, record, None)])
        world.vectors.write(record.doc_id, generation, path, [chunk])
    world.reset_counts()
    report = world.reconcile().resume()
    assert (counts(report), report.documents, report.generations) == (({}, 0), 10_000, 10_000)
    assert world.registry.calls == {"list": 100, "generations": 100, "head": 1, "changes_after": 1}
    # What was saved is read and written; a listing makes a call for each 1,000.
    assert world.objects.calls == {"read": 1, "list": 1, "put": 1}
    assert world.vectors.calls == {"notes": 1, "generations": 2}
