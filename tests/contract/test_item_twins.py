"""Whatever is done to both item stores, both say the same, and the table holds the rows of its items and no others."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test

from knowledge.adapters.dynamodb_item_rows import Row, rows_of
from knowledge.adapters.dynamodb_item_store import DynamoItemStore
from knowledge.adapters.memory_items import MemoryItemStore
from knowledge.domain.item import Embedding, Item, ItemStatus, KnowledgeKind, failed
from knowledge.domain.timeline import Event, EventType, created, edited, status_changed
from knowledge.errors import KnowledgeError
from knowledge.ports import ItemStore
from tests.contract.item_builders import READY, events, later, listed, new_item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

FOREVER = datetime(9000, 1, 1, tzinfo=UTC)
seconds = st.integers(min_value=-3, max_value=120)
confidences = st.floats(min_value=0, max_value=1)
kinds = st.sampled_from(list(KnowledgeKind)[:2])
statuses = st.sampled_from(list(ItemStatus))


@dataclass(frozen=True)
class Place:
    """Where each run of the machine gets an empty table."""

    client: "DynamoDBClient"
    definition: dict[str, Any]

    def store(self) -> tuple[DynamoItemStore, str]:
        table = f"table-{uuid4().hex}"
        self.client.create_table(TableName=table, **self.definition)
        return DynamoItemStore(self.client, table), table


class Twins(RuleBasedStateMachine):
    """Versions that were read at some time are kept, so that commands are made for outdated ones too."""

    place: ClassVar[Place]
    versions: Bundle[Item] = Bundle("versions")

    def __init__(self) -> None:
        super().__init__()
        self.memory = MemoryItemStore()
        self.dynamodb, self.table = self.place.store()
        self.created: list[Item] = []

    def teardown(self) -> None:
        self.place.client.delete_table(TableName=self.table)

    def both(self, change: Callable[[ItemStore], object]) -> object:
        outcomes = [outcome_of(change, store) for store in (self.memory, self.dynamodb)]
        assert outcomes[0] == outcomes[1]
        return outcomes[0]

    @rule(target=versions, confidence=confidences, kind=kinds, at=seconds)
    def create(self, confidence: float, kind: KnowledgeKind, at: int) -> Item:
        item = new_item(confidence=confidence, kind=kind, at=later(at))
        self.both(lambda store: store.create(item, created(item)))
        self.created.append(item)
        return item

    @rule(target=versions, item=versions, confidence=confidences, kind=kinds, at=seconds)
    def edit(self, item: Item, confidence: float, kind: KnowledgeKind, at: int) -> Any:
        after = item.next(by="ann", at=later(at), draft=replace(item.draft, confidence=confidence, kind=kind))
        return written(after, self.both(lambda store: store.write(item, after, edited(item, after))))

    @rule(target=versions, item=versions, status=statuses, at=seconds)
    def move(self, item: Item, status: ItemStatus, at: int) -> Any:
        after = item.next(by="bob", at=later(at), status=status)
        return written(after, self.both(lambda store: store.write(item, after, status_changed(item, after))))

    @rule(target=versions, item=versions, fails=st.booleans(), is_told=st.booleans(), at=seconds)
    def settle(self, item: Item, fails: bool, is_told: bool, at: int) -> Any:
        embedding: Embedding | None = None
        if item.is_published:
            embedding = failed(item.embedding, "down", at=later(at)) if fails else READY
        after = replace(item, settled_version=item.version, embedding=embedding)
        event = Event(item.item_id, EventType.EMBEDDED, "system", later(at), item.version) if is_told else None
        return written(after, not self.both(lambda store: store.settle(item, after, event)))

    @rule(item=versions, at=seconds)
    def reuse(self, item: Item, at: int) -> None:
        self.both(lambda store: store.record_reuse(item.item_id, actor="agent", at=later(at)))

    @rule(status=statuses, kind=st.none() | kinds, limit=st.integers(min_value=1, max_value=4))
    def lists_are_the_same(self, status: ItemStatus, kind: KnowledgeKind | None, limit: int) -> None:
        inbox = [ItemStatus.CANDIDATE, ItemStatus.PENDING_REVIEW]
        for wanted in ([status], inbox):
            self.both(lambda store, wanted=wanted: listed(store, *wanted, kind=kind, limit=limit))  # type: ignore[misc]

    @rule(until=seconds, limit=st.integers(min_value=1, max_value=100))
    def what_is_due_is_the_same(self, until: int, limit: int) -> None:
        self.both(lambda store: {item.due_at for item in store.due(until=later(until), limit=limit)})
        self.both(lambda store: {item.item_id for item in store.due(until=FOREVER, limit=100)})
        self.both(lambda store: store.count_without_embedding())

    @rule(since=seconds)
    def feeds_are_the_same(self, since: int) -> None:
        self.both(lambda store: sorted(store.changed_since(later(since))))

    @rule()
    def timelines_are_the_same_and_ascend(self) -> None:
        for item in self.created:
            self.both(lambda store, item=item: sorted(events(store, item, limit=3), key=repr))  # type: ignore[misc]
            times = [event.at for event in events(self.dynamodb, item)]
            assert times == sorted(times)

    @invariant()
    def the_table_holds_the_rows_of_its_items(self) -> None:
        items = self.dynamodb.read_all([item.item_id for item in self.created])
        assert items == self.memory.read_all([item.item_id for item in self.created])
        wanted = {row for item in items.values() for row in rows_of(item)}
        assert {row for row in self.rows() if row.pk != "ITEMS#feed"} == wanted

    def rows(self) -> Iterator[Row]:
        for page in self.place.client.get_paginator("scan").paginate(TableName=self.table):
            for item in page["Items"]:
                if item["pk"]["S"].startswith("ITEMS#"):
                    yield Row(item["pk"]["S"], item["sk"]["S"])


def outcome_of(change: Callable[[ItemStore], object], store: ItemStore) -> object:
    try:
        return change(store)
    except KnowledgeError as error:
        return type(error), str(error)


def written(after: Item, problem: object) -> Any:
    """The version for later commands, where it was written."""
    return multiple() if problem else after


def test_both_stores_say_the_same_whatever_is_done_to_them_K2_K6(
    dynamodb_client: "DynamoDBClient", table_definition: dict[str, Any]
) -> None:
    class Placed(Twins):
        place = Place(dynamodb_client, table_definition)

    run_state_machine_as_test(
        Placed,
        settings=settings(
            max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
