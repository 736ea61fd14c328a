from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from knowledge.adapters.dynamodb_config_store import DynamoConfigStore
from knowledge.adapters.dynamodb_item_rows import item_key
from knowledge.adapters.dynamodb_item_shapes import (
    config_from_table,
    config_to_table,
    event_from_table,
    event_to_table,
    item_from_table,
    item_to_table,
)
from knowledge.adapters.dynamodb_item_store import DynamoItemStore
from knowledge.domain.item import Item, ItemStatus
from knowledge.domain.knowledge_config import KnowledgeConfig, VersionedConfig
from knowledge.domain.timeline import created
from knowledge.errors import CorruptState, DependencyUnavailable, InvalidInput, NotFound, VersionConflict
from tests.contract.item_builders import READY, T0, add, edit, new_item, settle
from tests.unit.adapters.aws import ScriptedClient, cancelled, refused

TABLE = "table"
TIMEOUT = ReadTimeoutError(endpoint_url="https://dynamodb.example")
FAILED = "ConditionalCheckFailed"
ITEM = new_item(ItemStatus.PUBLISHED)
Calls = list[tuple[str, dict[str, Any]]]


def items(client: ScriptedClient, sleeps: list[float] | None = None) -> DynamoItemStore:
    waited = [] if sleeps is None else sleeps
    return DynamoItemStore(client, TABLE, sleep=waited.append, random=lambda: 0.5)  # type: ignore[arg-type]


def stored(item: Item) -> dict[str, Any]:
    return {"Item": item_to_table(item)}


def written(sk: str) -> Callable[[Calls], dict[str, Any]]:
    """The item of that kind as the last transaction put it."""

    def answer(calls: Calls) -> dict[str, Any]:
        transaction = [parameters for name, parameters in calls if name == "transact_write_items"][-1]["TransactItems"]
        puts = [write["Put"]["Item"] for write in transaction if "Put" in write]
        (put,) = [item for item in puts if item["sk"]["S"].startswith(sk)]
        return {"Item": put}

    return answer


def creating(store: DynamoItemStore) -> None:
    add(store, ITEM)


def editing(store: DynamoItemStore) -> None:
    edit(store, ITEM, title="x")


def settling(store: DynamoItemStore) -> None:
    settle(store, ITEM, READY)


CHANGES = (creating, editing, settling)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_change_that_met_others_is_tried_again_with_the_same_event(
    change: Callable[[DynamoItemStore], object], code: str
) -> None:
    client = ScriptedClient(transact_write_items=[cancelled("None", code), cancelled(code), {}])
    sleeps: list[float] = []
    change(items(client, sleeps))
    first, second, third = [parameters["TransactItems"] for _, parameters in client.calls]
    assert first == second == third
    assert sleeps == [0.005, 0.01]
    assert client.unused == []


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "fault", [TIMEOUT, refused("InternalServerError", 500), refused("TransactionInProgressException", retries=2)]
)
def test_a_change_that_failed_after_it_took_effect_is_a_change(
    change: Callable[[DynamoItemStore], object], fault: Exception
) -> None:
    client = ScriptedClient(transact_write_items=[fault], get_item=[written("EVENT#")])
    change(items(client))
    assert client.calls[-1][1]["ConsistentRead"] is True
    assert client.calls[-1][1]["Key"]["pk"] == item_key(ITEM.item_id)["pk"]
    assert client.unused == []


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("answer", [{}, TIMEOUT])
def test_a_change_that_failed_without_effect_or_cannot_be_checked_is_an_unavailable_dependency(
    change: Callable[[DynamoItemStore], object], answer: Any
) -> None:
    client = ScriptedClient(transact_write_items=[TIMEOUT], get_item=[answer])
    with pytest.raises(DependencyUnavailable):
        change(items(client))
    assert client.unused == []


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("error", [cancelled(), cancelled("SomethingNew"), refused("AccessDenied", 403)])
def test_a_failure_for_a_reason_that_does_not_pass_is_not_tried_again(
    change: Callable[[DynamoItemStore], object], error: Exception
) -> None:
    client = ScriptedClient(transact_write_items=[error])
    with pytest.raises(DependencyUnavailable):
        change(items(client))


