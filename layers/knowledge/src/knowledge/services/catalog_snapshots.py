"""Snapshots of the catalog in the bucket: written once, never changed, and read only when they are what was written."""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

from knowledge.domain.digest import sha256
from knowledge.domain.document import KnowledgeBasePath
from knowledge.errors import AccessRefused, CorruptState, UnusableCatalog
from knowledge.ports import ObjectStore, SnapshotPointer
from knowledge.retrieval.catalog_index import CatalogIndex

FOLDER: Final = "_index/catalog/"
_SUFFIX = ".snapshot"
# As many digits as the log's keys have, so that a listing is in the order of versions.
_DIGITS = 12
# Raised with every change of the header. What CatalogIndex writes has a format of its own.
_FORMAT = 1
# Longer than any header: a prefix is at most 1,024 bytes, in JSON at most six times that.
_MAX_HEADER_BYTES = 8 * 1024


@dataclass(frozen=True, slots=True)
class CatalogState:
    """The whole catalog as it was after one change of the log."""

    version: int
    index: CatalogIndex


class CatalogSnapshots:
    """The snapshots of one knowledge base.

    An object is one line of JSON (format, version, prefix), then the index. Whether it is whole and unchanged is told
    by size and SHA-256 in its pointer, which is kept elsewhere.
    """

    def __init__(
        self,
        objects: ObjectStore,
        base: KnowledgeBasePath,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        unique: Callable[[], str] = lambda: uuid4().hex,
    ) -> None:
        """`now` is aware UTC; `unique` gives a part of a key that nobody else has."""
        self._objects = objects
        self._base = base
        self._now = now
        self._unique = unique

    def read(self, pointer: SnapshotPointer) -> CatalogState:
        """What the snapshot holds; one read. Raises UnusableCatalog."""
        index = self._index_in(pointer)
        try:
            return CatalogState(pointer.version, CatalogIndex.load(index))
        except CorruptState as error:
            raise UnusableCatalog("format", f"{pointer.key}: {error}") from error

    def write(self, state: CatalogState) -> SnapshotPointer:
        """`state` is in an object that nobody knows of yet; one put."""
        header = {"format": _FORMAT, "version": state.version, "prefix": self._base.prefix}
        body = json.dumps(header).encode() + b"\n" + state.index.dump()
        key = f"{FOLDER}{state.version:0{_DIGITS}d}-{self._unique()}{_SUFFIX}"
        self._objects.put(key, body, content_type="application/octet-stream")
        return SnapshotPointer(state.version, key, sha256(body).hex(), len(body), self._now())

    def remove(self, pointer: SnapshotPointer) -> None:
        """The object is gone; one delete."""
        self._objects.delete(pointer.key)

    def remove_others(self, kept: Collection[SnapshotPointer]) -> int:
        """Objects older than the oldest of `kept` that are none of them are gone; returns how many.

        Newer ones stay: another compactor may be about to publish one. One call for each 1,000 objects and one for each
        that is removed.
        """
        if not kept:
            return 0
        oldest = min(pointer.version for pointer in kept)
        keys = {pointer.key for pointer in kept}
        old = [info.key for info in self._objects.list(FOLDER) if info.key not in keys and _version(info.key) < oldest]
        for key in old:
            self._objects.delete(key)
        return len(old)

    def _index_in(self, pointer: SnapshotPointer) -> bytes:
        """The index as it was dumped, after every check; alone, so that the whole object is not kept beside it."""
        try:
            stored = self._objects.read(pointer.key, max_bytes=pointer.size_bytes)
        except AccessRefused as error:
            raise UnusableCatalog("refused", str(error)) from error
        if stored is None:
            raise UnusableCatalog("missing", f"there is no {pointer.key}")
        if (size := stored.info.size_bytes) != pointer.size_bytes or len(stored.body) != size:
            raise UnusableCatalog("torn", f"{pointer.key} has {size} bytes and was written with {pointer.size_bytes}")
        if sha256(stored.body).hex() != pointer.sha256:
            raise UnusableCatalog("checksum", f"{pointer.key} is not what was written")
        header, _, _ = stored.body[:_MAX_HEADER_BYTES].partition(b"\n")
        self._check(header, pointer)
        return stored.body[len(header) + 1 :]

    def _check(self, header: bytes, pointer: SnapshotPointer) -> None:
        try:
            values = json.loads(header)
            found = (values["format"], values["version"], values["prefix"])
        except (ValueError, TypeError, KeyError) as error:
            raise UnusableCatalog("format", f"{pointer.key} has no header that can be read") from error
        if found[:2] != (_FORMAT, pointer.version):
            raise UnusableCatalog("format", f"{pointer.key} has format {found[0]!r} and version {found[1]!r}")
        if found[2] != self._base.prefix:
            raise UnusableCatalog("prefix", f"{pointer.key} is of {found[2]!r} and not of {self._base.prefix!r}")


def _version(key: str) -> float:
    """The version in the key of a snapshot; more than any for a key that is none of ours."""
    digits = key.removeprefix(FOLDER)[:_DIGITS]
    return int(digits) if digits.isdecimal() and key.endswith(_SUFFIX) else float("inf")
