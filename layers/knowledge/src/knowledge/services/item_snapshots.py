"""The index of items as one object in the bucket, so that a process that starts need not list every item."""

import json
import unicodedata
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from knowledge.domain.digest import sha256
from knowledge.domain.item import ItemId, ItemStatus, KnowledgeKind
from knowledge.errors import AccessRefused, CorruptState
from knowledge.ports import ObjectStore

KEY: Final = "_index/items/items.snapshot"
# To be raised whenever what is below, or what is searched, changes. The version of Unicode is part of it, because
# normalisation follows it.
_FORMAT = f"item index 1, Unicode {unicodedata.unidata_version}"
# More than any index that fits the memory of a function, and less than that memory. Source: own choice.
_MAX_BYTES = 256 * 1024 * 1024
# Source: measured over 100,000 catalog entries (retrieval/index_dump): level 1 takes a fifth of the time of level 6.
_COMPRESSION = 1


@dataclass(frozen=True, slots=True)
class IndexedItem:
    """What a search by substring needs of an item."""

    item_id: ItemId
    status: ItemStatus
    kind: KnowledgeKind
    reuse_count: int
    updated_at: datetime
    text: bytes
    """Title and content, normalised, in UTF-8: one emoji does not make each character four bytes long."""


@dataclass(frozen=True, slots=True)
class IndexState:
    """All items as they were at one moment."""

    items: Mapping[ItemId, IndexedItem]
    until: datetime
    """By the clock of whoever looked: every change committed until then is in `items`."""
    seen: frozenset[tuple[datetime, ItemId]] = frozenset()
    """The latest changes, which are in `items` although they will be told of again."""


class ItemSnapshots:
    """The snapshot of one knowledge base: one object, which each writer replaces whole.

    It is a line of JSON (format, moment, SHA-256) and the compressed items. Nothing elsewhere vouches for it: unlike
    the catalog it decides nothing, for what it finds is read again.
    """

    def __init__(self, objects: ObjectStore) -> None:
        """Makes no call."""
        self._objects = objects

    def read(self) -> IndexState | None:
        """The newest snapshot, or None when there is none; one read.

        Raises:
            CorruptState: it is not what was written, or of another version.
            DependencyUnavailable: the bucket did not answer.
        """
        try:
            stored = self._objects.read(KEY, max_bytes=_MAX_BYTES)
        except AccessRefused as error:
            raise CorruptState(f"{KEY}: {error}") from error
        if stored is None:
            return None
        header, _, body = stored.body.partition(b"\n")
        try:
            values = json.loads(header)
            if values["format"] != _FORMAT or values["sha256"] != sha256(body).hex():
                raise CorruptState(f"{KEY} is not what this version wrote")
            rows = json.loads(zlib.decompress(body))
            return IndexState({ItemId(row[0]): _item(row) for row in rows}, datetime.fromisoformat(values["until"]))
        except (ValueError, TypeError, LookupError, zlib.error) as error:
            raise CorruptState(f"{KEY} cannot be read") from error

    def write(self, state: IndexState) -> None:
        """`state` is the snapshot; one put."""
        rows = [
            (item.item_id, item.status, item.kind, item.reuse_count, item.updated_at.isoformat(), item.text.decode())
            for item in state.items.values()
        ]
        body = zlib.compress(json.dumps(rows, ensure_ascii=False).encode(), _COMPRESSION)
        header = {"format": _FORMAT, "until": state.until.isoformat(), "sha256": sha256(body).hex()}
        self._objects.put(KEY, json.dumps(header).encode() + b"\n" + body, content_type="application/octet-stream")


def _item(row: tuple[str, str, str, int, str, str]) -> IndexedItem:
    item_id, status, kind, reuse_count, updated_at, text = row
    at = datetime.fromisoformat(updated_at)
    return IndexedItem(ItemId(item_id), ItemStatus(status), KnowledgeKind(kind), reuse_count, at, text.encode())
