"""How many calls the lists of 10,000 items make, and that each of them is the right one."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from knowledge.adapters.dynamodb_item_store import DynamoItemStore
from knowledge.adapters.memory_items import MemoryConfigStore
from knowledge.domain.item import ItemStatus, KnowledgeKind, failed
from knowledge.domain.knowledge_config import KnowledgeConfig
from knowledge.services.item_index import ItemIndex
from knowledge.services.item_search import ItemSearch
from knowledge.services.item_snapshots import IndexState, ItemSnapshots
from knowledge.services.near_items import NearItems
from tests.contract.item_builders import T0, later, new_item
from tests.contract.item_seeds import seed
from tests.services.world import READER, World

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

COUNT = 10_000
CANDIDATE, PENDING, PUBLISHED, ARCHIVED = ItemStatus
# Of ten items; none of those that are published could be embedded yet, the worst case for those lists.
STATUSES = [CANDIDATE] * 2 + [PENDING] + [PUBLISHED] * 6 + [ARCHIVED]
KINDS = list(KnowledgeKind)


@dataclass(frozen=True)
class Full:
    """A store of 10,000 items, and the calls that were made since it was asked for."""

    store: DynamoItemStore
    calls: Counter[str]


@pytest.fixture(scope="module")
def full_table(dynamodb_client: "DynamoDBClient", table_definition: dict[str, Any]) -> str:
    table = f"table-{uuid4().hex}"
    dynamodb_client.create_table(TableName=table, **table_definition)
    made = (
        new_item(STATUSES[n % 10], kind=KINDS[n % 7], title=f"Lesson {n}", confidence=n % 100 / 100, at=later(n))
        for n in range(COUNT)
    )
    whole = (replace(item, embedding=failed(None, "down", at=T0)) if item.is_published else item for item in made)
    seed(dynamodb_client, table, whole)
    return table


@pytest.fixture
def full(dynamodb_client: "DynamoDBClient", full_table: str) -> Iterator[Full]:
    calls = Counter[str]()

    def count(event_name: str, **_: Any) -> None:
        calls.update([event_name.rpartition(".")[2]])

    dynamodb_client.meta.events.register("before-call.dynamodb.*", count)
    yield Full(DynamoItemStore(dynamodb_client, full_table), calls)
    dynamodb_client.meta.events.unregister("before-call.dynamodb.*", count)


@pytest.mark.parametrize(("statuses", "kind"), [([PUBLISHED], None), ([CANDIDATE, PENDING], KnowledgeKind.DIAGNOSIS)])
def test_any_page_of_a_list_is_two_calls(full: Full, statuses: list[ItemStatus], kind: KnowledgeKind | None) -> None:
    first = full.store.list(statuses, kind=kind, cursor=None, limit=100)
    assert full.calls == {"Query": 1, "BatchGetItem": 1}
    second = full.store.list(statuses, kind=kind, cursor=first.next_cursor, limit=100)
    assert full.calls == {"Query": 2, "BatchGetItem": 2}
    assert len(first.items) == len(second.items) == 100
    ranks = [(-item.draft.confidence, -item.created_at.timestamp()) for item in (*first.items, *second.items)]
    assert ranks == sorted(ranks)


def test_what_is_due_is_two_calls(full: Full) -> None:
    due = full.store.due(until=later(COUNT * 2), limit=100)
    assert full.calls == {"Query": 1, "BatchGetItem": 1}
    assert len(due) == 100


def test_counting_what_has_no_embedding_is_one_call(full: Full) -> None:
    assert full.store.count_without_embedding() == COUNT * 6 // 10
    assert full.calls == {"Query": 1}


def test_an_item_and_its_timeline_are_a_call_each(full: Full) -> None:
    (item,) = full.store.list([ARCHIVED], kind=None, cursor=None, limit=1).items
    full.calls.clear()
    assert full.store.read(item.item_id) == item
    assert full.calls == {"GetItem": 1}
    assert len(full.store.timeline(item.item_id, cursor=None, limit=100).events) == 1
    assert full.calls == {"GetItem": 1, "Query": 1}


def test_what_changed_lately_is_one_call(full: Full) -> None:
    assert len(list(full.store.changed_since(later(COUNT - 100)))) == 100
    assert full.calls == {"Query": 1}


def test_a_warm_search_by_substring_is_a_look_at_the_feed_and_one_read_of_the_best(full: Full) -> None:
    """K4. The settings are one more. The snapshot is empty, and as old as the last thousand items: they are enough."""
    configs = MemoryConfigStore()
    configs.write(KnowledgeConfig(vector_enabled=False), expected_version=0, actor="admin", at=T0)
    world = World()
    snapshots = ItemSnapshots(world.objects)
    snapshots.write(IndexState({}, later(COUNT - 1000)))
    index = ItemIndex(full.store, snapshots, now=lambda: later(COUNT * 2))
    search = ItemSearch(index, full.store, NearItems(world.semantic, configs, world.base, timeout_s=1.0))
    search.knowledge_search(READER, "lesson")
    full.calls.clear()
    found = search.knowledge_search(READER, "lesson", limit=20)
    assert len(found.hits) == 20
    assert full.calls == {"Query": 1, "BatchGetItem": 1}
