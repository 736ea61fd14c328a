"""Compaction: the catalog is written down as a snapshot, and what of the log no reader needs any more is removed."""

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from knowledge.domain.document import KnowledgeBasePath
from knowledge.errors import Conflict
from knowledge.ports import CatalogLog, ObjectStore, SnapshotPointer
from knowledge.services.catalog_snapshots import CatalogSnapshots
from knowledge.services.catalog_source import CatalogSource, LoadedCatalog, Origin

_logger = logging.getLogger(__name__)

# From so many entries after the snapshot on a new one is worth it: they are one or two calls of a megabyte, about as
# long as the snapshot itself takes. Source: own choice.
LONG_LOG: Final = 1000
# Removed in one run, so that it ends: 400 calls of some 10 ms. The next run goes on. Source: own choice.
_MOST_REMOVED = 10_000


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What was done."""

    version: int
    """What the newest snapshot covers; 0 without one."""
    changes: int
    """How many entries of the log came after the one that was the newest before."""
    source: Origin
    """What the catalog was built from."""
    document_count: int
    """Of the catalog."""
    is_written: bool = False
    """True when there is a new snapshot, which readers that start from now on use."""
    size_bytes: int | None = None
    """Of the new snapshot."""
    removed_entries: int = 0
    """Of the log."""
    removed_objects: int = 0
    """Snapshots that nothing named any more."""
    elapsed_ms: int = 0


class Compaction:
    """Compacts one catalog. Several at the same time are safe: one publishes, the others leave nothing behind."""

    def __init__(
        self, objects: ObjectStore, log: CatalogLog, base: KnowledgeBasePath, *, max_document_bytes: int
    ) -> None:
        """`max_document_bytes` counts for a scan, as in `CatalogSource`."""
        self._log = log
        self._source = CatalogSource(objects, log, base, max_document_bytes=max_document_bytes)
        self._snapshots = CatalogSnapshots(objects, base)

    def compact(self, *, least_changes: int = 1) -> CompactionResult:
        """A snapshot that can be used covers what was committed before this call, but for fewer than `least_changes`.

        It is built from the newest snapshot that can be used and the log after it; without one from the whole log, and
        where that is incomplete from the files. Then the entries of the log before the snapshot that was the newest
        until now are removed, at most 10,000, and objects that the head no longer names. A run that dies at any point
        leaves nothing that the next ones do not clear up.

        With nothing to write it reads the newest snapshot and looks for what is left to remove: five calls.

        Raises:
            DependencyUnavailable: a store did not answer; what was done until then is right and stays.
            CorruptState: the head of the log cannot be read, or the log has a gap after the files were scanned.
        """
        started = time.perf_counter()
        result = self._compacted(self._source.load(from_log=True), least_changes)
        result = replace(result, elapsed_ms=round((time.perf_counter() - started) * 1000))
        _logger.info("catalog_compacted", extra=asdict(result))
        return result

    def _compacted(self, loaded: LoadedCatalog, least_changes: int) -> CompactionResult:
        snapshots, state, used = loaded.head.snapshots, loaded.state, loaded.snapshot
        newest = snapshots[0].version if snapshots else 0
        result = CompactionResult(newest, state.version - newest, source=loaded.origin, document_count=len(state.index))
        is_usable = used is not None and used == snapshots[0]
        if state.version == 0 or (is_usable and result.changes < least_changes):
            return self._cleared(snapshots, result)
        written = self._snapshots.write(state)
        published = (written,) if used is None else (written, used)
        try:
            self._log.publish(published, instead_of=snapshots)
        except Conflict:
            # After any other error it may be published all the same; then it stays until a later run clears up.
            self._snapshots.remove(written)
            return result
        result = replace(result, version=written.version, is_written=True, size_bytes=written.size_bytes)
        return self._cleared(published, result)

    def _cleared(self, published: Sequence[SnapshotPointer], result: CompactionResult) -> CompactionResult:
        """What is older than both snapshots is gone.

        The entry with the number of the older one stays: so a reader that is older than everything that was removed
        still finds an entry after its own version, and that it does not go on there.
        """
        if len(published) < 2:
            return result
        return replace(
            result,
            removed_entries=self._log.forget_before(published[-1].version, limit=_MOST_REMOVED),
            removed_objects=self._snapshots.remove_others(published),
        )
