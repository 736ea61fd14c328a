"""What every ItemStore does for many writers at once, with real threads."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from knowledge.adapters.dynamodb_item_store import DynamoItemStore
from knowledge.domain.item import Item, ItemId, ItemStatus
from knowledge.domain.knowledge_config import KnowledgeConfig
from knowledge.domain.timeline import EventType
from knowledge.errors import NotFound, VersionConflict
from knowledge.ports import ConfigStore, ItemStore
from tests.contract.item_builders import READY, T0, add, edit, events, listed, move, new_item, published

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CANDIDATE, PENDING, PUBLISHED, ARCHIVED = ItemStatus
ROUNDS = 25


def all_at_once(*tasks: Callable[[], object]) -> list[object]:
    """What each task returned or raised, in their order; they start together."""
    barrier, outcomes = threading.Barrier(len(tasks)), dict[int, object]()

    def run(number: int) -> None:
        barrier.wait()
        try:
            outcomes[number] = tasks[number]()
        except Exception as error:  # noqa: BLE001 - a thread's error has to be shown by the test
            outcomes[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [outcomes[number] for number in range(len(tasks))]


def test_of_two_who_decide_at_once_one_wins_and_the_lists_follow_K2(items: ItemStore) -> None:
    winners = Counter[ItemStatus]()
    for _ in range(ROUNDS):
        item = add(items, new_item(PENDING))
        outcomes = all_at_once(
            partial(move, items, item, PUBLISHED, by="ann"), partial(move, items, item, ARCHIVED, by="bob")
        )
        (winner,) = [outcome for outcome in outcomes if isinstance(outcome, Item)]
        (loser,) = [outcome for outcome in outcomes if outcome is not winner]
        assert isinstance(loser, VersionConflict)
        assert items.read(item.item_id) == winner
        assert [event.actor for event in events(items, item)] == ["agent", winner.updated_by]
        winners[winner.status] += 1
    assert len(listed(items, PUBLISHED)) == winners[PUBLISHED]
    assert len(listed(items, ARCHIVED)) == winners[ARCHIVED]
    assert listed(items, CANDIDATE, PENDING) == []


def test_no_reuse_is_lost_among_eight_writers_of_fifty_each_K3(items: ItemStore) -> None:
    item = published(items)

    def reuse() -> None:
        for _ in range(50):
            items.record_reuse(item.item_id, actor=threading.current_thread().name, at=T0)

    assert all_at_once(*[reuse] * 8) == [None] * 8
    found = items.read(item.item_id)
    assert found is not None
    assert found.reuse_count == 400
    actors = Counter(event.actor for event in events(items, item) if event.type is EventType.REUSED)
    assert list(actors.values()) == [50] * 8


def test_reuse_edits_and_settling_at_once_lose_nothing(items: ItemStore) -> None:
    item = published(items)

    def edits() -> int:
        written = 0
        while written < 20:
            before = items.read(item.item_id)
            assert before is not None
            edit(items, before, title=f"title {written}")
            written += 1
        return written

    def reuses() -> int:
        return len([items.record_reuse(item.item_id, actor="agent", at=T0) for _ in range(20)])

    def settles() -> int:
        settled = 0
        for _ in range(40):
            before = items.read(item.item_id)
            assert before is not None
            settled += items.settle(before, settled_of(before), None)
        return settled

    edited, reused, settled = all_at_once(edits, reuses, settles)
    assert (edited, reused) == (20, 20)
    assert isinstance(settled, int)
    found = items.read(item.item_id)
    assert found is not None
    assert (found.version, found.reuse_count) == (item.version + 20, 20)
    counts = Counter(event.type for event in events(items, item))
    assert (counts[EventType.EDITED], counts[EventType.REUSED]) == (20, 20)
    assert items.settle(found, settled_of(found), None)
    assert items.due(until=T0.replace(year=9000), limit=10) == []
    assert items.count_without_embedding() == 0


def settled_of(item: Item) -> Item:
    return replace(item, settled_version=item.version, embedding=READY)


def test_of_two_who_change_the_settings_at_once_one_wins_each_time_K7(configs: ConfigStore) -> None:
    for version in range(50):
        outcomes = all_at_once(
            *(
                partial(configs.write, KnowledgeConfig(auto_inject=choice), expected_version=version, actor="a", at=T0)
                for choice in (True, False)
            )
        )
        (winner,) = [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
        assert [type(outcome) for outcome in outcomes].count(VersionConflict) == 1
        assert configs.read() == winner


class Behind(DynamoItemStore):
    """Reads once what was stored before somebody else wrote."""

    stale: Item | None = None

    def read(self, item_id: ItemId) -> Item | None:
        stale, self.stale = self.stale, None
        return stale or super().read(item_id)


def test_what_is_archived_between_two_calls_of_a_reuse_is_not_reused_N6(
    dynamodb_client: "DynamoDBClient", table: str
) -> None:
    store = Behind(dynamodb_client, table)
    item = published(store)
    archived = move(store, item, ARCHIVED)
    store.stale = item
    with pytest.raises(NotFound):
        store.record_reuse(item.item_id, actor="agent", at=T0)
    assert store.read(item.item_id) == archived
    assert EventType.REUSED not in {event.type for event in events(store, item)}