@pytest.mark.parametrize("error", [cancelled("ValidationError"), refused("ValidationException")])
def test_values_that_dynamodb_refuses_are_the_callers_mistake(error: Exception) -> None:
    with pytest.raises(InvalidInput):
        add(items(ScriptedClient(transact_write_items=[error])), ITEM)


def test_contention_without_end_gives_up() -> None:
    client = ScriptedClient(transact_write_items=[cancelled("TransactionConflict")] * 50)
    sleeps: list[float] = []
    with pytest.raises(DependencyUnavailable):
        edit(items(client, sleeps), ITEM, title="x")
    assert len(client.calls) == 30
    assert sum(sleeps) < 5.0


def test_a_lost_race_is_a_conflict_after_one_look_at_what_is_stored_K2() -> None:
    newer = replace(ITEM, version=2)
    for found in (stored(newer), {}):
        client = ScriptedClient(transact_write_items=[cancelled(FAILED)], get_item=[found])
        with pytest.raises(VersionConflict):
            edit(items(client), ITEM, title="x")
        assert client.unused == []


def test_a_version_that_was_settled_meanwhile_is_written_with_the_rows_of_what_is_stored() -> None:
    settled = replace(ITEM, settled_version=1, embedding=READY)
    client = ScriptedClient(transact_write_items=[cancelled(FAILED), {}], get_item=[stored(settled)])
    after = ITEM.next(by="ann", at=T0, status=ItemStatus.ARCHIVED)
    items(client).write(ITEM, after, created(after))
    transactions = [parameters["TransactItems"] for name, parameters in client.calls if name == "transact_write_items"]
    gone = [{write["Delete"]["Key"]["pk"]["S"] for write in writes if "Delete" in write} for writes in transactions]
    assert gone[0] - gone[1] == {"ITEMS#due", "ITEMS#without_embedding"}
    assert gone[1] == {"ITEMS#published", "ITEMS#published#pitfall"}


def test_a_state_that_is_settled_again_and_again_gives_up() -> None:
    client = ScriptedClient(transact_write_items=[cancelled(FAILED)] * 50, get_item=[stored(ITEM)] * 50)
    with pytest.raises(DependencyUnavailable):
        edit(items(client), ITEM, title="x")


def test_settling_in_silence_that_nobody_answered_may_be_done_and_is_not_known_to_be() -> None:
    client = ScriptedClient(transact_write_items=[TIMEOUT])
    with pytest.raises(DependencyUnavailable):
        items(client).settle(ITEM, replace(ITEM, settled_version=1), None)


def test_a_reuse_meets_a_new_version_and_counts_for_that_one() -> None:
    newer = replace(ITEM, version=2, reuse_count=5)
    client = ScriptedClient(get_item=[stored(ITEM), stored(newer)], transact_write_items=[cancelled(FAILED), {}])
    assert items(client).record_reuse(ITEM.item_id, actor="agent", at=T0) == replace(newer, reuse_count=6)
    event = event_from_table(written("EVENT#")(client.calls)["Item"])
    assert event.version == 2


def test_a_reuse_that_failed_after_it_took_effect_counts_once() -> None:
    client = ScriptedClient(get_item=[stored(ITEM), written("EVENT#")], transact_write_items=[TIMEOUT])
    assert items(client).record_reuse(ITEM.item_id, actor="agent", at=T0).reuse_count == 1
    assert client.unused == []


def test_a_reuse_of_what_was_archived_meanwhile_is_not_counted_N6() -> None:
    archived = ITEM.next(by="ann", at=T0, status=ItemStatus.ARCHIVED)
    client = ScriptedClient(get_item=[stored(ITEM), stored(archived)], transact_write_items=[cancelled(FAILED)])
    with pytest.raises(NotFound):
        items(client).record_reuse(ITEM.item_id, actor="agent", at=T0)


def test_a_page_shows_nothing_that_left_the_list_after_its_rows_were_read_N6() -> None:
    left, stays = ITEM, new_item(ItemStatus.PUBLISHED)
    rows = [{"pk": {"S": "ITEMS#published"}, "sk": {"S": f"0#0#{item.item_id}"}} for item in (left, stays)]
    archived = left.next(by="ann", at=T0, status=ItemStatus.ARCHIVED)
    found = {"Responses": {TABLE: [item_to_table(stays), item_to_table(archived)]}}
    client = ScriptedClient(query=[{"Items": rows}], batch_get_item=[found])
    assert items(client).list([ItemStatus.PUBLISHED], kind=None, cursor=None, limit=10).items == (stays,)


