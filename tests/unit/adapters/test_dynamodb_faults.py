from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from knowledge.adapters.dynamodb_catalog_log import DynamoCatalogLog
from knowledge.adapters.dynamodb_items import attributes
from knowledge.adapters.dynamodb_principals import DynamoPrincipalStore
from knowledge.adapters.dynamodb_registry import DynamoDocumentRegistry
from knowledge.adapters.dynamodb_shapes import document_from_item, document_to_item, snapshots_to_attribute
from knowledge.domain.access import Principal, Role
from knowledge.domain.document import DocId, Generation
from knowledge.errors import Conflict, CorruptState, DependencyUnavailable, InvalidInput, TooLarge, VersionConflict
from knowledge.ports import MAX_CHANGES, SnapshotPointer
from tests.contract.builders import change, entry, record
from tests.unit.adapters.aws import ScriptedClient, cancelled, refused

TABLE = "table"
TIMEOUT = ReadTimeoutError(endpoint_url="https://dynamodb.example")
FAILED = "ConditionalCheckFailed"


def head(version: int) -> dict[str, Any]:
    return {"Item": attributes({"pk": "CATALOG", "sk": "HEAD", "version": version})}


def log_item_written(calls: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    (items,) = [parameters["TransactItems"] for name, parameters in calls if name == "transact_write_items"]
    return {"Item": items[1]["Put"]["Item"]}


def registry(client: ScriptedClient, sleeps: list[float] | None = None) -> DynamoDocumentRegistry:
    waited = [] if sleeps is None else sleeps
    return DynamoDocumentRegistry(client, TABLE, sleep=waited.append, random=lambda: 0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "reasons",
    [
        (FAILED, "None", "None"),
        ("None", FAILED, "None"),
        ("TransactionConflict", "None", "None"),
        (FAILED, "None", "TransactionConflict"),
        ("None", "None", "ThrottlingError"),
        ("None", "ProvisionedThroughputExceeded", "None"),
    ],
)
def test_a_commit_that_lost_the_head_tries_again_with_the_new_one(reasons: tuple[str, ...]) -> None:
    client = ScriptedClient(get_item=[{}, head(7)], transact_write_items=[cancelled(*reasons), {}])
    sleeps: list[float] = []
    registry(client, sleeps).commit([change(None, record())])
    writes = [parameters["TransactItems"] for name, parameters in client.calls if name == "transact_write_items"]
    numbers = [items[1]["Put"]["Item"]["sk"]["S"] for items in writes]
    assert numbers == ["LOG#000000000001", "LOG#000000000008"]
    assert sleeps == [0.005]
    assert client.unused == []


@pytest.mark.parametrize("reasons", [("None", "None", FAILED), (FAILED, FAILED, FAILED)])
def test_a_changed_record_is_a_conflict_at_once(reasons: tuple[str, ...]) -> None:
    client = ScriptedClient(get_item=[head(1)], transact_write_items=[cancelled(*reasons)])
    with pytest.raises(VersionConflict):
        registry(client).commit([change(record(), record())])


def test_the_documents_of_a_set_that_lost_are_named() -> None:
    gone, new, old = record("kb/gone.md", generation=Generation("g")), record("kb/new.md"), record("kb/old.md")
    # Two items of the log, three of the first document, two of the second, one of the third.
    codes = [FAILED, FAILED, "None", "None", "None", "None", FAILED, FAILED]
    client = ScriptedClient(get_item=[head(1)], transact_write_items=[cancelled(*codes)])
    with pytest.raises(VersionConflict) as caught:
        registry(client).commit([change(gone, None), change(None, new), change(old, record("kb/old.md"))])
    assert caught.value.paths == ("kb/new.md", "kb/old.md")
    assert len(client.calls[-1][1]["TransactItems"]) == len(codes)


def test_contention_without_end_gives_up_after_growing_waits() -> None:
    lost = cancelled(FAILED, FAILED, "None")
    client = ScriptedClient(get_item=[head(1)] * 50, transact_write_items=[lost] * 50)
    sleeps: list[float] = []
    with pytest.raises(DependencyUnavailable):
        registry(client, sleeps).commit([change(None, record())])
    assert sleeps[:4] == [0.005, 0.01, 0.02, 0.04]
    assert max(sleeps) == 0.16
    assert sum(sleeps) < 5.0


@pytest.mark.parametrize("code", ["ValidationError", "ItemCollectionSizeLimitExceeded"])
def test_values_that_dynamodb_refuses_are_the_callers_mistake(code: str) -> None:
    client = ScriptedClient(get_item=[{}], transact_write_items=[cancelled(code, "None", "None")])
    with pytest.raises(InvalidInput):
        registry(client).commit([change(None, record())])


@pytest.mark.parametrize("code", ["ValidationException", "SerializationException"])
def test_a_refused_request_is_the_callers_mistake(code: str) -> None:
    client = ScriptedClient(get_item=[{}], transact_write_items=[refused(code)])
    with pytest.raises(InvalidInput):
        registry(client).commit([change(None, record())])


@pytest.mark.parametrize(
    "error", [cancelled(), cancelled("SomethingNew", "None", "None"), refused("AccessDenied", 403)]
)
def test_a_cancellation_for_unknown_reasons_is_an_unavailable_dependency(error: Exception) -> None:
    client = ScriptedClient(get_item=[{}], transact_write_items=[error])
    with pytest.raises(DependencyUnavailable):
        registry(client).commit([change(None, record())])


@pytest.mark.parametrize("fields", [{"metadata": {"x": "字" * 150_000}}, {"title": "x" * 450_000}])
def test_a_record_over_the_limit_is_refused_before_any_call_C01(fields: dict[str, Any]) -> None:
    with pytest.raises(TooLarge) as caught:
        registry(ScriptedClient()).commit([change(None, record(**fields))])
    assert caught.value.size_bytes > caught.value.max_bytes == 409_600


def test_an_entry_over_the_limit_is_refused_before_any_call_C01() -> None:
    too_many = entry(keywords=tuple(f"{n:04}" + "k" * 200 for n in range(3000)))
    with pytest.raises(TooLarge):
        registry(ScriptedClient()).commit([change(None, record(), entry=too_many)])


@pytest.mark.parametrize(("keyword_bytes", "metadata_bytes"), [(20_000, 100), (100, 140_000)])
def test_a_set_over_the_limits_is_refused_before_any_call_C01(keyword_bytes: int, metadata_bytes: int) -> None:
    changes = [
        change(
            None,
            record(f"kb/{n}.md", metadata={"x": "字" * (metadata_bytes // 3)}),
            entry=entry(f"kb/{n}.md", keywords=("k" * keyword_bytes,)),
        )
        for n in range(MAX_CHANGES)
    ]
    with pytest.raises(TooLarge):
        registry(ScriptedClient()).commit(changes)
    client = ScriptedClient(get_item=[{}], transact_write_items=[{}])
    registry(client).commit(changes[: MAX_CHANGES // 2])


@pytest.mark.parametrize(
    "fault", [TIMEOUT, refused("InternalServerError", 500), refused("TransactionInProgressException", retries=2)]
)
def test_a_commit_that_failed_after_it_took_effect_is_a_commit(fault: Exception) -> None:
    client = ScriptedClient(get_item=[head(7), log_item_written], transact_write_items=[fault])
    registry(client).commit([change(None, record("kb/a.md")), change(record("kb/b.md"), None)])
    assert client.calls[-1][1]["Key"] == attributes({"pk": "CATALOG", "sk": "LOG#000000000008"})
    assert client.unused == []


def somebody_elses(calls: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    item = log_item_written(calls)["Item"]
    return {"Item": {**item, "commit_id": {"S": "somebody else's"}}}


@pytest.mark.parametrize("stored", [{}, somebody_elses])
def test_a_commit_that_failed_without_effect_is_an_unavailable_dependency(stored: Any) -> None:
    client = ScriptedClient(get_item=[{}, stored], transact_write_items=[TIMEOUT])
    with pytest.raises(DependencyUnavailable):
        registry(client).commit([change(None, record())])
    assert client.unused == []


def test_a_commit_that_cannot_be_checked_is_an_unavailable_dependency() -> None:
    client = ScriptedClient(get_item=[{}, TIMEOUT], transact_write_items=[TIMEOUT])
    with pytest.raises(DependencyUnavailable):
        registry(client).commit([change(None, record())])


def answer(*ids: str, left: tuple[str, ...] = ()) -> dict[str, Any]:
    items = [attributes({"pk": f"DOC#{name}", "sk": "META", "doc_id": name, "generation": "g"}) for name in ids]
    keys = [attributes({"pk": f"DOC#{name}", "sk": "META"}) for name in left]
    return {"Responses": {TABLE: items}, "UnprocessedKeys": {TABLE: {"Keys": keys}} if keys else {}}


def test_keys_that_were_not_processed_are_asked_for_again() -> None:
    client = ScriptedClient(batch_get_item=[answer("a", left=("b", "c")), answer(left=("b", "c")), answer("b", "c")])
    found = registry(client).generations([DocId("a"), DocId("b"), DocId("c")])
    assert found == dict.fromkeys([DocId("a"), DocId("b"), DocId("c")], Generation("g"))


def test_keys_that_are_never_processed_are_an_unavailable_dependency() -> None:
    client = ScriptedClient(batch_get_item=[answer(left=("a",))] * 50)
    with pytest.raises(DependencyUnavailable):
        registry(client).generations([DocId("a")])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", {"S": "DANCING"}),
        ("metadata", {"S": "{not json"}),
        ("metadata", {"S": "[1]"}),
        ("created_at", {"S": "2026-04-14T08:30:00"}),
        ("chunk_count", {"S": "many"}),
        ("revision", {"NULL": True}),
        ("warnings", {"M": {}}),
    ],
)
def test_a_record_that_cannot_be_read_is_named_by_its_key(name: str, value: Any) -> None:
    stored = record()
    with pytest.raises(CorruptState) as caught:
        document_from_item({**document_to_item(stored), name: value})
    assert f"DOC#{stored.doc_id} META" in str(caught.value)
    assert name in str(caught.value)


def test_attributes_of_a_later_version_are_ignored() -> None:
    stored = record()
    assert document_from_item({**document_to_item(stored), "later": {"S": "x"}}) == stored


def test_no_number_is_stored_as_a_float_and_texts_stay_readable_C02() -> None:
    item = document_to_item(record(metadata={"ratio": 0.1, "name": "支付"}))
    assert item["metadata"] == {"S": '{"ratio": 0.1, "name": "支付"}'}
    assert [value["N"] for value in item.values() if "N" in value] == ["1234", "0", "0", "1"]


def test_a_head_that_cannot_be_read_is_named() -> None:
    broken = {"Item": {"pk": {"S": "CATALOG"}, "sk": {"S": "HEAD"}, "version": {"S": "x"}}}
    with pytest.raises(CorruptState, match="CATALOG HEAD"):
        DynamoCatalogLog(ScriptedClient(get_item=[broken]), TABLE).head()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expires_at", "found"),
    [(None, True), (1001, True), (1000, False), (999, False)],
)
def test_a_token_is_known_until_its_time_is_over(expires_at: int | None, found: bool) -> None:
    values = {"pk": "TOKEN#abc", "sk": "TOKEN", "name": "agent", "role": "reader"}
    item = attributes(values if expires_at is None else {**values, "expires_at": expires_at})
    store = DynamoPrincipalStore(ScriptedClient(get_item=[{"Item": item}]), TABLE, now_s=lambda: 1000.0)  # type: ignore[arg-type]
    assert (store.find("abc") == Principal("agent", Role.READER)) is found


def test_a_principal_with_an_unknown_role_is_corrupt() -> None:
    item = attributes({"pk": "TOKEN#abc", "sk": "TOKEN", "name": "agent", "role": "emperor"})
    store = DynamoPrincipalStore(ScriptedClient(get_item=[{"Item": item}]), TABLE)  # type: ignore[arg-type]
    with pytest.raises(CorruptState):
        store.find("abc")


POINTER = SnapshotPointer(7, "_index/catalog/7", "00", 12, datetime(2026, 4, 14, tzinfo=UTC))
PUBLISHED = {"Item": {**head(7)["Item"], "snapshots": snapshots_to_attribute([POINTER])}}


def log(client: ScriptedClient, sleeps: list[float] | None = None) -> DynamoCatalogLog:
    waited = [] if sleeps is None else sleeps
    return DynamoCatalogLog(client, TABLE, sleep=waited.append, random=lambda: 0.5)  # type: ignore[arg-type]


def test_a_snapshot_is_published_although_a_commit_was_at_the_head() -> None:
    client = ScriptedClient(update_item=[refused("TransactionConflictException"), {}])
    sleeps: list[float] = []
    log(client, sleeps).publish([POINTER], instead_of=[])
    assert (sleeps, client.unused) == ([0.005], [])


def test_a_snapshot_that_was_published_by_an_unanswered_try_is_published() -> None:
    client = ScriptedClient(update_item=[refused("ConditionalCheckFailedException")], get_item=[PUBLISHED])
    log(client).publish([POINTER], instead_of=[])
    assert client.unused == []


def test_a_snapshot_that_lost_is_a_conflict() -> None:
    other = replace(POINTER, key="_index/catalog/8")
    client = ScriptedClient(update_item=[refused("ConditionalCheckFailedException")], get_item=[PUBLISHED])
    with pytest.raises(Conflict):
        log(client).publish([other], instead_of=[])


@pytest.mark.parametrize("fault", [TIMEOUT, refused("InternalServerError", 500), refused("AccessDenied", 403)])
def test_whether_a_snapshot_was_published_may_stay_unknown(fault: Exception) -> None:
    with pytest.raises(DependencyUnavailable):
        log(ScriptedClient(update_item=[fault])).publish([POINTER], instead_of=[])


class PagedClient(ScriptedClient):
    """A client that is its own paginator."""

    def get_paginator(self, operation: str) -> "PagedClient":
        return self


def test_entries_that_were_not_removed_are_removed_again() -> None:
    keys = [attributes({"pk": "CATALOG", "sk": f"LOG#{number:012d}"}) for number in (1, 2)]
    left = {"UnprocessedItems": {TABLE: [{"DeleteRequest": {"Key": keys[1]}}]}}
    client = PagedClient(paginate=[[{"Items": keys}]], batch_write_item=[left, {}])
    sleeps: list[float] = []
    assert log(client, sleeps).forget_before(3, limit=10) == 2
    requests = [p["RequestItems"][TABLE] for name, p in client.calls if name == "batch_write_item"]
    assert [[r["DeleteRequest"]["Key"] for r in call] for call in requests] == [keys, keys[1:]]
    assert sleeps == [0.005]


def test_entries_that_are_never_removed_are_an_unavailable_dependency() -> None:
    key = attributes({"pk": "CATALOG", "sk": "LOG#000000000001"})
    left = {"UnprocessedItems": {TABLE: [{"DeleteRequest": {"Key": key}}]}}
    client = PagedClient(paginate=[[{"Items": [key]}]], batch_write_item=[left] * 50)
    with pytest.raises(DependencyUnavailable):
        log(client).forget_before(3, limit=10)
