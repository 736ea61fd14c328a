"""Memory twins of the stores of knowledge items and settings; thread-safe, for tests and for trying things out."""

import json
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from knowledge.adapters import page_cursor
from knowledge.domain.item import EmbeddingState, Item, ItemId, ItemStatus, KnowledgeKind
from knowledge.domain.knowledge_config import KnowledgeConfig, VersionedConfig
from knowledge.domain.timeline import Event, EventType, placed
from knowledge.errors import NotFound, VersionConflict
from knowledge.ports import ItemPage, TimelinePage

_T = TypeVar("_T")
# What a list is in the order of; all places of one list are made of values of the same types.
_Place = tuple[Any, ...]


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
            self._events.extend([placed(event, stored)] if event else [])
            return True

    def record_reuse(self, item_id: ItemId, *, actor: str, at: datetime) -> Item:
        """See ItemStore."""
        with self._lock:
            stored = self._items.get(item_id)
            if stored is None or not stored.is_published:
                raise NotFound("no published item has this id")
            after = replace(stored, reuse_count=stored.reuse_count + 1)
            self._items[item_id] = after
            self._events.append(placed(Event(item_id, EventType.REUSED, actor, at, after.version), after))
            return after

    def list(
        self, statuses: Collection[ItemStatus], *, kind: KnowledgeKind | None, cursor: str | None, limit: int
    ) -> ItemPage:
        """See ItemStore."""
        with self._lock:
            places = [
                ((-item.draft.confidence, -item.created_at.timestamp(), item.item_id), item)
                for item in self._items.values()
                if item.status in statuses and kind in (None, item.draft.kind)
            ]
        return ItemPage(*_page(places, cursor, limit, (float, float, str)))

    def timeline(self, item_id: ItemId, *, cursor: str | None, limit: int) -> TimelinePage:
        """See ItemStore."""
        with self._lock:
            events = list(enumerate(self._events))
        places = [((event.at.timestamp(), number), event) for number, event in events if event.item_id == item_id]
        return TimelinePage(*_page(places, cursor, limit, (float, int)))

    def due(self, *, until: datetime, limit: int) -> Sequence[Item]:
        """See ItemStore."""
        with self._lock:
            due = [(item.due_at, item.item_id) for item in self._items.values() if item.due_at and item.due_at <= until]
            return [self._items[item_id] for _, item_id in sorted(due)[:limit]]

    def count_without_embedding(self) -> int:
        """See ItemStore."""
        with self._lock:
            embeddings = [item.embedding for item in self._items.values() if item.is_published]
        return sum(embedding is None or embedding.state is not EmbeddingState.READY for embedding in embeddings)

    def changed_since(self, at: datetime) -> Iterator[tuple[datetime, ItemId]]:
        """See ItemStore."""
        with self._lock:
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


def _page(
    places: Iterable[tuple[_Place, _T]], cursor: str | None, limit: int, kinds: tuple[type, ...]
) -> tuple[tuple[_T, ...], str | None]:
    """What comes after the cursor in the order of the places, whose parts are of these `kinds`, and the next cursor."""
    after = None if cursor is None else _place(page_cursor.decode(cursor), kinds)
    rest = sorted((entry for entry in places if after is None or entry[0] > after), key=lambda entry: entry[0])
    page = rest[:limit]
    more = len(rest) > limit
    return tuple(value for _, value in page), page_cursor.encode(json.dumps(page[-1][0])) if more else None


def _place(text: str, kinds: tuple[type, ...]) -> _Place:
    try:
        place = json.loads(text)
    except ValueError as error:
        raise page_cursor.not_a_cursor() from error
    if not isinstance(place, list) or tuple(map(type, place)) != kinds:
        raise page_cursor.not_a_cursor()
    return tuple(place)
