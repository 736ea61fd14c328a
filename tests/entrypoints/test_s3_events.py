import json
import logging
from typing import Any
from urllib.parse import quote_plus

import pytest

from knowledge.domain.document import DocumentStatus, doc_id_for
from knowledge.entrypoints.s3_events import IndexerServices, build_handler, paths_in
from knowledge.errors import AccessRefused
from tests.entrypoints.events import Context
from tests.services.world import READER, World, markdown


def s3_record(key: str, name: str = "ObjectCreated:Put", **fields: Any) -> dict[str, Any]:
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "eventName": name,
        "s3": {"bucket": {"name": "kb"}, "object": {"key": quote_plus(key, safe="/"), **fields}},
    }


def message(body: object, message_id: str = "m1", receive_count: int = 1) -> dict[str, Any]:
    return {
        "messageId": message_id,
        "receiptHandle": "h",
        "body": body if isinstance(body, str) else json.dumps(body),
        "attributes": {"ApproximateReceiveCount": str(receive_count)},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:queue",
        "awsRegion": "eu-west-1",
    }


def dropped(key: str, message_id: str = "m1", **options: Any) -> dict[str, Any]:
    return message({"Records": [s3_record(key)]}, message_id, **options)


@pytest.fixture
def world() -> World:
    return World()


def deliver(world: World, *messages: dict[str, Any], remaining_ms: int = 28_000) -> list[str]:
    """The ids that come back."""
    handler = build_handler(
        lambda: IndexerServices(world.converger, world.item_documents, world.queue, max_receive_count=5)
    )
    answer = handler({"Records": list(messages)}, Context(remaining_ms=remaining_ms))
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


@pytest.mark.parametrize(
    "key",
    [
        "knowledge_base/docs/How to deploy (v2).md",
        "knowledge_base/文档/部署 指南.md",
        "knowledge_base/a+b.md",
        "knowledge_base/100%25.md",
        "knowledge_base/e\u0301.md",
        "knowledge_base/x#1&y=2.md",
    ],
)
def test_a_dropped_file_is_indexed_under_its_true_key_and_removed_again_B01(world: World, key: str) -> None:
    world.drop(key, markdown("ERR_77"))
    assert deliver(world, dropped(key)) == []
    assert world.reader.get_document(READER, doc_id_for(key)).file_path == key
    assert world.ask("ERR_77").primary is not None
    world.objects.delete(key)
    removed = message({"Records": [s3_record(key, "ObjectRemoved:DeleteMarkerCreated")]})
    assert deliver(world, removed) == []
    assert not world.ask("ERR_77").found


