"""Snapshots and the log they shorten: what is written, read, noticed and cleared up. I08 by each of its parts."""

import hashlib
import logging
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from knowledge.domain.document import KnowledgeEntry, doc_id_for
from knowledge.errors import AccessRefused, CorruptState, DependencyUnavailable
from knowledge.ports import CatalogChange, SnapshotPointer
from knowledge.services.bucket_scan import scan
from knowledge.services.catalog import KnowledgeIndex
from tests.services.world import ADMIN, World, markdown

FOLDER = "_index/catalog/"


@pytest.fixture
def world() -> World:
    """Three documents, committed as versions 1 to 3."""
    world = World()
    for number in (1, 2, 3):
        world.upload(f"a/{number}.md", markdown(f"K_{number}"))
    return world


def upload(world: World, number: int) -> None:
    world.upload(f"a/{number}.md", markdown(f"K_{number}"))


def delete(world: World, number: int) -> None:
    world.documents.delete_document(ADMIN, doc_id_for(f"knowledge_base/a/{number}.md"))


def cold(world: World) -> KnowledgeIndex:
    """The index of an instance that has just started."""
    index, _ = world.instance()
    index.load()
    return index


def scanned(world: World) -> list[KnowledgeEntry]:
    """What the files say."""
    return list(scan(world.objects, world.base, max_document_bytes=world.max_document_bytes))


def log_versions(world: World) -> list[int]:
    return [change.version for change in world.registry.changes_after(0)]


def objects(world: World) -> list[str]:
    return [info.key for info in world.objects.list(FOLDER)]


def overwrite(world: World, key: str, body: bytes) -> None:
    world.objects.put(key, body, content_type="application/octet-stream")


def body_of(world: World, key: str) -> bytes:
    body: bytes = world.objects.read(key, max_bytes=10**9).body
    return body


def events(caplog: pytest.LogCaptureFixture, name: str) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.message == name]


# What is written and read


def test_a_cold_start_reads_the_head_one_object_and_the_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    assert world.compaction.compact().is_written
    caplog.set_level(logging.INFO)
    world.reset_counts()
    index = cold(world)
    assert world.objects.calls == {"read": 1}
    assert world.registry.calls == {"head": 1, "changes_after": 1}
    assert list(index.entries) == scanned(world)
    (loaded,) = events(caplog, "catalog_loaded")
    assert (loaded["source"], loaded["document_count"], loaded["version"]) == ("snapshot", 3, 3)
    assert loaded["elapsed_ms"] >= 0


