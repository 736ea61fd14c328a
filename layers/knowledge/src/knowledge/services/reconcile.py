"""Bucket, table and vector store are compared, and every difference is repaired through `converge`.

Events and the queue make the stores agree; this is for what they cannot tell: a delete marker that was removed, an
event that never came, vectors that were lost or left behind. Source: docs/adr/0015.
"""

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple

from knowledge.domain.document import (
    DocumentRecord,
    DocumentStatus,
    KnowledgeBasePath,
    doc_id_for,
)
from knowledge.errors import AccessRefused, CorruptState, DependencyUnavailable, OtherEmbedder
from knowledge.ports import DocumentRegistry, ObjectStore, RebuildableVectorStore
from knowledge.services.catalog_source import CatalogSource
from knowledge.services.converge import Converger, Outcome
from knowledge.services.reconcile_catalog import CommittedCatalog
from knowledge.services.reconcile_items import ReconciledItems
from knowledge.services.reconcile_progress import Difference, Progress, ProgressStore, Report
from knowledge.services.reconcile_rules import SETTLED_AFTER, Held, Kind, Rules
from knowledge.services.reconcile_vectors import UnownedVectors
from knowledge.services.reconcile_walk import Side, listed_paths, stored_generations

_logger = logging.getLogger(__name__)

# Paths that are compared, and repaired, together. Source: own choice: a set of changes of `converge_all`.
_SET = 25


class _Found(NamedTuple):
    """A difference, and the record with which it was seen."""

    kind: Kind
    path: str
    record: DocumentRecord | None


