"""What reconciling has found, and how far it has got: kept in the bucket, so that the next invocation goes on there."""

import logging
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pydantic import TypeAdapter, ValidationError

from knowledge.domain.document import DocumentRecord, DocumentStatus, Json
from knowledge.ports import ObjectStore
from knowledge.services.reconcile_rules import Kind

_logger = logging.getLogger(__name__)

KEY: Final = "_index/reconcile.json"
# Two lists of 10,000 generations with their times take 2 MB. Source: own choice, far above that.
_MAX_BYTES = 16 * 1024 * 1024
# Differences that a report tells one by one; the others are counted. Source: own choice.
_MOST_TOLD = 100


@dataclass(frozen=True, slots=True)
class Difference:
    """One that was found."""

    kind: Kind
    path: str
    """Of the document; of vectors that no record names, the document's id and the generation."""
    is_repaired: bool
    reason: str | None
    """What the record says is wrong, or why it could not be repaired."""


@dataclass(slots=True)
class Report:
    """One pass over all stores, from `began_at` until `finished_at`, which is None while it is not through."""

    began_at: datetime
    finished_at: datetime | None = None
    documents: int = 0
    """Paths that were compared."""
    statuses: dict[DocumentStatus, int] = field(default_factory=dict)
    """Records by status, after their repair."""
    generations: int = 0
    """Generations of vectors that were compared."""
    unsettled_items: int = 0
    """Knowledge items whose documents are not right a minute after they should be; of more than 100, 100."""
    published_without_embedding: int = 0
    """Published items that are not found by meaning."""
    differences: dict[Kind, int] = field(default_factory=dict)
    repaired: int = 0
    waiting: int = 0
    """Generations that no record names, which are removed when that is still so in a later pass."""
    told: list[Difference] = field(default_factory=list)
    """The first hundred differences."""
    left_out: str | None = None
    """Why vectors were not compared, when they were not."""

    @property
    def unrepaired(self) -> int:
        """Differences that are still there."""
        return sum(self.differences.values()) - self.repaired

    def add(self, *differences: Difference) -> None:
        """They were found."""
        for difference in differences:
            self.differences[difference.kind] = self.differences.get(difference.kind, 0) + 1
            self.repaired += difference.is_repaired
            if len(self.told) < _MOST_TOLD:
                self.told.append(difference)

    def count(self, record: DocumentRecord | None) -> None:
        """A path was compared, and `record` is what is indexed of it now."""
        self.documents += 1
        if record is not None:
            self.statuses[record.status] = self.statuses.get(record.status, 0) + 1

    def as_json(self) -> dict[str, Json]:
        """All of it, times in ISO 8601."""
        shown: dict[str, Json] = TypeAdapter(Report).dump_python(self, mode="json")
        return shown


@dataclass(slots=True)
class Progress:
    """A pass that has begun, and what earlier ones noted."""

    report: Report
    is_walked: bool = False
    """All documents were compared, and items are next."""
    has_items: bool = False
    """All items were compared, and vectors are next."""
    after: str = ""
    """The last path compared; of vectors, the last document's id."""
    page: str | None = None
    """The registry's cursor for the page with the last record compared; of items, the cursor of their next page."""
    unowned: dict[str, datetime] = field(default_factory=dict)
    """When earlier passes first saw vectors that no record named, by document id and generation."""
    noted: dict[str, datetime] = field(default_factory=dict)
    """The same, of those that this pass saw and left."""

    @classmethod
    def begun(cls, at: datetime, before: "Progress | None") -> "Progress":
        """A new pass, which knows what `before` noted."""
        return cls(Report(at), unowned=before.unowned | before.noted if before else {})

    def finish(self, at: datetime) -> None:
        """The pass is through: what it did not see any more is forgotten."""
        self.report.finished_at = at
        self.unowned, self.noted = self.noted, {}


_PROGRESS = TypeAdapter(Progress)


class ProgressStore:
    """Keeps one Progress; with two writers the last one counts, which repeats or skips a part of one pass."""

    def __init__(self, objects: ObjectStore) -> None:
        """`objects` holds the bucket's objects."""
        self._objects = objects

    def load(self) -> Progress | None:
        """What was saved last; None when nothing was, or nothing that this version can read. One read."""
        stored = self._objects.read(KEY, max_bytes=_MAX_BYTES)
        if stored is None:
            return None
        try:
            return _PROGRESS.validate_json(stored.body)
        except ValidationError as error:
            _logger.warning("progress_unreadable", extra={"key": KEY, "reason": f"{error.error_count()} problems"})
            return None

    def save(self, progress: Progress) -> None:
        """`progress` is what is loaded from now on. One put."""
        self._objects.put(KEY, _PROGRESS.dump_json(progress), content_type="application/json")
