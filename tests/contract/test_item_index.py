"""The index of items over every ItemStore: it sees each change once it is committed, and each of them once."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from knowledge.adapters.memory_objects import MemoryObjectStore
from knowledge.domain.item import ItemStatus
from knowledge.ports import ItemStore
from knowledge.services.item_index import ItemIndex
from knowledge.services.item_snapshots import ItemSnapshots
from tests.contract.item_builders import add, edit, new_item
from tests.services.world import Port


def test_what_is_created_edited_and_reused_is_in_the_next_look(items: ItemStore) -> None:
    word = uuid4().hex
    now = datetime.now(UTC)
    store = Port(items)
    index = ItemIndex(store, ItemSnapshots(MemoryObjectStore()), now=lambda: now)

    def found(query: str = word) -> list[str]:
        index.refresh()
        return list(index.matching(query, statuses=set(ItemStatus), kind=None, limit=9))

    assert found() == []
    first = add(items, new_item(ItemStatus.PUBLISHED, title=f"One {word}", at=now))
    second = add(items, new_item(ItemStatus.PUBLISHED, title=f"Two {word}", at=now + timedelta(seconds=1)))
    assert found() == [second.item_id, first.item_id]
    items.record_reuse(first.item_id, actor="agent", at=now + timedelta(seconds=2))
    assert found() == [first.item_id, second.item_id]
    edit(items, items.read(first.item_id) or first, title="Neither", at=now + timedelta(seconds=3))
    assert found() == [second.item_id]
    assert found("neither") == [first.item_id]
    store.calls.clear()
    assert found() == [second.item_id]
    assert store.calls == {"changed_since": 1}