class Reconcile:
    """Compares and repairs one base, in memory that does not grow with it but for eight bytes a document.

    What a listing shows is only a hint, because the index of the table lags and listings take a while: before anything
    is called a difference, record and object are read again, in converge's order. No vectors of somebody who is still
    at work are taken away: those that no record names are noted, and removed by a pass an hour later or more, when
    still no record names them.
    """

    def __init__(
        self,
        objects: ObjectStore,
        registry: DocumentRegistry,
        converger: Converger,
        vectors: RebuildableVectorStore,
        base: KnowledgeBasePath,
        catalog: CatalogSource,
        items: ReconciledItems,
        *,
        embedder: str,
        settled_after: timedelta = SETTLED_AFTER,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`converger` works with the same stores, and with the embedder of this name.

        `now` is aware UTC, `clock` monotonic seconds, in which deadlines are given.
        """
        self._objects = objects
        self._registry = registry
        self._converger = converger
        self._vectors = vectors
        self._base = base
        self._catalog = catalog
        self._items = items
        self._rules = Rules(embedder, settled_after)
        self._unowned = UnownedVectors(registry, converger, self._rules, now)
        self._now = now
        self._clock = clock
        self._saved = ProgressStore(objects)

    def resume(self, *, deadline: float = math.inf, begin: bool = True) -> Report:
        """The pass that stopped last goes on, or a new one begins; until `deadline`, where the next call goes on.

        Without `begin` no new one begins, and the report is that of the last one. That costs one read.

        Raises:
            DependencyUnavailable: a store did not list what it holds; what was done is kept.
        """
        saved = self._saved.load()
        is_through = saved is None or saved.report.finished_at is not None
        progress = Progress.begun(self._now(), saved) if saved is None or (is_through and begin) else saved
        if is_through and not begin:
            return progress.report
        for _ in self._saving(progress, self._steps(progress, deadline, repair=True)):
            pass
        return progress.report

    def run(self, *, repair: bool) -> Iterator[Report]:
        """A whole pass from the beginning on; yields its report, as far as it has got, after every path.

        Without `repair` nothing is changed, neither in the stores nor of what is remembered. Raises as `resume`.
        """
        progress = Progress.begun(self._now(), self._saved.load())
        steps = self._steps(progress, math.inf, repair=repair)
        for _ in self._saving(progress, steps) if repair else steps:
            yield progress.report
        yield progress.report

    def _saving(self, progress: Progress, steps: Iterator[None]) -> Iterator[None]:
        try:
            yield from steps
        finally:
            self._saved.save(progress)
        report = progress.report
        shown = report.as_json() | {"unrepaired": report.unrepaired, "told": None}
        _logger.info("stores_reconciled" if report.finished_at else "reconcile_interrupted", extra=shown)

    def _steps(self, progress: Progress, deadline: float, *, repair: bool) -> Iterator[None]:
        """One after the other, each as far as there is time; the next call goes on where this one stopped."""
        held = self._held(progress.report)
        if not progress.is_walked:
            yield from self._walk(progress, held, deadline, repair=repair)
        if progress.is_walked and not progress.has_items:
            yield from self._walk_items(progress, deadline, repair=repair)
        if not progress.has_items:
            return
        if held is not None:
            for documents in stored_generations(self._vectors, after=progress.after):
                if self._clock() >= deadline:
                    return
                self._unowned.compare(progress, documents, repair=repair)
                yield
        progress.finish(self._now())

    def _walk(self, progress: Progress, held: Held | None, deadline: float, *, repair: bool) -> Iterator[None]:
        catalog = CommittedCatalog.load(self._catalog)
        entries = catalog.after(progress.after) if catalog else ()
        paths = listed_paths(
            self._objects, self._registry, self._base, entries, after=progress.after, page=progress.page
        )
        while page := list(islice(paths, _SET)):
            if self._clock() >= deadline:
                return
            wrong = self._items.wrong(page)
            of_items = self._items.told(wrong, deadline=deadline, repair=repair)
            others = [seen for seen in page if seen.path not in wrong]
            differing = [found for seen in others if (found := self._difference(seen, held, catalog))]
            left = self._repair(differing, deadline) if repair else {}
            if not _note(progress, page, differing, left):
                return
            progress.report.add(*of_items)
            yield
        progress.is_walked, progress.after, progress.page = True, "", None

    def _walk_items(self, progress: Progress, deadline: float, *, repair: bool) -> Iterator[None]:
        while not progress.has_items:
            if self._clock() >= deadline:
                return
            wrong, progress.page = self._items.missing(progress.page)
            progress.report.add(*self._items.told(wrong, deadline=deadline, repair=repair))
            progress.has_items = progress.page is None
            if progress.has_items:
                self._items.finish(progress.report, self._now(), deadline=deadline, repair=repair)
            yield

    def _held(self, report: Report) -> Held | None:
        """None when the vector store cannot be asked, or holds nothing of this embedder's; the report says so."""
        at = self._now()
        try:
            self._vectors.notes()
            held = Held(at, self._vectors.generations())
        except (DependencyUnavailable, OtherEmbedder) as error:
            report.left_out = str(error)
            _logger.warning("vectors_left_out", extra={"reason": str(error)})
            return None
        report.left_out = None
        return held

    def _difference(self, seen: Side, held: Held | None, catalog: CommittedCatalog | None) -> _Found | None:
        """How the stores differ about a path, with what a second look saw. Without `catalog` that is left out."""
        if self._kind(seen, held, with_entry=catalog is not None) is None:
            return None
        record, entry = self._registry.read(doc_id_for(seen.path)).record, None
        try:
            entry = catalog.entry(seen.path) if catalog else None
        except CorruptState:
            catalog = None
        try:
            info = self._objects.stat(seen.path)
        except AccessRefused:
            info = seen.info
        again = Side(seen.path, info, record, seen.page, entry)
        kind = self._kind(again, held, with_entry=catalog is not None)
        return _Found(kind, seen.path, record) if kind else None

    def _kind(self, seen: Side, held: Held | None, *, with_entry: bool) -> Kind | None:
        kind = self._rules.difference(seen.info, seen.record, held, self._now())
        return kind or (self._rules.difference_of_entry(seen.record, seen.entry) if with_entry else None)

    def _repair(self, differing: Sequence[_Found], deadline: float) -> Mapping[str, Outcome | Exception]:
        """How each path was left; what was raised for one keeps no other from being repaired."""
        lost = frozenset(
            found.record.generation
            for found in differing
            if found.kind is Kind.VECTORS_LOST and found.record and found.record.generation
        )
        of_catalog = [found.path for found in differing if found.kind is Kind.CATALOG]
        others = [found.path for found in differing if found.kind is not Kind.CATALOG]
        return {
            **self._converger.converge_all(others, deadline=deadline, lost=lost),
            **self._converger.converge_all(of_catalog, deadline=deadline, anew=True),
        }


def _note(
    progress: Progress, page: Sequence[Side], differing: Sequence[_Found], left: Mapping[str, Outcome | Exception]
) -> bool:
    """The paths of `page` are in the report, up to the first whose turn did not come; False when there is one."""
    found_at = {found.path: found for found in differing}
    for seen in page:
        record = seen.record
        if found := found_at.get(seen.path):
            outcome = left.get(seen.path)
            if isinstance(outcome, Outcome) and outcome.out_of_time and outcome.record is None:
                return False
            record = outcome.record if isinstance(outcome, Outcome) else found.record
            progress.report.add(_told(found.kind, found.path, record, outcome))
        progress.report.count(record)
        progress.after, progress.page = seen.path, seen.page or progress.page
    return True


def _told(kind: Kind, path: str, record: DocumentRecord | None, outcome: Outcome | Exception | None) -> Difference:
    """The difference with what became of it: `outcome` of its repair, None when it was only looked at."""
    is_indexed = record is None or record.status is DocumentStatus.INDEXED
    is_repaired = isinstance(outcome, Outcome) and is_indexed
    reason = str(outcome) if isinstance(outcome, Exception) else record.reason if record else None
    difference = Difference(kind, path, is_repaired, reason)
    if outcome is not None and not is_repaired:
        _logger.warning("difference_not_repaired", extra={"path": path, "kind": kind.value, "reason": reason})
    return difference
