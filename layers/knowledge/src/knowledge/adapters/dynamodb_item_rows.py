"""Where knowledge items stand in the table: their keys, and the rows that list them. Makes no call.

A row is a key and nothing else; its last part is the item's id. The rows of an item follow from the item alone, so a
write takes away those of the item before and puts those of the item after.
"""

import re
import struct
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import uuid4

from knowledge.adapters.dynamodb_items import META, attributes, sort_key
from knowledge.adapters.dynamodb_items import Item as TableItem
from knowledge.domain.item import EmbeddingState, Item, ItemId, ItemStatus, KnowledgeKind
from knowledge.domain.timeline import Event

EVENT = "EVENT#"
# Greater than the rest of every key of what is due: `~` comes after digits, letters and `#` in UTF-8.
END = "~"
DUE_PK = "ITEMS#due"
WITHOUT_EMBEDDING_PK = "ITEMS#without_embedding"
FEED_PK = "ITEMS#feed"

# Source: the port, "kept for seven days".
FEED_DAYS = 7

_INBOX = frozenset({ItemStatus.CANDIDATE, ItemStatus.PENDING_REVIEW})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The bits of 1.0, and the microseconds of the year 9999: what is taken from them comes in the opposite order.
_BITS_OF_ONE = 0x3FF0_0000_0000_0000
_LAST_MICROSECOND = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_RANK = re.compile(r"[0-9a-f]{16}#\d{18}#[0-9a-f]{32}")
_EVENT = re.compile(re.escape(EVENT) + r"[0-9T:.+-]{32}#\d{12}#[0-9a-f]{32}")


class Row(NamedTuple):
    """The key of a row."""

    pk: str
    sk: str


def item_pk(item_id: ItemId) -> str:
    """Partition of an item and its timeline."""
    return f"ITEM#{item_id}"


def item_key(item_id: ItemId) -> TableItem:
    """Key of an item."""
    return attributes({"pk": item_pk(item_id), "sk": META})


def list_pk(statuses: Collection[ItemStatus], kind: KnowledgeKind | None) -> str:
    """Partition of the rows that list items of one status, or of candidate and pending_review together."""
    name = "inbox" if set(statuses) == _INBOX else "".join(statuses)
    return f"ITEMS#{name}#{kind}" if kind else f"ITEMS#{name}"


def rows_of(item: Item) -> frozenset[Row]:
    """Every row of `item`: six at most."""
    rows = listing_rows(item)
    if item.due_at is not None:
        rows.add(Row(DUE_PK, f"{time_text(item.due_at)}#{item.item_id}"))
    if item.is_published and (item.embedding is None or item.embedding.state is not EmbeddingState.READY):
        rows.add(Row(WITHOUT_EMBEDDING_PK, item.item_id))
    return frozenset(rows)


def listing_rows(item: Item) -> set[Row]:
    """The rows by which lists find `item`."""
    lists = [{item.status}, _INBOX] if item.status in _INBOX else [{item.status}]
    return {Row(list_pk(statuses, kind), _rank(item)) for statuses in lists for kind in (None, item.draft.kind)}


def item_id_of(row: TableItem) -> ItemId:
    """The item that a row is of."""
    return ItemId(sort_key(row).rpartition("#")[2])


def is_rank(text: str) -> bool:
    """True when `text` has the form of the sort key of a row that lists items."""
    return _RANK.fullmatch(text) is not None


def is_event_sk(text: str) -> bool:
    """True when `text` has the form of the sort key of an event."""
    return _EVENT.fullmatch(text) is not None


def new_event_sk(event: Event) -> str:
    """A sort key that no other event has; by it events come in order of their time, then of the version."""
    return f"{EVENT}{time_text(event.at)}#{event.version:012d}#{uuid4().hex}"


def feed_item(event: Event) -> TableItem:
    """The row that says that something happened to the item; DynamoDB removes it after a week."""
    expires_at = int((event.at + timedelta(days=FEED_DAYS)).timestamp())
    sk = f"{time_text(event.at)}#{uuid4().hex}#{event.item_id}"
    return attributes({"pk": FEED_PK, "sk": sk, "expires_at": expires_at})


def feed_time(row: TableItem) -> datetime:
    """When it happened."""
    return datetime.fromisoformat(sort_key(row).partition("#")[0])


def time_text(at: datetime) -> str:
    """In UTC and to the microsecond, always of the same length: text order is the order of time."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _rank(item: Item) -> str:
    """Highest confidence first, then the newest; the bits of floats that are not negative come in the floats' order."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", abs(item.draft.confidence)))
    microseconds = (item.created_at - _EPOCH) // timedelta(microseconds=1)
    return f"{_BITS_OF_ONE - bits:016x}#{_LAST_MICROSECOND - microseconds:018d}#{item.item_id}"
