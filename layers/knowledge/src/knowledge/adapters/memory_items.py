"""Memory twins of the stores of knowledge items and settings; thread-safe, for tests and for trying things out."""

import base64
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from knowledge.domain.item import EmbeddingState, Item, ItemId, ItemStatus, KnowledgeKind
from knowledge.domain.knowledge_config import KnowledgeConfig, VersionedConfig
from knowledge.domain.timeline import Event, EventType
from knowledge.errors import InvalidInput, NotFound, VersionConflict
from knowledge.ports import ItemPage, TimelinePage


class MemoryItemStore:
    """ItemStore over dicts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: dict[ItemId, Item] = {}
        self._events: list[Event] = []

    def create(self, item: Item, event: Event) -> None:
        """See ItemStore."""
        with self._lock:
            if item.item_id in self._items:
                raise VersionConflict(item.item_id)
            self._items[item.item_id] = item
            self._events.append(event)

    def read(self, item_id: ItemId) -> Item | None:
        """See ItemStore."""
        return self._items.get(item_id)

    def read_all(self, item_ids: Collection[ItemId]) -> Mapping[ItemId, Item]:
        """See ItemStore."""
        return {item_id: self._items[item_id] for item_id in item_ids if item_id in self._items}

    def write(self, before: Item, after: Item, event: Event) -> None:
        """See ItemStore."""
        with self._lock:
            stored = self._items.get(before.item_id)
            if stored is None or stored.version != before.version:
                raise VersionConflict(before.item_id)
            self._items[after.item_id] = replace(after, reuse_count=stored.reuse_count)
            self._events.append(event)

    def settle(self, before: Item, after: Item, event: Event | None) -> bool:
        """See ItemStore."""
        with self._lock:
            stored = self._items.get(before.item_id)
            if stored is None or replace(stored, reuse_count=0) != replace(before, reuse_count=0):
                return False
            self._items[after.item_id] = replace(
                stored, settled_version=after.settled_version, embedding=after.embedding
            )
            self._events.extend([event] if event else [])
            return True

    def record_reuse(self, item_id: ItemId, *, actor: str, at: datetime) -> Item:
        """See ItemStore."""
        with self._lock:
            stored = self._items.get(item_id)
            if stored is None or not stored.is_published:
                raise NotFound("no published item has this id")
            after = replace(stored, reuse_count=stored.reuse_count + 1)
            self._items[item_id] = after
            self._events.append(Event(item_id, EventType.REUSED, actor, at, after.version))
            return after

    def list(
        self, statuses: Collection[ItemStatus], *, kind: KnowledgeKind | None, cursor: str | None, limit: int
    ) -> ItemPage:
        """See ItemStore."""
        after = _decoded(cursor)
        found = sorted(
            (item for item in self._items.values() if item.status in statuses and kind in (None, item.draft.kind)),
            key=_place,
        )
        rest = [item for item in found if _place(item) > after]
        page = tuple(rest[:limit])
        return ItemPage(page, _encoded(_place(page[-1])) if len(rest) > limit else None)

    def timeline(self, item_id: ItemId, *, cursor: str | None, limit: int) -> TimelinePage:
        """See ItemStore."""
        events = [event for event in self._events if event.item_id == item_id]
        start = int(_decoded(cursor) or 0)
        page = tuple(events[start : start + limit])
        return TimelinePage(page, _encoded(str(start + limit)) if len(events) > start + limit else None)

    def due(self, *, until: datetime, limit: int) -> Sequence[Item]:
        """See ItemStore."""
        due = [(item.due_at, item.item_id) for item in self._items.values() if item.due_at and item.due_at <= until]
        return [self._items[item_id] for _, item_id in sorted(due)[:limit]]

    def count_without_embedding(self) -> int:
        """See ItemStore."""
        embeddings = [item.embedding for item in self._items.values() if item.is_published]
        return sum(embedding is None or embedding.state is not EmbeddingState.READY for embedding in embeddings)

    def changed_since(self, at: datetime) -> Iterator[tuple[datetime, ItemId]]:
        """See ItemStore."""
        return iter(sorted((event.at, event.item_id) for event in self._events if event.at >= at))


class MemoryConfigStore:
    """ConfigStore over a list of versions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._versions = [VersionedConfig(KnowledgeConfig())]

    def read(self) -> VersionedConfig:
        """See ConfigStore."""
        return self._versions[-1]

    def write(self, config: KnowledgeConfig, *, expected_version: int, actor: str, at: datetime) -> VersionedConfig:
        """See ConfigStore."""
        with self._lock:
            if expected_version != self._versions[-1].version:
                raise VersionConflict("the settings")
            self._versions.append(VersionedConfig(config, expected_version + 1))
            return self._versions[-1]


def _place(item: Item) -> str:
    """Sorts the highest confidence first, then the newest."""
    return f"{1 - item.draft.confidence:.6f} {-item.created_at.timestamp() + 1e11:.6f} {item.item_id}"


def _encoded(place: str) -> str:
    return base64.urlsafe_b64encode(place.encode()).decode()


def _decoded(cursor: str | None) -> str:
    try:
        return base64.b64decode(cursor or "", altchars=b"-_", validate=True).decode()
    except ValueError as error:
        raise InvalidInput("it is not a cursor of this list", field="cursor") from error
