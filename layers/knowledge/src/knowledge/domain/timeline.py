"""What happened to a knowledge item, in order. Nothing of it is ever changed. Source: specification K6."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from knowledge.domain.document import Json
from knowledge.domain.item import Draft, Item, ItemId


class EventType(StrEnum):
    """What can happen to an item."""

    CREATED = "created"
    EDITED = "edited"
    STATUS_CHANGED = "status_changed"
    REUSED = "reused"
    EMBEDDED = "embedded"
    EMBEDDING_FAILED = "embedding_failed"
    DOCUMENT_PUT_BACK = "document_put_back"
    """Somebody had changed, dropped or removed its file in the bucket."""


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a timeline."""

    item_id: ItemId
    type: EventType
    actor: str
    """Name of the token; `system` for what nobody asked for at that moment."""
    at: datetime
    version: int
    """The item's version after it."""
    details: Mapping[str, Json] = field(default_factory=dict)
    """What changed: of each field its values `before` and `after`; or the reason of a failure; or a note."""


SYSTEM = "system"


def created(item: Item) -> Event:
    """The first event of `item`."""
    return Event(item.item_id, EventType.CREATED, item.created_by, item.created_at, item.version)


def edited(before: Item, after: Item) -> Event:
    """The event of an edit; it says what each changed field was and is."""
    old, new = _values(before.draft), _values(after.draft)
    changed: dict[str, Json] = {
        name: {"before": old[name], "after": new[name]} for name in new if new[name] != old[name]
    }
    return Event(after.item_id, EventType.EDITED, after.updated_by, after.updated_at, after.version, changed)


def status_changed(before: Item, after: Item, note: str | None = None) -> Event:
    """The event of a move from one status to another."""
    details: dict[str, Json] = {"status": {"before": before.status, "after": after.status}}
    if note:
        details["note"] = note
    return Event(after.item_id, EventType.STATUS_CHANGED, after.updated_by, after.updated_at, after.version, details)


def placed(event: Event, item: Item) -> Event:
    """`event`, which came after `item`'s version was written: later than that, whatever the clocks say."""
    return replace(event, at=max(event.at, item.updated_at + timedelta(microseconds=1)))


def _values(draft: Draft) -> dict[str, Json]:
    return {
        "kind": draft.kind.value,
        "title": draft.title,
        "content": draft.content,
        "tags": list(draft.tags),
        "confidence": draft.confidence,
        "source_ref": draft.source_ref,
    }