def test_without_a_snapshot_a_cold_start_scans(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert list(cold(world).entries) == scanned(world)
    assert [event["source"] for event in events(caplog, "catalog_loaded")] == ["scan"]
    assert events(caplog, "catalog_snapshot_unusable") == []


def test_what_was_committed_after_the_snapshot_is_in_the_index(world: World) -> None:
    world.compaction.compact()
    upload(world, 4)
    delete(world, 1)
    world.upload("a/2.md", markdown("K_NEW"))
    assert list(cold(world).entries) == scanned(world)
    assert [entry.keywords for entry in cold(world).entries] == [("K_NEW",), ("K_3",), ("K_4",)]


def test_the_first_snapshot_is_made_of_the_log_without_a_look_at_any_file(world: World) -> None:
    world.reset_counts()
    result = world.compaction.compact()
    assert (result.source, result.is_written, result.version, result.changes) == ("log", True, 3, 3)
    assert (result.document_count, result.removed_entries) == (3, 0)
    assert world.objects.calls == {"put": 1}
    (pointer,) = world.registry.head().snapshots
    assert pointer.size_bytes == result.size_bytes == len(body_of(world, pointer.key))


def test_with_nothing_committed_nothing_is_written() -> None:
    world = World()
    assert not world.compaction.compact().is_written
    assert objects(world) == []


def test_with_nothing_new_nothing_is_written(world: World) -> None:
    world.compaction.compact()
    world.reset_counts()
    result = world.compaction.compact()
    assert (result.is_written, result.changes, result.version, result.source) == (False, 0, 3, "snapshot")
    assert "put" not in world.objects.calls


def test_a_short_log_may_wait_and_is_not_written_to(world: World) -> None:
    world.compaction.compact()
    for number in (4, 5, 6):
        upload(world, number)
    world.reset_counts()
    result = world.compaction.compact(least_changes=4)
    assert (result.is_written, result.changes, result.version) == (False, 3, 3)
    assert world.registry.calls == {"head": 1, "changes_after": 1}
    assert world.objects.calls == {"read": 1}
    upload(world, 7)
    assert world.compaction.compact(least_changes=4).is_written


def test_the_log_is_removed_before_the_previous_snapshot_and_never_without_one(world: World) -> None:
    assert world.compaction.compact().removed_entries == 0
    assert log_versions(world) == [1, 2, 3]
    upload(world, 4)
    result = world.compaction.compact()
    assert (result.source, result.removed_entries) == ("snapshot", 2)
    assert log_versions(world) == [3, 4], "number 3, which the previous snapshot ends with, stays"
    upload(world, 5)
    result = world.compaction.compact()
    assert (result.removed_entries, result.removed_objects) == (1, 1)
    assert log_versions(world) == [4, 5]
    assert objects(world) == sorted(pointer.key for pointer in world.registry.head().snapshots)
    assert list(cold(world).entries) == scanned(world)


@pytest.mark.parametrize("loaded_after", [0, 1, 2, 3])
def test_a_reader_older_than_what_was_removed_sees_that_and_loads_anew(loaded_after: int) -> None:
    world = World()
    for number in range(1, loaded_after + 1):
        upload(world, number)
    reader = cold(world)
    for number in range(loaded_after + 1, 4):
        upload(world, number)
    world.compaction.compact()
    upload(world, 4)
    delete(world, 1)
    world.compaction.compact()
    assert log_versions(world) == [3, 4, 5]
    reader.refresh()
    assert list(reader.entries) == scanned(world)


def test_at_no_time_does_a_reader_find_nothing_after_its_version_although_there_was_something(world: World) -> None:
    for number in range(4, 12):
        upload(world, number)
        world.compaction.compact()
        head = world.registry.head().version
        assert all(world.registry.changes_after(version) for version in range(head))


def test_a_removal_is_bounded_and_the_next_run_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knowledge.services.compaction._MOST_REMOVED", 1)
    world.compaction.compact()
    upload(world, 4)
    assert world.compaction.compact().removed_entries == 1
    assert log_versions(world) == [2, 3, 4]
    assert world.compaction.compact().removed_entries == 1
    assert world.compaction.compact().removed_entries == 0
    assert log_versions(world) == [3, 4]


# Snapshots that cannot be used


def damage_missing(world: World, pointer: SnapshotPointer) -> None:
    world.objects.delete(pointer.key)


def damage_torn(world: World, pointer: SnapshotPointer) -> None:
    overwrite(world, pointer.key, body_of(world, pointer.key)[:-1])


def damage_longer(world: World, pointer: SnapshotPointer) -> None:
    overwrite(world, pointer.key, body_of(world, pointer.key) + b"\0")


def damage_tampered(world: World, pointer: SnapshotPointer) -> None:
    body = bytearray(body_of(world, pointer.key))
    body[-1] ^= 1
    overwrite(world, pointer.key, bytes(body))


def rewritten(old: bytes, new: bytes) -> Any:
    """Another content with a pointer that vouches for it: what another build, or a mistake of ours, would write."""

    def damage(world: World, pointer: SnapshotPointer) -> None:
        body = body_of(world, pointer.key)
        assert old in body
        body = body.replace(old, new, 1)
        overwrite(world, pointer.key, body)
        head = world.registry.head()
        right = replace(pointer, size_bytes=len(body), sha256=hashlib.sha256(body).hexdigest())
        snapshots = [right if one == pointer else one for one in head.snapshots]
        world.registry.publish(snapshots, instead_of=head.snapshots)

    return damage


DAMAGES = {
    "missing": (damage_missing, "missing"),
    "torn": (damage_torn, "torn"),
    "longer": (damage_longer, "torn"),
    "tampered": (damage_tampered, "checksum"),
    "old format": (rewritten(b'"format": 1', b'"format": 0'), "format"),
    "no format": (rewritten(b'"format": 1', b'"form": 1'), "format"),
    "no header": (rewritten(b'{"format"', b'["format"'), "format"),
    "another version": (rewritten(b'"version": ', b'"version": 9'), "format"),
    "no index": (rewritten(b"\n", b"\nx"), "format"),
    "another base": (rewritten(b"knowledge_base/", b"another_base/"), "prefix"),
}
each_damage = pytest.mark.parametrize(("damage", "cause"), DAMAGES.values(), ids=DAMAGES)


@each_damage
def test_a_snapshot_that_cannot_be_used_is_noticed_and_the_previous_one_is_read_I08(
    world: World, caplog: pytest.LogCaptureFixture, damage: Any, cause: str
) -> None:
    world.compaction.compact()
    upload(world, 4)
    world.compaction.compact()
    delete(world, 1)
    newest = world.registry.head().snapshots[0]
    damage(world, newest)
    caplog.set_level(logging.INFO)
    world.reset_counts()
    index = cold(world)
    assert "list" not in world.objects.calls
    assert list(index.entries) == scanned(world)
    (unusable,) = events(caplog, "catalog_snapshot_unusable")
    assert (unusable["levelname"], unusable["cause"], unusable["key"]) == ("WARNING", cause, newest.key)
    assert [event["source"] for event in events(caplog, "catalog_loaded")] == ["snapshot"]


@each_damage
def test_when_both_cannot_be_used_the_files_are_read_and_compaction_repairs_it_I08(
    world: World, caplog: pytest.LogCaptureFixture, damage: Any, cause: str
) -> None:
    world.compaction.compact()
    upload(world, 4)
    world.compaction.compact()
    upload(world, 5)
    for pointer in world.registry.head().snapshots:
        damage(world, pointer)
    caplog.set_level(logging.INFO)
    assert list(cold(world).entries) == scanned(world)
    assert [event["cause"] for event in events(caplog, "catalog_snapshot_unusable")] == [cause, cause]
    assert [event["source"] for event in events(caplog, "catalog_loaded")] == ["scan"]
    result = world.compaction.compact()
    assert (result.source, result.is_written, result.removed_entries) == ("scan", True, 0)
    assert len(world.registry.head().snapshots) == 1, "none that cannot be used is kept"
    caplog.clear()
    assert list(cold(world).entries) == scanned(world)
    assert [event["source"] for event in events(caplog, "catalog_loaded")] == ["snapshot"]


@each_damage
def test_a_newest_snapshot_that_cannot_be_used_is_replaced_however_little_is_new(
    world: World, damage: Any, cause: str
) -> None:
    world.compaction.compact()
    upload(world, 4)
    world.compaction.compact()
    newest, previous = world.registry.head().snapshots
    damage(world, newest)
    result = world.compaction.compact(least_changes=1000)
    assert (result.is_written, result.changes, result.version) == (True, 0, 4)
    replaced, kept = world.registry.head().snapshots
    assert (replaced.version, kept) == (4, previous)
    assert replaced.key != newest.key
    assert not world.compaction.compact().is_written


def test_a_refused_object_is_a_snapshot_that_cannot_be_used_and_an_outage_is_not(world: World) -> None:
    world.compaction.compact()
    read = world.objects._adapter.read

    def refuse(key: str, *, max_bytes: int) -> Any:
        if key.startswith(FOLDER):
            raise AccessRefused("S3", "refused the call (AccessDenied)")
        return read(key, max_bytes=max_bytes)

    world.objects._adapter.read = refuse
    assert list(cold(world).entries) == scanned(world)
    world.objects.broken.add("read")
    index, _ = world.instance()
    world.reset_counts()
    with pytest.raises(DependencyUnavailable):
        index.load()
    assert "list" not in world.objects.calls


# Logs that cannot be used


def test_a_missing_entry_behind_the_snapshot_is_a_gap_and_the_files_are_read_I08(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.compaction.compact()
    upload(world, 4)
    upload(world, 5)
    warm = cold(world)
    upload(world, 6)
    upload(world, 7)
    del world.registry._adapter._log[5]
    del world.registry._adapter._log[3]
    assert log_versions(world) == [1, 2, 3, 5, 7]
    warm.refresh()
    assert list(warm.entries) == list(cold(world).entries) == scanned(world)
    assert [event["cause"] for event in events(caplog, "catalog_snapshot_unusable")] == ["gap", "gap"]


def test_a_log_that_ends_before_its_head_is_a_gap_for_who_starts_I08(world: World) -> None:
    world.compaction.compact()
    upload(world, 4)
    del world.registry._adapter._log[3]
    assert list(cold(world).entries) == scanned(world)
    assert world.compaction.compact().source == "scan"
    world.registry._adapter._log.clear()
    for pointer in world.registry.head().snapshots:
        damage_missing(world, pointer)
    assert world.compaction.compact().source == "scan", "an empty log with a head is no empty catalog"
    assert list(cold(world).entries) == scanned(world)


def test_an_entry_that_cannot_be_read_takes_nothing_else_with_it_I08(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    warm = cold(world)
    world.compaction.compact()
    caplog.clear()
    upload(world, 4)
    upload(world, 5)
    world.registry._adapter._log[3] = CatalogChange(4, {}, problem="LOG#000000000004 cannot be read")
    warm.refresh()
    assert list(warm.entries) == list(cold(world).entries) == scanned(world)
    (unusable,) = events(caplog, "catalog_log_unusable")
    assert (unusable["cause"], unusable["reason"]) == ("entry", "LOG#000000000004 cannot be read")
    assert {event["source"] for event in events(caplog, "catalog_loaded")} == {"scan"}
    caplog.clear()
    assert world.compaction.compact().source == "scan"
    assert list(cold(world).entries) == scanned(world)
    assert [event["source"] for event in events(caplog, "catalog_loaded")] == ["snapshot"]


@pytest.mark.parametrize("damage", ["unreadable", "missing"])
def test_what_an_entry_said_that_cannot_be_read_is_taken_from_the_file_and_the_rest_from_the_log_I08(
    world: World, damage: str
) -> None:
    world.upload("a/1.md", markdown("K_NEW"))
    upload(world, 5)
    world.drop("knowledge_base/a/1.md", markdown("K_NEWER"))
    world.drop("knowledge_base/a/5.md", markdown("K_NOT_COMMITTED"))
    changes = {"unreadable": [CatalogChange(4, {}, problem="LOG#000000000004 cannot be read")], "missing": []}
    world.registry._adapter._log[3:4] = changes[damage]
    keywords = {entry.file_path[-4:]: entry.keywords for entry in cold(world).entries}
    assert keywords == {"1.md": ("K_NEWER",), "2.md": ("K_2",), "3.md": ("K_3",), "5.md": ("K_5",)}


def test_an_entry_that_cannot_be_read_and_comes_during_a_scan_is_left_out_with_an_error(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def meanwhile() -> None:
        upload(world, 4)
        upload(world, 5)
        world.registry._adapter._log[3] = CatalogChange(4, {}, problem="LOG#000000000004 cannot be read")

    world.objects.before["list"] = meanwhile
    index = cold(world)
    assert "knowledge_base/a/5.md" in [entry.file_path for entry in index.entries]
    (left_out,) = events(caplog, "catalog_entry_unreadable")
    assert (left_out["levelname"], left_out["version"]) == ("ERROR", 4)
    index.refresh()


def test_replaying_what_the_snapshot_holds_changes_nothing_I08(world: World) -> None:
    delete(world, 1)
    upload(world, 1)
    world.compaction.compact()
    assert log_versions(world) == [1, 2, 3, 4, 5]
    index = cold(world)
    assert list(index.entries) == scanned(world)
    world.registry._adapter._log.append(CatalogChange(2, {"knowledge_base/a/1.md": None}))
    index.refresh()
    assert list(index.entries) == list(cold(world).entries) == scanned(world)


def test_a_catalog_that_cannot_be_loaded_anew_is_not_tried_by_each_lookup(world: World) -> None:
    now = [100.0]
    world.index._clock = lambda: now[0]
    world.index.load()
    upload(world, 4)
    upload(world, 5)
    del world.registry._adapter._log[3]
    world.objects.broken.add("list")
    world.reset_counts()
    for _ in range(5):
        with pytest.raises(CorruptState):
            world.index.refresh()
    assert world.registry.calls["head"] == 1
    assert len(world.index.entries) == 3, "answers go on from what was there"
    world.objects.broken.clear()
    now[0] += 2.0
    world.index.refresh()
    assert list(world.index.entries) == scanned(world)


# Crashes and races


@pytest.mark.parametrize("after_effect", [False, True])
def test_a_run_that_dies_before_it_publishes_harms_nobody_and_its_object_goes_later_I08(
    world: World, after_effect: bool
) -> None:
    world.compaction.compact()
    upload(world, 4)
    broken = world.objects.broken_after_effect if after_effect else world.registry.broken
    broken.add("put" if after_effect else "publish")
    with pytest.raises(DependencyUnavailable):
        world.compaction.compact()
    broken.clear()
    (orphan,) = set(objects(world)) - {world.registry.head().snapshots[0].key}
    assert list(cold(world).entries) == scanned(world)
    for number in (5, 6):
        upload(world, number)
        world.compaction.compact()
    assert orphan not in objects(world)
    assert len(objects(world)) == 2
    assert list(cold(world).entries) == scanned(world)


def test_a_run_that_published_without_hearing_so_keeps_its_snapshot_I08(world: World) -> None:
    world.registry.broken_after_effect.add("publish")
    with pytest.raises(DependencyUnavailable):
        world.compaction.compact()
    world.registry.broken_after_effect.clear()
    assert objects(world) == [world.registry.head().snapshots[0].key]
    assert not world.compaction.compact().is_written


@pytest.mark.parametrize("step", ["forget_before", "delete"])
def test_a_run_that_dies_before_it_removes_is_ended_by_the_next_one_I08(world: World, step: str) -> None:
    world.compaction.compact()
    upload(world, 4)
    world.compaction.compact()
    upload(world, 5)
    broken = world.registry.broken if step == "forget_before" else world.objects.broken
    broken.add(step)
    with pytest.raises(DependencyUnavailable):
        world.compaction.compact()
    broken.clear()
    assert list(cold(world).entries) == scanned(world)
    result = world.compaction.compact()
    assert (result.is_written, result.removed_objects) == (False, 1)
    assert (log_versions(world), len(objects(world))) == ([4, 5], 2)


@pytest.mark.parametrize("step", ["head", "changes_after", "put", "publish", "forget_before"])
def test_what_is_committed_during_a_compaction_is_neither_lost_nor_double_I08(world: World, step: str) -> None:
    world.compaction.compact()
    upload(world, 4)
    warm = cold(world)
    port = world.objects if step == "put" else world.registry

    def meanwhile() -> None:
        upload(world, 5)
        delete(world, 1)

    port.before[step] = meanwhile
    world.compaction.compact()
    warm.refresh()
    assert list(warm.entries) == list(cold(world).entries) == scanned(world)
    assert len(scanned(world)) == 4


def test_of_two_compactors_one_publishes_and_the_other_leaves_nothing_I08(world: World) -> None:
    world.compaction.compact()
    upload(world, 4)
    both_have_written, put = threading.Barrier(2), world.objects._adapter.put

    def put_and_wait(key: str, *args: Any, **kwargs: Any) -> Any:
        result = put(key, *args, **kwargs)
        if key.startswith(FOLDER):
            both_have_written.wait(10)
        return result

    world.objects._adapter.put = put_and_wait
    results = []
    threads = [threading.Thread(target=lambda: results.append(world.compaction.compact())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result.is_written for result in results) == [False, True]
    assert objects(world) == sorted(pointer.key for pointer in world.registry.head().snapshots)
    assert list(cold(world).entries) == scanned(world)


def test_an_object_that_another_compactor_may_be_about_to_publish_stays_I08(world: World) -> None:
    world.compaction.compact()
    upload(world, 4)
    seen: list[int] = []

    def meanwhile() -> None:
        upload(world, 5)
        world.compaction.compact()
        seen.append(len(objects(world)))

    world.registry.before["publish"] = meanwhile
    assert not world.compaction.compact().is_written
    assert (seen, len(objects(world))) == ([3], 2)


def test_who_starts_while_compaction_replaces_everything_begins_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.compaction.compact()
    caplog.set_level(logging.INFO)

    def meanwhile() -> None:
        for number in (4, 5, 6):
            upload(world, number)
            world.compaction.compact()

    world.objects.before["read"] = meanwhile
    index = cold(world)
    assert list(index.entries) == scanned(world)
    assert [event["cause"] for event in events(caplog, "catalog_snapshot_unusable")] == ["missing"]
    assert [event["source"] for event in events(caplog, "catalog_loaded")] == ["snapshot"]


def test_what_was_committed_while_another_lookup_loaded_anew_is_seen(world: World) -> None:
    world.index.load()
    upload(world, 4)
    upload(world, 5)
    del world.registry._adapter._log[3]
    has_read, may_go_on, changes_after = threading.Event(), threading.Event(), world.registry._adapter.changes_after

    def slow(version: int) -> Any:
        changes = changes_after(version)
        has_read.set()
        may_go_on.wait(10)
        return changes

    world.index._is_outdated = True
    world.registry._adapter.changes_after = slow
    world.index.start_loading()
    has_read.wait(10)
    upload(world, 6)
    threading.Timer(0.2, may_go_on.set).start()
    world.index.refresh()
    assert list(world.index.entries) == scanned(world)


def keep_writing(world: World, writer: int) -> None:
    for number in range(15):
        world.upload(f"t{writer}/{number}.md", markdown(f"W{writer}_{number}"))


def keep_compacting(world: World) -> None:
    for _ in range(15):
        world.compaction.compact()


def keep_reading(world: World, reader: KnowledgeIndex) -> None:
    for _ in range(30):
        reader.refresh()
        cold(world)


def test_compactors_writers_and_readers_at_the_same_time_agree_in_the_end_I08(world: World) -> None:
    readers = [cold(world) for _ in range(3)]

    with ThreadPoolExecutor() as threads:
        work = [threads.submit(keep_writing, world, number) for number in range(2)]
        work += [threads.submit(keep_compacting, world) for _ in range(3)]
        work += [threads.submit(keep_reading, world, reader) for reader in readers]
    for one in work:
        one.result()
    expected = scanned(world)
    assert len(expected) == 33
    for reader in readers:
        reader.refresh()
        assert list(reader.entries) == expected
    assert list(cold(world).entries) == expected


# What a process that loads a snapshot does not need

LOAD = """
import sys
from knowledge.adapters.memory import MemoryDocumentRegistry
from knowledge.adapters.memory_objects import MemoryObjectStore
from knowledge.domain.document import KnowledgeBasePath, KnowledgeEntry, doc_id_for
from knowledge.ports import DocumentChange
from knowledge.services.catalog import KnowledgeIndex
from knowledge.services.compaction import Compaction
objects, log, base = MemoryObjectStore(), MemoryDocumentRegistry(), KnowledgeBasePath("kb/")
entry = KnowledgeEntry("kb/a.md", "A", ("ERR_1",))
log.commit([DocumentChange(doc_id_for("kb/a.md"), "kb/a.md", None, None, entry)])
assert Compaction(objects, log, base, max_document_bytes=9).compact().is_written
index = KnowledgeIndex(objects, log, base, max_document_bytes=9)
index.load()
assert index.exact_match("what is ERR_1") == [entry]
print(*{"yaml", "frontmatter", "markdown_it", "semantic_text_splitter", "pydantic", "boto3"} & set(sys.modules))
"""


def test_a_snapshot_is_loaded_without_a_parser_in_memory() -> None:
    output = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True)
    assert output.stdout.split() == []
