"""Knowledge items, their timeline, the settings, and the tokens of callers."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from knowledge.domain.item import Item, ItemId, ItemStatus, KnowledgeKind
from knowledge.domain.knowledge_config import KnowledgeConfig, VersionedConfig
from knowledge.domain.timeline import Event


@dataclass(frozen=True, slots=True)
class ItemPage:
    """Items, the highest confidence first, of equal ones the newest; `next_cursor` is None on the last page."""

    items: tuple[Item, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """Events, the oldest first; `next_cursor` is None on the last page."""

    events: tuple[Event, ...]
    next_cursor: str | None


class ItemStore(Protocol):
    """Items with their timelines, each change of both in one step. Everything is read strongly consistent."""

    def create(self, item: Item, event: Event) -> None:
        """A new item. Raises VersionConflict when there is one with its id."""

    def read(self, item_id: ItemId) -> Item | None:
        """The item, or None: one call."""

    def read_all(self, item_ids: Collection[ItemId]) -> Mapping[ItemId, Item]:
        """Those of the items that there are; a call for each hundred."""

    def write(self, before: Item, after: Item, event: Event) -> None:
        """`after`, the version that follows `before`, is stored; reuse that was counted meanwhile is kept.

        Raises VersionConflict when the stored version is not `before`'s.
        """

    def settle(self, before: Item, after: Item, event: Event | None) -> bool:
        """`settled_version` and `embedding` of `after` are stored; nothing else of it, and no new version.

        In the timeline the event comes after the one of the version, whatever the clocks say. False, and nothing is
        stored, when version, settled version or embedding are not those of `before` any more.
        """

    def record_reuse(self, item_id: ItemId, *, actor: str, at: datetime) -> Item:
        """One more reuse is counted, with its event; however many do so at once, none is lost.

        The item that is returned may lack what others counted at the same time. In the timeline the event comes after
        the one of the version that was reused.

        Raises NotFound when there is no such item or it is not published.
        """

    def list(
        self, statuses: Collection[ItemStatus], *, kind: KnowledgeKind | None, cursor: str | None, limit: int
    ) -> ItemPage:
        """Items of one status, or of candidate and pending_review together; at most `limit` (1 to 100) a page.

        Two calls at most, unless the store answers only a part. A page may be shorter although another one follows.
        Going on at `next_cursor` neither skips nor repeats an item that did not change meanwhile. Raises InvalidInput
        for a cursor that is none.
        """

    def timeline(self, item_id: ItemId, *, cursor: str | None, limit: int) -> TimelinePage:
        """The item's events, at most `limit` (1 to 100), fewer when they are large; none when there is no such item.

        One call. Raises InvalidInput for a cursor that is none.
        """

    def due(self, *, until: datetime, limit: int) -> Sequence[Item]:
        """At most `limit` (1 to 100) items whose `due_at` is not after `until`, those due longest first; two calls."""

    def count_without_embedding(self) -> int:
        """How many published items have an embedding that is not ready; a call for each megabyte of their keys."""

    def changed_since(self, at: datetime) -> Iterator[tuple[datetime, ItemId]]:
        """When something happened to which items, from `at` on, the oldest first; kept for seven days.

        Everything that is in a timeline is here: an item that was settled without an event is not.
        Each time is one that its writer's clock gave before the write was sent, so one that comes to be seen late may
        lie a little before others seen already.
        """


class ConfigStore(Protocol):
    """The settings, in versions; each one is kept."""

    def read(self) -> VersionedConfig:
        """The settings in force: one call."""

    def write(self, config: KnowledgeConfig, *, expected_version: int, actor: str, at: datetime) -> VersionedConfig:
        """The next version. Raises VersionConflict when `expected_version` is not the one in force."""
