"""`converge`: the one function that changes what is indexed. Level-triggered: whoever calls it only hints to look."""

import logging
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from knowledge.domain.document import DocId, DocumentRecord, DocumentStatus, Generation, KnowledgeBasePath, doc_id_for
from knowledge.errors import AccessRefused, Conflict, DependencyUnavailable, VersionConflict
from knowledge.ports import DocumentChange, DocumentRegistry, ObjectInfo, ObjectStore, Vector
from knowledge.services.preparation import Preparation

_logger = logging.getLogger(__name__)

# A writer that lost the race starts over; this many losses in a row on one document mean something else is wrong.
_MAX_RACES = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a path was left."""

    record: DocumentRecord | None
    """None when there is no document."""
    got_on: bool = False
    """Something was committed."""
    out_of_time: bool = False
    is_tidy: bool = True
    """No vectors wait to be removed; otherwise the path has to be looked at again."""


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
        content can never be written over a newer one. A version that was looked at before costs two calls and writes
        nothing, unless `anew`; the same content in a new version is committed without being embedded. Embedding stops
        at `deadline` (monotonic seconds); what is left makes the document PENDING. A path that names no document is
        left alone.

        Raises:
            DependencyUnavailable: a store failed; calling again goes on from wherever this call stopped.
            Conflict: other writers won ten times in a row.
        """
        return self.step(path, deadline=deadline, anew=anew).record

    def converge_all(
        self,
        paths: Iterable[str],
        *,
        deadline: float = math.inf,
        anew: bool = False,
        lost: frozenset[Generation] = frozenset(),
    ) -> Mapping[str, Outcome | Exception]:
        """As `converge` for each path; how each was left, or its error. A generation in `lost` is made again."""
        left: dict[str, Outcome | Exception] = {}
        for path in paths:
            try:
                left[path] = self.step(path, deadline=deadline, anew=anew, lost=lost)
            except Exception as error:  # noqa: BLE001 - each path is on its own; the caller has the error
                left[path] = error
        return left

    def step(
        self, path: str, *, deadline: float = math.inf, anew: bool = False, lost: frozenset[Generation] = frozenset()
    ) -> Outcome:
        """As `converge`, and what is left to do. While the record names one of `lost`, that is made again."""
        if not self._base.holds(path):
            return Outcome(None)
        embedded: dict[str, Vector] = {}
        for _ in range(_MAX_RACES):
            try:
                return self._converge_once(doc_id_for(path), path, deadline, embedded, anew=anew, lost=lost)
            except VersionConflict:
                continue
        raise Conflict(f"{path} kept changing while it was being indexed")

    def _converge_once(
        self,
        doc_id: DocId,
        path: str,
        deadline: float,
        embedded: dict[str, Vector],
        *,
        anew: bool,
        lost: frozenset[Generation],
    ) -> Outcome:
        """`embedded` keeps vectors by content hash from one lost race to the next try."""
        state = self._registry.read(doc_id)
        if state.record and state.record.generation in lost:
            # It is not as finished as it says.
            state = replace(state, record=replace(state.record, status=DocumentStatus.PENDING))
        is_tidy = all([self._remove_discarded(doc_id, generation) for generation in state.discarded])
        info = self._stat(path)
        if info is None and state.record is None:
            return Outcome(None, is_tidy=is_tidy)
        if info and state.record and self._preparation.is_current(state.record, info) and not anew:
            return Outcome(state.record, is_tidy=is_tidy)
        change = self._preparation.prepare(doc_id, path, state.record, deadline, embedded)
        change = replace(change, deleted=state.deleted)
        if _says_the_same(change) and not anew:
            self._drop_unless_committed(change)
            return Outcome(state.record, is_tidy=is_tidy)
        try:
            self._registry.commit([change])
        except (VersionConflict, DependencyUnavailable):
            # Lost, or the answer was lost after the commit took effect: only vectors nobody uses are removed.
            self._drop_unless_committed(change)
            raise
        _announce(change)
        if change.discarded:
            is_tidy = self._remove_discarded(doc_id, change.discarded) and is_tidy
        return Outcome(change.after, got_on=True, is_tidy=is_tidy)

    def _stat(self, path: str) -> ObjectInfo | None:
        try:
            return self._objects.stat(path)
        except AccessRefused:
            # It is there as far as anybody can tell; reading it says why it cannot be had.
            return ObjectInfo(path, "", 0)

    def give_up(self, path: str) -> None:
        """A document that is still PENDING is marked FAILED, its reason kept; any other state is left alone."""
        record = self._registry.read(doc_id_for(path)).record
        if record is None or record.status is not DocumentStatus.PENDING:
            return
        change = self._preparation.given_up(record, f"given up after repeated tries: {record.reason}")
        try:
            self._registry.commit([change])
        except VersionConflict:
            return
        _announce(change)

    def forget(self, path: str) -> None:
        """The exact tier has no entry of `path`; nothing is done where there is a record or a file.

        For entries that nobody committed: of a file that was scanned, and went away before it was indexed.

        Raises:
            DependencyUnavailable: a store did not answer.
            VersionConflict: somebody has committed the path meanwhile.
        """
        doc_id = doc_id_for(path)
        state = self._registry.read(doc_id)
        if state.record is None and self._stat(path) is None:
            self._registry.commit([DocumentChange(doc_id, path, None, None, None, deleted=state.deleted)])

    def remove_unowned(self, doc_id: DocId, generation: Generation) -> bool:
        """The generation's vectors are gone unless the record names them; False when they could not be removed.

        Only for vectors whose writer cannot commit them any more.

        Raises:
            DependencyUnavailable: the registry did not answer.
        """
        record = self._registry.read(doc_id).record
        is_owned = record is not None and record.generation == generation
        return is_owned or self._remove_discarded(doc_id, generation)

    def _drop_unless_committed(self, change: DocumentChange) -> None:
        generation = change.after.generation if change.after else None
        if generation is None:
            return
        try:
            current = self._registry.read(change.doc_id).record
        except DependencyUnavailable:
            return
        if current is None or current.generation != generation:
            self._preparation.vectors.remove(change.doc_id, generation)

    def _remove_discarded(self, doc_id: DocId, generation: Generation) -> bool:
        """Vectors no answer uses any more are gone; False when they stay noted and have to be removed again."""
        try:
            if not self._preparation.vectors.remove(doc_id, generation):
                return False
            self._registry.forget_discarded(doc_id, generation)
        except DependencyUnavailable as error:
            extra = {"doc_id": doc_id, "generation": generation, "reason": str(error)}
            _logger.warning("discarded_generation_kept", extra=extra)
            return False
        return True


def _says_the_same(change: DocumentChange) -> bool:
    """True when another look at an unfinished or failed document ended where the last one did: nothing to write."""
    before, after = change.before, change.after
    if before is None or after is None or after.status is DocumentStatus.INDEXED:
        return False
    outcomes = [
        (one.status, one.reason, one.etag, one.version_id, one.embedded_count, one.pipeline_version, one.embedder)
        for one in (before, after)
    ]
    return outcomes[0] == outcomes[1]


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
