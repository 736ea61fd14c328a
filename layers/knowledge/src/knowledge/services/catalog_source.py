"""Where the catalog comes from: a snapshot or a scan of the bucket, and what the log says after it."""

import logging
from dataclasses import dataclass
from enum import StrEnum

from knowledge.domain.document import KnowledgeBasePath
from knowledge.errors import UnusableCatalog
from knowledge.ports import CatalogHead, CatalogLog, ObjectStore, SnapshotPointer
from knowledge.retrieval.catalog_index import CatalogIndex
from knowledge.services.catalog_snapshots import CatalogSnapshots, CatalogState

_logger = logging.getLogger(__name__)


class Origin(StrEnum):
    """What a catalog was built from, beside the end of the log."""

    SNAPSHOT = "snapshot"
    LOG = "log"
    """The whole log, from its first entry."""
    SCAN = "scan"


@dataclass(frozen=True, slots=True)
class LoadedCatalog:
    """A catalog, and what it was built from."""

    head: CatalogHead
    """As it was before that."""
    state: CatalogState
    origin: Origin
    snapshot: SnapshotPointer | None = None
    """The one it was built from."""


class CatalogSource:
    """Builds the catalog of one knowledge base; readers and the compactor do it the same way."""

    def __init__(
        self, objects: ObjectStore, log: CatalogLog, base: KnowledgeBasePath, *, max_document_bytes: int
    ) -> None:
        """Larger files than `max_document_bytes` are left out of a scan."""
        self._objects = objects
        self._log = log
        self._base = base
        self._max_document_bytes = max_document_bytes
        self._snapshots = CatalogSnapshots(objects, base)

    def load(self, *, from_log: bool = False) -> LoadedCatalog:
        """The catalog from the newest snapshot that can be used, else from a scan; then the log.

        With `from_log`, the whole log is tried before the scan: it tells what was committed, and nothing of files that
        were not indexed. Two calls for the snapshot (the head of the log and the object) and one for the log. A scan
        makes one list call for each 1,000 objects and one ranged read for each document, 32 at a time. Whatever cannot
        be used is logged as a warning with its cause.

        Raises:
            DependencyUnavailable: a store did not answer.
            CorruptState: the head of the log cannot be read, or the log has a gap after a scan.
        """
        head = self._log.head()
        while True:
            try:
                return (
                    self._from_snapshot(head) or (self._from_log(head) if from_log else None) or self._from_scan(head)
                )
            except UnusableCatalog:
                before, head = head, self._log.head()
                if head.snapshots == before.snapshots:
                    raise
                # Compaction has overtaken this: what it published meanwhile is newer than what it removed.

    def load_committed(self) -> LoadedCatalog | None:
        """The catalog from the newest snapshot that can be used, else from the whole log; None where only a scan can.

        Calls and errors as above.
        """
        head = self._log.head()
        return self._from_snapshot(head) or self._from_log(head)

    def caught_up(self, state: CatalogState, *, skip_unreadable: bool = False) -> CatalogState:
        """`state` with everything that was committed after it; one read when nothing was.

        Raises:
            UnusableCatalog: the log does not go on where `state` ends, or an entry cannot be read.
        """
        changes = self._log.changes_after(state.version)
        if not changes:
            return state
        if [change.version for change in changes] != list(range(state.version + 1, changes[-1].version + 1)):
            raise UnusableCatalog("gap", f"the catalog log has a gap after version {state.version}")
        for change in changes:
            if change.problem is not None and not skip_unreadable:
                raise UnusableCatalog("entry", change.problem)
            if change.problem is not None:
                _logger.error("catalog_entry_unreadable", extra={"version": change.version, "reason": change.problem})
        latest = {path: entry for change in changes for path, entry in change.entries.items() if self._base.holds(path)}
        return CatalogState(changes[-1].version, state.index.changed(latest))

    def _from_snapshot(self, head: CatalogHead) -> LoadedCatalog | None:
        """The catalog from the newest snapshot that is whole and that the log goes on from; None without one."""
        for pointer in head.snapshots:
            try:
                state = self._up_to(head, self._snapshots.read(pointer))
            except UnusableCatalog as error:
                _logger.warning(
                    "catalog_snapshot_unusable",
                    extra={"key": pointer.key, "cause": error.cause, "reason": str(error)},
                )
            else:
                return LoadedCatalog(head, state, Origin.SNAPSHOT, pointer)
        return None

    def _from_log(self, head: CatalogHead) -> LoadedCatalog | None:
        """The catalog from the log alone; None when its beginning was removed or an entry cannot be read."""
        try:
            return LoadedCatalog(head, self._up_to(head, CatalogState(0, CatalogIndex())), Origin.LOG)
        except UnusableCatalog as error:
            _logger.info("catalog_log_incomplete", extra={"cause": error.cause, "reason": str(error)})
            return None

    def _from_scan(self, head: CatalogHead) -> LoadedCatalog:
        """The catalog from the files in the bucket, which are at least as new as `head`, then the log.

        The log decides about every path it names: a file may be away, or replaced, for a moment that ends without any
        event (a delete marker, or a newer version, is removed), and who scans just then would never learn better. What
        comes before an entry that is missing or cannot be read decides nothing, because that one may have named the
        same path; the files are newer than it. One that is newer than `head` is left out with an error: there is
        nothing left to fall back to.
        """
        # Imported here: a process that loads a snapshot needs no parser.
        from knowledge.services.bucket_scan import scan

        index = CatalogIndex(scan(self._objects, self._base, max_document_bytes=self._max_document_bytes))
        readable = {change.version for change in self._log.changes_after(0) if change.problem is None}
        start = head.version
        while start in readable:
            start -= 1
        return LoadedCatalog(head, self.caught_up(CatalogState(start, index), skip_unreadable=True), Origin.SCAN)

    def _up_to(self, head: CatalogHead, state: CatalogState) -> CatalogState:
        """As `caught_up`; what comes last in the log must be there too."""
        state = self.caught_up(state)
        if state.version < head.version:
            raise UnusableCatalog("gap", f"the catalog log ends at version {state.version} and not at {head.version}")
        return state
