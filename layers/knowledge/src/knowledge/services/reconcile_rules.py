"""How file, record and vectors of one document can differ, and from when on that is no work in progress. Pure."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from typing import Final

from knowledge.domain.document import DocId, DocumentRecord, DocumentStatus, Generation, KnowledgeEntry
from knowledge.ports import ObjectInfo
from knowledge.services.preparation import PIPELINE_VERSION

# After this long nobody is in the middle of anything: the queue has delivered a message eight times within 23 minutes
# (template.yaml), and whoever wrote vectors has committed them within the five minutes of the longest function, or
# never will. Source: own choice, twice that and more.
SETTLED_AFTER: Final = timedelta(hours=1)


class Kind(StrEnum):
    """How the stores can differ."""

    NOT_INDEXED = "not_indexed"
    """A file without a record: its delete marker was removed, or its event was lost."""
    GONE = "gone"
    """A record without a file."""
    CHANGED = "changed"
    """The file has another content than the record."""
    OUTDATED = "outdated"
    """The record is another embedder's, or was made by an earlier version of the pipeline."""
    UNFINISHED = "unfinished"
    """PENDING for longer than the queue tries."""
    FAILED = "failed"
    """It could not be indexed; the cause may be gone."""
    CATALOG = "catalog"
    """The exact tier has no entry where there should be one, or one that should not be there or has another title."""
    ITEM = "item"
    """The file of a knowledge item is not what the item says, is missing, or should not be there."""
    VECTORS_LOST = "vectors_lost"
    """The record names vectors that the store does not hold, or not all of them."""
    VECTORS_UNOWNED = "vectors_unowned"
    """Vectors that no record names, for longer than anybody writes."""


class Held:
    """The generations that a vector store held at one moment: eight bytes for each, a megabyte for 130,000."""

    def __init__(self, at: datetime, generations: Iterable[tuple[DocId, Generation]]) -> None:
        """`at` is when their listing began."""
        self.at = at
        self._fingerprints = array("Q", sorted(_fingerprint(*key) for key in generations))

    def __contains__(self, key: tuple[DocId, Generation]) -> bool:
        wanted = _fingerprint(*key)
        place = bisect_left(self._fingerprints, wanted)
        return place < len(self._fingerprints) and self._fingerprints[place] == wanted


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts as a difference for functions with one embedder."""

    embedder: str
    settled_after: timedelta

    def difference(
        self, info: ObjectInfo | None, record: DocumentRecord | None, held: Held | None, now: datetime
    ) -> Kind | None:
        """How object and record differ, None when they do not or when somebody may still be at work.

        Without `held`, vectors are not looked at.
        """
        if info is None or record is None:
            return Kind.GONE if record else Kind.NOT_INDEXED if info else None
        if record.status is DocumentStatus.FAILED:
            return Kind.FAILED
        if record.etag != info.etag:
            return Kind.CHANGED
        if record.status is DocumentStatus.PENDING:
            return Kind.UNFINISHED if self.is_settled(record.updated_at, now) else None
        if record.pipeline_version != PIPELINE_VERSION:
            return Kind.OUTDATED
        return None if held is None else self._difference_of_vectors(record, held)

    def difference_of_entry(self, record: DocumentRecord | None, entry: KnowledgeEntry | None) -> Kind | None:
        """How the exact tier's entry differs from the record, where that agrees with everything else."""
        expected = record.title if record is not None and record.metadata is not None else None
        return Kind.CATALOG if expected != (entry.title if entry is not None else None) else None

    def is_settled(self, since: datetime, now: datetime) -> bool:
        """True when who did something at `since` is through with what follows from it."""
        return now - since >= self.settled_after

    def _difference_of_vectors(self, record: DocumentRecord, held: Held) -> Kind | None:
        if record.embedder != self.embedder:
            return Kind.OUTDATED
        if record.generation is None or not self.is_settled(record.updated_at, held.at):
            return None
        return None if (record.doc_id, record.generation) in held else Kind.VECTORS_LOST


def _fingerprint(doc_id: DocId, generation: Generation) -> int:
    """64 bits: that one of a million is taken for a lost one has a chance of 1 in 10 ** 13."""
    return int.from_bytes(blake2b(f"{doc_id}/{generation}".encode(), digest_size=8).digest())
