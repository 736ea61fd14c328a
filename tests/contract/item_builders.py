"""Knowledge items for tests, each with sensible defaults, and their whole lives in short."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from knowledge.domain.item import Draft, Embedding, EmbeddingState, Item, ItemStatus, KnowledgeKind, new_item_id
from knowledge.domain.timeline import Event, EventType, created, edited, status_changed
from knowledge.ports import ItemPage, ItemStore

T0 = datetime(2026, 4, 14, 8, 30, 0, 123456, tzinfo=UTC)
READY = Embedding(EmbeddingState.READY)

_T = TypeVar("_T")


def later(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def draft(**fields: Any) -> Draft:
    whole = Draft(
        KnowledgeKind.PITFALL,
        "Retry with the same key 重试",
        "A payment that timed out may have been made.\n\n重试要用同一个幂等键。\n",
        ("payments", "幂等"),
        0.75,
        "conv:42",
    )
    return replace(whole, **fields)


def new_item(status: ItemStatus = ItemStatus.CANDIDATE, *, at: datetime = T0, **fields: Any) -> Item:
    """An item as it is made; of any status, where the way there does not matter."""
    embedding = Embedding(EmbeddingState.PENDING) if status is ItemStatus.PUBLISHED else None
    settled_version = 0 if status is ItemStatus.PUBLISHED else 1
    return Item(
        new_item_id(), draft(**fields), status, "agent", at, at, "agent", 1, settled_version, embedding=embedding
    )


def add(store: ItemStore, item: Item) -> Item:
    store.create(item, created(item))
    return item


def edit(store: ItemStore, before: Item, *, by: str = "ann", at: datetime = T0, **fields: Any) -> Item:
    after = before.next(by=by, at=at, draft=replace(before.draft, **fields))
    store.write(before, after, edited(before, after))
    return after


def move(store: ItemStore, before: Item, status: ItemStatus, *, by: str = "ann", at: datetime = T0) -> Item:
    after = before.next(by=by, at=at, status=status)
    store.write(before, after, status_changed(before, after))
    return after


def settle(store: ItemStore, before: Item, embedding: Embedding | None, *, at: datetime = T0) -> Item:
    after = replace(before, settled_version=before.version, embedding=embedding)
    event = Event(before.item_id, EventType.EMBEDDED, "system", at, before.version) if embedding else None
    assert store.settle(before, after, event)
    return after


def published(store: ItemStore, **fields: Any) -> Item:
    """An item that went the whole way, settled and embedded."""
    item = add(store, new_item(**fields))
    item = move(store, move(store, item, ItemStatus.PENDING_REVIEW), ItemStatus.PUBLISHED)
    return settle(store, item, READY)


def everything(page: Callable[[str | None], tuple[tuple[_T, ...], str | None]]) -> list[_T]:
    """All pages, one after the other."""
    values, cursor = page(None)
    found = list(values)
    while cursor is not None:
        values, cursor = page(cursor)
        found.extend(values)
    return found


def listed(store: ItemStore, *statuses: ItemStatus, kind: KnowledgeKind | None = None, limit: int = 100) -> list[Item]:
    def page(cursor: str | None) -> tuple[tuple[Item, ...], str | None]:
        found: ItemPage = store.list(statuses, kind=kind, cursor=cursor, limit=limit)
        return found.items, found.next_cursor

    return everything(page)


def events(store: ItemStore, item: Item, *, limit: int = 100) -> list[Event]:
    def page(cursor: str | None) -> tuple[tuple[Event, ...], str | None]:
        found = store.timeline(item.item_id, cursor=cursor, limit=limit)
        return found.events, found.next_cursor

    return everything(page)