def test_what_is_no_longer_due_when_it_is_read_is_left_out() -> None:
    row = {"pk": {"S": "ITEMS#due"}, "sk": {"S": f"x#{ITEM.item_id}"}}
    settled = replace(ITEM, settled_version=1, embedding=READY)
    client = ScriptedClient(query=[{"Items": [row]}], batch_get_item=[{"Responses": {TABLE: [item_to_table(settled)]}}])
    assert items(client).due(until=datetime(9000, 1, 1, tzinfo=UTC), limit=10) == []


def test_keys_that_were_not_processed_are_asked_for_again() -> None:
    other = new_item()
    left = {TABLE: {"Keys": [item_key(other.item_id)]}}
    answers = [
        {"Responses": {TABLE: [item_to_table(ITEM)]}, "UnprocessedKeys": left},
        {"Responses": {TABLE: [item_to_table(other)]}, "UnprocessedKeys": {}},
    ]
    sleeps: list[float] = []
    found = items(ScriptedClient(batch_get_item=answers), sleeps).read_all([ITEM.item_id, other.item_id])
    assert found == {ITEM.item_id: ITEM, other.item_id: other}
    assert sleeps == [0.005]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", {"S": "dancing"}),
        ("kind", {"S": "secret"}),
        ("confidence", {"S": "1.5"}),
        ("title", {"S": ""}),
        ("tags", {"M": {}}),
        ("version", {"S": "many"}),
        ("created_at", {"S": "2026-04-14T08:30:00"}),
        ("embedding", {"M": {"state": {"S": "ready"}}}),
    ],
)
def test_an_item_that_cannot_be_read_is_named_by_its_key(name: str, value: Any) -> None:
    with pytest.raises(CorruptState, match=f"ITEM#{ITEM.item_id} META.*{name}"):
        item_from_table({**item_to_table(ITEM), name: value})


@pytest.mark.parametrize("details", ["{not json", "[1]"])
def test_an_event_that_cannot_be_read_is_named_by_its_key(details: str) -> None:
    with pytest.raises(CorruptState, match=f"ITEM#{ITEM.item_id} EVENT#.*details"):
        event_from_table({**event_to_table(created(ITEM)), "details": {"S": details}})


def test_settings_that_cannot_be_read_are_named_by_their_key() -> None:
    item = config_to_table(VersionedConfig(KnowledgeConfig(), 1), sk="CURRENT", actor="ann", at=T0)
    with pytest.raises(CorruptState, match=r"SETTINGS CURRENT.*min_messages"):
        config_from_table({**item, "min_messages": {"N": "0"}})


def test_attributes_of_a_later_version_are_ignored() -> None:
    assert item_from_table({**item_to_table(ITEM), "later": {"S": "x"}}) == ITEM


def configs(client: ScriptedClient) -> DynamoConfigStore:
    return DynamoConfigStore(client, TABLE, sleep=lambda _: None, random=lambda: 0.5)  # type: ignore[arg-type]


def test_settings_that_were_written_by_an_unanswered_call_are_written() -> None:
    client = ScriptedClient(transact_write_items=[TIMEOUT], get_item=[written("VERSION#")])
    after = configs(client).write(KnowledgeConfig(min_messages=9), expected_version=3, actor="ann", at=T0)
    assert after == VersionedConfig(KnowledgeConfig(min_messages=9), 4)


def test_settings_that_somebody_else_wrote_meanwhile_are_not_taken_for_ours() -> None:
    def somebody_elses(calls: Calls) -> dict[str, Any]:
        return {"Item": {**written("VERSION#")(calls)["Item"], "actor": {"S": "bob"}}}

    client = ScriptedClient(transact_write_items=[TIMEOUT], get_item=[somebody_elses])
    with pytest.raises(DependencyUnavailable):
        configs(client).write(KnowledgeConfig(), expected_version=3, actor="ann", at=T0)