def test_the_test_event_is_acknowledged_and_rubbish_comes_back_alone_B03(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.drop("knowledge_base/a.md", markdown("ERR_77"))
    failed = deliver(
        world,
        message({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "kb"}, "test"),
        dropped("knowledge_base/a.md", "good"),
        message("not json", "rubbish"),
        message({"Records": []}, "empty"),
        message({"Type": "Notification", "Message": "{}"}, "foreign"),
        message("[" * 100_000, "deep"),
    )
    assert failed == ["rubbish", "foreign", "deep"]
    assert world.ask("ERR_77").primary is not None
    assert any(record.message == "message_unusable" for record in caplog.records)


def test_the_end_state_is_that_of_the_bucket_whatever_the_order_of_events_B04(world: World) -> None:
    key = "knowledge_base/a.md"
    world.drop(key, markdown("ERR_77"))
    world.objects.delete(key)
    events = [
        message(
            {"Records": [s3_record(key, "ObjectRemoved:DeleteMarkerCreated", sequencer="0055AED6DCD90281E6")]}, "1"
        ),
        message({"Records": [s3_record(key, sequencer="0055AED6DCD90281E5")]}, "2"),
        message({"Records": [s3_record(key, sequencer="0A")]}, "3"),
    ]
    assert deliver(world, *events) == []
    assert not world.ask("ERR_77").found
    world.drop(key, markdown("ERR_78"))
    assert deliver(world, *reversed(events)) == []
    assert world.ask("ERR_78").primary is not None


def test_a_message_comes_back_until_old_vectors_are_removed_D03(world: World) -> None:
    key = "knowledge_base/a.md"
    world.drop(key, markdown("ERR_77"))
    assert deliver(world, dropped(key)) == []
    world.objects.delete(key)
    world.vectors.broken.add("delete")
    removed = message({"Records": [s3_record(key, "ObjectRemoved:DeleteMarkerCreated")]}, "gone")
    assert deliver(world, removed) == ["gone"]
    assert not world.ask("ERR_77").found
    assert deliver(world, removed) == ["gone"]
    world.vectors.broken.clear()
    assert deliver(world, removed) == []
    assert world.chunks("ERR_77") == []


@pytest.mark.parametrize("key", ["knowledge_base/docs/team/", "knowledge_base/.DS_Store", "knowledge_base/photo.png"])
def test_folder_markers_and_other_types_are_ignored_quietly_B06(
    world: World, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.drop(key, b"")
    assert deliver(world, dropped(key)) == []
    assert world.registry.head().version == 0
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_second_delivery_is_one_look_and_no_write_B08(world: World) -> None:
    world.drop("knowledge_base/a.md", markdown("ERR_77"))
    deliver(world, dropped("knowledge_base/a.md"))
    head = world.registry.head().version
    deliver(world, dropped("knowledge_base/a.md"), dropped("knowledge_base/a.md", "m2"))
    assert world.registry.head().version == head
    assert world.embedder.calls["embed_passages"] == 1


@pytest.mark.parametrize(
    "name", ["ObjectRemoved:Delete", "ObjectRemoved:DeleteMarkerCreated", "LifecycleExpiration:DeleteMarkerCreated"]
)
def test_every_kind_of_removal_is_a_look_at_the_key_B10(world: World, name: str) -> None:
    key = "knowledge_base/a.md"
    world.drop(key, markdown("ERR_77"))
    deliver(world, dropped(key))
    assert deliver(world, message({"Records": [s3_record(key, name)]})) == []
    assert world.ask("ERR_77").primary is not None, "an old version went; the current one is still there"
    world.objects.delete(key)
    deliver(world, message({"Records": [s3_record(key, name)]}))
    assert not world.ask("ERR_77").found


def test_only_the_failed_messages_come_back_F07(world: World) -> None:
    keys = [f"knowledge_base/{n}.md" for n in range(10)]
    for key in keys:
        world.drop(key, markdown(f"ERR_{key[15]}"))
    fail_on = keys[4]
    stat = world.objects._adapter.stat

    def failing(key: str) -> object:
        if key == fail_on:
            from knowledge.errors import DependencyUnavailable

            raise DependencyUnavailable("S3", "injected")
        return stat(key)

    world.objects._adapter.stat = failing
    messages = [dropped(key, f"m{n}") for n, key in enumerate(keys)]
    messages[7] = message("malformed", "m7")
    assert deliver(world, *messages) == ["m4", "m7"]
    (change,) = world.registry.changes_after(0)
    assert list(change.entries) == [key for key in keys if key not in (keys[4], keys[7])]


def test_an_unforeseen_error_comes_back_alone_and_is_logged_with_its_trace_N5(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = "knowledge_base/good.md", "knowledge_base/bad.md"
    for key in (bad, good):
        world.drop(key, markdown("ERR_77"))
    stat = world.objects._adapter.stat
    world.objects._adapter.stat = lambda key: stat(key) if key == good else 1 // 0
    assert deliver(world, dropped(bad, "m1"), dropped(good, "m2")) == ["m1"]
    assert world.ask("ERR_77").primary is not None
    (logged,) = [record for record in caplog.records if record.message == "document_not_converged"]
    assert logged.exc_info


def test_the_same_file_named_by_many_messages_is_one_look_B08(world: World) -> None:
    world.drop("knowledge_base/a.md", markdown("ERR_77"))
    assert deliver(world, *(dropped("knowledge_base/a.md", f"m{n}") for n in range(10))) == []
    assert (world.objects.calls["stat"], world.registry.calls["commit"]) == (1, 1)


def test_messages_without_a_turn_go_back_as_new_once_and_those_that_failed_before_come_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, now = [f"knowledge_base/{n}.md" for n in range(3)], [0.0]
    for key in keys:
        world.drop(key, markdown(f"ERR_{key[15]}", body=f"Text of {key}."))
    monkeypatch.setattr("knowledge.entrypoints.s3_events.time.monotonic", lambda: now[0])
    world.converger._clock = world.preparation.vectors._clock = lambda: now[0]
    embed = world.embedder._adapter.embed_passages

    def slowly(texts: list[str]) -> Any:
        now[0] += 25.0
        return embed(texts)

    world.embedder._adapter.embed_passages = slowly
    fresh = [dropped(key, f"m{key}") for key in (keys[0], keys[1], keys[1])]
    assert deliver(world, *fresh, dropped(keys[2], receive_count=2)) == []
    assert world.reader.get_document(READER, doc_id_for(keys[2])).status is DocumentStatus.INDEXED
    assert world.queue.bodies == [one["body"] for one in fresh[:2]]
    assert len(world.reader.list_documents(READER).records) == 1


def test_a_batch_of_one_that_fails_names_it_F07(world: World) -> None:
    assert deliver(world, message("malformed", "only")) == ["only"]


def test_a_failing_embedder_is_retried_and_at_the_last_delivery_marked_failed(world: World) -> None:
    key = "knowledge_base/a.md"
    world.drop(key, markdown("ERR_77"))
    world.embedder.broken.add("embed_passages")
    assert deliver(world, dropped(key)) == ["m1"]
    assert world.reader.get_document(READER, doc_id_for(key)).status is DocumentStatus.PENDING
    assert deliver(world, dropped(key, receive_count=5)) == ["m1"]
    record = world.reader.get_document(READER, doc_id_for(key))
    assert record.status is DocumentStatus.FAILED
    assert record.reason
    assert world.ask("ERR_77").primary is not None


def test_a_malformed_document_is_not_retried_A04(world: World) -> None:
    world.drop("knowledge_base/a.md", "---\ntitle: @team handbook\n---\nText of the team.")
    assert deliver(world, dropped("knowledge_base/a.md")) == []
    record = world.reader.get_document(READER, doc_id_for("knowledge_base/a.md"))
    assert any("line 2" in warning for warning in record.warnings)


def test_without_time_to_embed_the_keywords_are_served_and_the_document_goes_on_at_once(world: World) -> None:
    world.drop("knowledge_base/a.md", markdown("ERR_77"))
    message_ = dropped("knowledge_base/a.md")
    assert deliver(world, message_, remaining_ms=1_000) == []
    assert world.queue.bodies == [message_["body"]]
    assert world.ask("ERR_77").primary is not None
    assert deliver(world, dropped("knowledge_base/a.md")) == []
    assert world.reader.get_document(READER, doc_id_for("knowledge_base/a.md")).status is DocumentStatus.INDEXED


def test_a_large_document_is_finished_however_many_deliveries_it_takes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, now = "knowledge_base/a.md", [0.0]
    world.drop(key, "\n\n".join(f"## Part {n}\n\nText of part {n}." for n in range(200)))
    monkeypatch.setattr("knowledge.entrypoints.s3_events.time.monotonic", lambda: now[0])
    world.converger._clock = world.preparation.vectors._clock = lambda: now[0]
    embed = world.embedder._adapter.embed_passages

    def slowly(texts: list[str]) -> Any:
        now[0] += 1.25 * len(texts)
        return embed(texts)

    world.embedder._adapter.embed_passages = slowly
    bodies = [dropped(key)["body"]]
    deliveries = 0
    while bodies:
        deliveries += 1
        assert deliver(world, message(json.loads(bodies.pop()))) == []
        bodies, world.queue.bodies = world.queue.bodies, []
    assert deliveries == 13
    record = world.reader.get_document(READER, doc_id_for(key))
    assert (record.status, record.embedded_count) == (DocumentStatus.INDEXED, 200)


def test_an_object_that_cannot_be_had_is_failed_with_the_reason_and_blocks_nobody_N5(world: World) -> None:
    archived, other = "knowledge_base/archived.md", "knowledge_base/other.md"
    for key in (archived, other):
        world.drop(key, markdown("ERR_77"))
    read = world.objects._adapter.read

    def refusing(key: str, **options: Any) -> Any:
        if key == archived:
            raise AccessRefused("S3", "refused the call (InvalidObjectState)")
        return read(key, **options)

    world.objects._adapter.read = refusing
    assert deliver(world, dropped(archived, "m1"), dropped(other, "m2")) == []
    record = world.reader.get_document(READER, doc_id_for(archived))
    assert record.status is DocumentStatus.FAILED
    assert record.reason is not None
    assert "InvalidObjectState" in record.reason
    index, _ = world.instance()
    index.load()
    assert [entry.file_path for entry in index.entries] == [other]
    world.objects._adapter.read = read
    assert deliver(world, dropped(archived)) == []
    assert world.reader.get_document(READER, doc_id_for(archived)).status is DocumentStatus.INDEXED


def test_keys_are_decoded_exactly_once_B01() -> None:
    body = json.dumps({"Records": [s3_record("knowledge_base/100%2B.md")]})
    assert paths_in(body) == ["knowledge_base/100%2B.md"]
