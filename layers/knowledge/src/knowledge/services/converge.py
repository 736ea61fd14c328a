"""`converge`: the one function that changes what is indexed. Level-triggered: whoever calls it only hints to look."""

import logging
import math

from knowledge.domain.document import DocId, DocumentRecord, DocumentStatus, Generation, KnowledgeBasePath, doc_id_for
from knowledge.errors import Conflict, DependencyUnavailable, VersionConflict
from knowledge.ports import DocumentChange, DocumentRegistry, ObjectStore
from knowledge.services.preparation import Preparation

_logger = logging.getLogger(__name__)

# A writer that lost the race starts over; this many losses in a row on one document mean something else is wrong.
_MAX_RACES = 10


class Converger:
    """Makes the index say what the bucket holds. Safe from any process, in any order, any number of times."""

    def __init__(
        self, objects: ObjectStore, registry: DocumentRegistry, preparation: Preparation, base: KnowledgeBasePath
    ) -> None:
        """`base` decides which keys name documents; all others are left alone."""
        self._objects = objects
        self._registry = registry
        self._preparation = preparation
        self._base = base

    def converge(self, path: str, *, deadline: float = math.inf, anew: bool = False) -> DocumentRecord | None:
        """What is indexed for `path` is what the bucket holds now; returns its record, None when there is no document.

        The record is read before the object: whoever commits between the two reads makes this commit lose, so an older
        content can never be written over a newer one. Unchanged content costs two calls and writes nothing, unless
        `anew`. Embedding stops at `deadline` (monotonic seconds); what is left makes the document PENDING. A path that
        names no document is left alone.

        Raises:
            DependencyUnavailable: a store failed; calling again goes on from wherever this call stopped.
            Conflict: other writers won ten times in a row.
        """
        if not self._base.holds(path):
            return None
        for _ in range(_MAX_RACES):
            try:
                return self._converge_once(doc_id_for(path), path, deadline, anew=anew)
            except VersionConflict:
                continue
        raise Conflict(f"{path} kept changing while it was being indexed")

    def _converge_once(self, doc_id: DocId, path: str, deadline: float, *, anew: bool) -> DocumentRecord | None:
        state = self._registry.read(doc_id)
        for generation in state.discarded:
            self._remove_discarded(doc_id, generation)
        info = self._objects.stat(path)
        if info is None and state.record is None:
            return None
        if info and state.record and self._preparation.is_current(state.record, info.etag) and not anew:
            return state.record
        change = self._preparation.prepare(doc_id, path, state.record, deadline)
        if _is_pending_again(change) and not anew:
            self._drop_unless_committed(change)
            return state.record
        try:
            self._registry.commit(change)
        except (VersionConflict, DependencyUnavailable):
            # Lost, or the answer was lost after the commit took effect: only vectors nobody uses are removed.
            self._drop_unless_committed(change)
            raise
        _announce(change)
        if change.discarded:
            self._remove_discarded(doc_id, change.discarded)
        return change.after

    def give_up(self, path: str) -> None:
        """A document that is still PENDING is marked FAILED, its reason kept; any other state is left alone."""
        record = self._registry.read(doc_id_for(path)).record
        if record is None or record.status is not DocumentStatus.PENDING:
            return
        change = self._preparation.given_up(record, f"given up after repeated tries: {record.reason}")
        try:
            self._registry.commit(change)
        except VersionConflict:
            return
        _announce(change)

    def _drop_unless_committed(self, change: DocumentChange) -> None:
        generation = change.after.generation if change.after else None
        if generation is None:
            return
        try:
            current = self._registry.read(change.doc_id).record
        except DependencyUnavailable:
            return
        if current is None or current.generation != generation:
            self._preparation.remove_vectors(change.doc_id, generation)

    def _remove_discarded(self, doc_id: DocId, generation: Generation) -> None:
        """Vectors no answer uses any more are gone; on failure they stay noted, and the next `converge` tries again."""
        try:
            if self._preparation.remove_vectors(doc_id, generation):
                self._registry.forget_discarded(doc_id, generation)
        except DependencyUnavailable as error:
            extra = {"doc_id": doc_id, "generation": generation, "reason": str(error)}
            _logger.warning("discarded_generation_kept", extra=extra)


def _is_pending_again(change: DocumentChange) -> bool:
    """True when another try ended where the last one did: PENDING, nothing new to write."""
    before, after = change.before, change.after
    return (
        before is not None
        and after is not None
        and before.status is after.status is DocumentStatus.PENDING
        and before.etag == after.etag
        and before.embedded_count == after.embedded_count
        and before.pipeline_version == after.pipeline_version
    )


def _announce(change: DocumentChange) -> None:
    if change.after is None:
        _logger.info("document_removed", extra={"path": change.file_path, "doc_id": change.doc_id})
        return
    level = logging.ERROR if change.after.status is DocumentStatus.FAILED else logging.INFO
    _logger.log(
        level,
        "document_indexed" if change.after.status is DocumentStatus.INDEXED else "document_not_indexed",
        extra={
            "path": change.file_path,
            "doc_id": change.doc_id,
            "status": change.after.status.value,
            "reason": change.after.reason,
            "chunk_count": change.after.chunk_count,
            "keyword_count": len(change.entry.keywords) if change.entry else 0,
        },
    )
