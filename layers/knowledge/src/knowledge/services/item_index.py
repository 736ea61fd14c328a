"""Every item in the memory of this process, for searching by substring: candidates for an answer, never the answer.

It follows the feed of the store, as the exact tier's catalog follows its log. What it finds is read again from the
store before anybody sees it, so that an error here can only miss an item and never show one.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import nsmallest
from threading import Lock
from typing import Final

from knowledge.domain.item import Draft, Item, ItemId, ItemStatus, KnowledgeKind
from knowledge.domain.text import normalise
from knowledge.errors import CorruptState
from knowledge.ports import ItemStore
from knowledge.services.item_snapshots import IndexedItem, IndexState, ItemSnapshots

_logger = logging.getLogger(__name__)

# So far before the last look, changes are looked for again: one may be committed as late as its function ends (28 s),
# and clocks of functions differ by less than a second. Source: own choice, twice that.
OVERLAP: Final = timedelta(seconds=60)
# A copy older than this is made anew from the lists. Source: ports/items: the feed is kept for seven days.
_MAX_AGE = timedelta(days=6)
# A new snapshot is worth it from so many changed items on, each of which a cold start reads again, or after a day.
# Source: own choice; 1,000 items are ten calls.
_MANY_CHANGES = 1000
_OLD_SNAPSHOT = timedelta(days=1)
# Items of a page of the store's lists, which is the most there can be.
_PAGE = 100


@dataclass(frozen=True, slots=True)
class SavedIndex:
    """What a look at the snapshot came to."""

    item_count: int
    change_count: int
    """Items changed since the snapshot that was there."""
    is_written: bool
    """True when there is a new one."""


class ItemIndex:
    """The index in this process. Thread-safe: what it holds is immutable and swapped."""

    def __init__(
        self, store: ItemStore, snapshots: ItemSnapshots, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """Makes no call. `now` is aware UTC."""
        self._store = store
        self._snapshots = snapshots
        self._now = now
        self._changing = Lock()
        self._state: IndexState | None = None

    def refresh(self) -> None:
        """Every change that was committed before this call is in the index.

        One call when nothing changed, and one for each hundred changed items. The first time one more for the snapshot;
        where it cannot be used, one for each hundred items.

        Raises:
            DependencyUnavailable: a store did not answer; the index is as it was.
        """
        with self._changing:
            now = self._now()
            state = self._state
            if state is None or now - state.until > _MAX_AGE:
                state = self._snapshot(now) or self._listed(now)
            self._state = self._followed(state, now)

    def matching(
        self, query: str, *, statuses: Collection[ItemStatus], kind: KnowledgeKind | None, limit: int
    ) -> Sequence[ItemId]:
        """At most `limit` items whose title or content holds `query`, most reused first, of equal ones the newest.

        As of the last refresh; both are compared as `domain.text.normalise` gives them. O(all text).
        """
        wanted = normalise(query).encode()
        found = (
            item
            for item in (self._state.items.values() if self._state else ())
            if item.status in statuses and kind in (None, item.kind) and wanted in item.text
        )
        return [item.item_id for item in nsmallest(limit, found, key=_most_reused)]

    def holding_most(self, parts: Sequence[str], *, limit: int) -> Sequence[ItemId]:
        """At most `limit` published items that hold any of `parts` (normalised), those with the most of them first."""
        wanted = [part.encode() for part in parts]
        counted = (
            (-sum(part in item.text for part in wanted), item.item_id)
            for item in (self._state.items.values() if self._state else ())
            if item.status is ItemStatus.PUBLISHED
        )
        return [item_id for count, item_id in nsmallest(limit, counted) if count]

    def save(self) -> SavedIndex:
        """There is a snapshot that is less than a day old and fewer than 1,000 changed items behind.

        With nothing to write, the calls of a cold start.

        Raises:
            DependencyUnavailable: a store did not answer.
        """
        now = self._now()
        stored = self._snapshot(now)
        current = self._followed(stored or self._listed(now), now)
        changed = [item for item_id, item in current.items.items() if not stored or stored.items.get(item_id) != item]
        is_due = stored is None or len(changed) >= _MANY_CHANGES or now - stored.until > _OLD_SNAPSHOT
        if is_due:
            self._snapshots.write(current)
        saved = SavedIndex(len(current.items), len(changed), is_due)
        _logger.info("item_index_saved", extra={"items": saved.item_count, "written": saved.is_written})
        return saved

    def _snapshot(self, now: datetime) -> IndexState | None:
        """The snapshot, None when there is none that can be used."""
        try:
            state = self._snapshots.read()
        except CorruptState as error:
            _logger.warning("item_snapshot_unusable", extra={"reason": str(error)})
            return None
        return state if state and now - state.until <= _MAX_AGE else None

    def _listed(self, now: datetime) -> IndexState:
        """What the store's lists hold; what moves from one to another meanwhile is in the feed from `now` on."""
        items: dict[ItemId, IndexedItem] = {}
        for status in ItemStatus:
            cursor: str | None = None
            while True:
                page = self._store.list([status], kind=None, cursor=cursor, limit=_PAGE)
                items.update((item.item_id, _indexed(item)) for item in page.items)
                cursor = page.next_cursor
                if cursor is None:
                    break
        _logger.info("item_index_listed", extra={"items": len(items)})
        return IndexState(items, now)

    def _followed(self, state: IndexState, now: datetime) -> IndexState:
        """`state` and what changed since."""
        rows = frozenset(self._store.changed_since(state.until - OVERLAP))
        # What was seen was read after it was committed, so it need not be read again.
        unseen = rows - state.seen
        found = self._store.read_all({item_id for _, item_id in unseen}) if unseen else {}
        items = (
            {**state.items, **{item_id: _indexed(item) for item_id, item in found.items()}} if found else state.items
        )
        return IndexState(items, now, frozenset(row for row in rows if row[0] >= now - OVERLAP))


def searchable(draft: Draft) -> str:
    """What is searched: a normalised query holds no line break, so none is found across title and content."""
    return f"{normalise(draft.title)}\n{normalise(draft.content)}"


def _indexed(item: Item) -> IndexedItem:
    text = searchable(item.draft).encode()
    return IndexedItem(item.item_id, item.status, item.draft.kind, item.reuse_count, item.updated_at, text)


def _most_reused(item: IndexedItem) -> tuple[int, float, ItemId]:
    return -item.reuse_count, -item.updated_at.timestamp(), item.item_id
