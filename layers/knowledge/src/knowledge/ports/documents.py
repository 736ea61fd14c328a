"""Files, what is indexed of them, and the log of the exact tier."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from knowledge.domain.document import DocId, DocumentRecord, DocumentStatus, Generation, KnowledgeEntry

# Source: Amazon DynamoDB developer guide, "Quotas": a transaction writes at most 100 items. Two are the log's; a change
# takes three at most: the record, its deletion, the generation no longer used.
MAX_CHANGES: Final = 32


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One stored object, without its bytes."""

    key: str
    etag: str
    size_bytes: int
    version_id: str | None = None
    """None where the call does not tell: in a listing."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One stored object; `body` holds its first bytes, all of them unless `truncated`."""

    info: ObjectInfo
    body: bytes

    @property
    def truncated(self) -> bool:
        """True when the object is longer than what was asked for."""
        return len(self.body) < self.info.size_bytes


class ObjectStore(Protocol):
    """A versioned, strongly consistent store of files under keys. Keys are verbatim."""

    def put(self, key: str, body: bytes, *, content_type: str) -> str:
        """`body` is the current version of `key`; returns the version's id. After an error no new version is left."""

    def read(self, key: str, *, max_bytes: int) -> StoredObject | None:
        """The current version's first `max_bytes` bytes (one call, ranged), or None when there is none."""

    def stat(self, key: str) -> ObjectInfo | None:
        """The current version without its bytes, or None when there is none."""

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        """Every current object under `prefix` with a key greater than `after`, in key order, a call for each 1,000.

        Keys are ordered by their UTF-8 bytes, as Python orders texts.
        """

    def delete(self, key: str) -> None:
        """`key` has no current version; earlier versions are kept. Deleting what is not there is no error."""

    def delete_version(self, key: str, version_id: str) -> None:
        """That version is gone; the one before it, if any, is current again."""

    def download_url(self, key: str, *, expires_s: int) -> str:
        """A URL from which anybody may read the object for `expires_s` seconds; makes no call."""


@dataclass(frozen=True, slots=True)
class DocumentState:
    """What the registry holds of one document, read in one strongly consistent call."""

    record: DocumentRecord | None
    discarded: tuple[Generation, ...] = ()
    """Generations of vectors that were replaced and not yet removed."""
    deleted: str | None = None
    """Unique to the deletion, of a record or of nothing, that was committed last; None when none ever was: tells one
    absence from a later one."""


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """One step of a document: its record and its catalog entry change together."""

    doc_id: DocId
    file_path: str
    before: DocumentRecord | None
    after: DocumentRecord | None
    entry: KnowledgeEntry | None
    """The catalog entry from now on; None takes the document out of the exact tier."""
    deleted: str | None = None
    """`DocumentState.deleted` as it was read with `before`; counts where that is None."""

    @property
    def discarded(self) -> Generation | None:
        """The generation of vectors that this change makes useless."""
        old = self.before.generation if self.before else None
        return old if old != (self.after.generation if self.after else None) else None


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """Records in path order; `next_cursor` is None on the last page."""

    records: tuple[DocumentRecord, ...]
    next_cursor: str | None


class DocumentRegistry(Protocol):
    """Knows what is indexed, and says so atomically with the catalog log."""

    def read(self, doc_id: DocId) -> DocumentState:
        """The record and the generations waiting to be removed, strongly consistent, one call."""

    def commit(self, changes: Sequence[DocumentChange]) -> None:
        """In one transaction: every record, one log item with all entries, head version + 1, all `discarded` noted.

        `changes` are 1 to MAX_CHANGES, each of another document. Contention on the head alone is retried inside. After
        an error that is told here nothing was written.

        Raises:
            VersionConflict: names the paths whose stored record is not `before`, or that had none and one has come and
                gone since. Others may have lost too.
            TooLarge: the changes take more than one transaction can; a part of them may be committed alone.
            InvalidInput: a value of one of them cannot be stored.
        """

    def forget_discarded(self, doc_id: DocId, generation: Generation) -> None:
        """The generation is no longer waiting to be removed. Idempotent."""

    def generations(self, doc_ids: Sequence[DocId]) -> Mapping[DocId, Generation]:
        """The current generation of each document that has one; strongly consistent; at most 100 ids, one call."""

    def list(self, *, path_prefix: str, status: DocumentStatus | None, cursor: str | None, limit: int) -> DocumentPage:
        """Up to `limit` (1 to 100) records in path order. Raises InvalidInput for a cursor that is not ours."""


@dataclass(frozen=True, slots=True)
class CatalogChange:
    """One item of the catalog log: what was committed together."""

    version: int
    entries: Mapping[str, KnowledgeEntry | None]
    """By path, the document's entry from `version` on, or None when it has none."""
    problem: str | None = None
    """Why this item of the log cannot be read; then it has no entries."""


@dataclass(frozen=True, slots=True)
class SnapshotPointer:
    """Where a snapshot of the whole catalog is, and what its bytes must be."""

    version: int
    """The last change that it holds."""
    key: str
    sha256: str
    """Of the whole object, in hexadecimal digits."""
    size_bytes: int
    written_at: datetime


@dataclass(frozen=True, slots=True)
class CatalogHead:
    """Where the log ends, and from where it can be read."""

    version: int = 0
    """Number of the newest committed change, 0 when there is none."""
    snapshots: tuple[SnapshotPointer, ...] = ()
    """The current snapshot and the one before it, as far as there are any; newest first."""


class CatalogLog(Protocol):
    """The numbered sequence of changes to the exact tier, without a gap from its oldest entry to its newest."""

    def head(self) -> CatalogHead:
        """Strongly consistent, one call."""

    def changes_after(self, version: int) -> Sequence[CatalogChange]:
        """Every change after `version` that was not removed, in order; strongly consistent; one call when none is."""

    def publish(self, snapshots: Sequence[SnapshotPointer], *, instead_of: Sequence[SnapshotPointer]) -> None:
        """`snapshots` (one or two, newest first) are those of the head from now on; its version is untouched.

        Raises Conflict when the newest of the head's is not that of `instead_of`, or when nothing was ever committed.
        """

    def forget_before(self, version: int, *, limit: int) -> int:
        """The oldest entries before `version`, at most `limit`, are removed, oldest first; returns how many."""
