"""`converge`: the one function that changes what is indexed. Level-triggered: whoever calls it only hints to look."""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from knowledge.domain.document import DocId, DocumentRecord, DocumentStatus, Generation, KnowledgeBasePath, doc_id_for
from knowledge.errors import AccessRefused, Conflict, DependencyUnavailable, VersionConflict
from knowledge.ports import MAX_CHANGES, DocumentChange, DocumentRegistry, ObjectInfo, ObjectStore, Vector
from knowledge.services.change_sets import announce, commit_each
from knowledge.services.preparation import Preparation

_logger = logging.getLogger(__name__)

# A writer that lost the race starts over; this many losses in a row on one document mean something else is wrong.
_MAX_RACES = 10
# How long a prepared change waits for others, in seconds. Source: own choice. Until then the document is in no answer
# and its work is lost with the process; in this time the local embedder prepares about ten short documents.
_LONGEST_WAIT_S = 2.0
# How long after the deadline for embedding documents are still looked at, for the exact tier and for what needs no
# embedding. Source: own choice; a look takes some 50 ms, with a file of a megabyte up to a second.
_LOOKS_S = 3.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a path was left."""

    record: DocumentRecord | None
    """None when there is no document, or it was not looked at."""
    out_of_time: bool = False
    """Only time was missing: it got on as far as there was any, or its turn did not come. It can go on at once."""
    is_tidy: bool = True
    """No vectors wait to be removed; otherwise the path has to be looked at again."""


@dataclass(slots=True)
class _Turn:
    """A path on its way, from one lost race to the next try."""

    path: str
    embedded: dict[str, Vector] = field(default_factory=dict)
    """Vectors by content hash."""
    races: int = 0


@dataclass(frozen=True, slots=True)
class _Ready:
    """A change that waits to be committed, since `at`."""

    turn: _Turn
    change: DocumentChange
    out_of_time: bool
    is_tidy: bool
    at: float


class Converger:
    """Makes the index say what the bucket holds. Safe from any process, in any order, any number of times."""

    def __init__(
        self,
        objects: ObjectStore,
        registry: DocumentRegistry,
        preparation: Preparation,
        base: KnowledgeBasePath,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`base` decides which keys name documents; all others are left alone. `clock` gives monotonic seconds."""
        self._objects = objects
        self._registry = registry
        self._preparation = preparation
        self._base = base
        self._clock = clock

    def converge(self, path: str, *, deadline: float = math.inf, anew: bool = False) -> DocumentRecord | None:
        """What is indexed for `path` is what the bucket holds now; returns its record, None when there is no document.

        The record is read before the object: whoever commits between the two reads makes this commit lose, so an older
        content can never be written over a newer one. A version that was looked at before costs two calls and writes
        nothing, unless `anew`: then an absence is committed too, and whoever is about to commit what was there before
        loses. The same content in a new version is committed without being embedded. Embedding stops at `deadline`
        (monotonic seconds); what is left makes the document PENDING. A path that names no document is left alone.

        Raises:
            DependencyUnavailable: a store failed; calling again goes on from wherever this call stopped.
            Conflict: other writers won ten times in a row.
        """
        (left,) = self.converge_all([path], deadline=deadline, anew=anew).values()
        if isinstance(left, Exception):
            raise left
        return left.record

    def converge_all(
        self,
        paths: Iterable[str],
        *,
        deadline: float = math.inf,
        anew: bool = False,
        lost: frozenset[Generation] = frozenset(),
    ) -> Mapping[str, Outcome | Exception]:
        """As `converge` for each path once, in order, committed in few transactions; how each was left, or its error.

        After `deadline` paths are looked at for three seconds more, without embedding; the first one always is. While a
        record names a generation of `lost`, that is made again.
        """
        left: dict[str, Outcome | Exception] = {}
        turns = deque(_Turn(path) for path in dict.fromkeys(paths))
        ready: list[_Ready] = []
        while turns:
            turn = turns.popleft()
            if (left or ready) and self._clock() >= deadline + _LOOKS_S:
                left[turn.path] = Outcome(None, out_of_time=True)
            else:
                try:
                    found = self._look(turn, deadline, anew=anew, lost=lost)
                except Exception as error:  # noqa: BLE001 - each path is on its own; the caller has the error
                    left[turn.path] = error
                else:
                    if isinstance(found, Outcome):
                        left[turn.path] = found
                    else:
                        ready.append(found)
            is_due = len(ready) == MAX_CHANGES or (ready and self._clock() - ready[0].at >= _LONGEST_WAIT_S)
            if is_due or not turns:
                turns.extendleft(self._commit(ready, left))
                ready = []
        return left

    def _look(self, turn: _Turn, deadline: float, *, anew: bool, lost: frozenset[Generation]) -> Outcome | _Ready:
        path, doc_id = turn.path, doc_id_for(turn.path)
        if not self._base.holds(path):
            return Outcome(None)
        has_time = self._clock() < deadline
        state = self._registry.read(doc_id)
        if state.record and state.record.generation in lost:
            # It is not as finished as it says.
            state = replace(state, record=replace(state.record, status=DocumentStatus.PENDING))
        is_tidy = all([self._remove_discarded(doc_id, generation) for generation in state.discarded])
        info = self._stat(path)
        if info is None and state.record is None and not anew:
            return Outcome(None, is_tidy=is_tidy)
        if info and state.record and self._preparation.is_current(state.record, info) and not anew:
            return Outcome(state.record, is_tidy=is_tidy)
        change = self._preparation.prepare(doc_id, path, state.record, deadline, turn.embedded)
        change = replace(change, deleted=state.deleted)
        is_pending = change.after is not None and change.after.status is DocumentStatus.PENDING
        if _says_the_same(change) and not anew:
            self._drop_unless_committed(change)
            return Outcome(state.record, out_of_time=is_pending and not has_time, is_tidy=is_tidy)
        now = self._clock()
        return _Ready(turn, change, out_of_time=is_pending and now >= deadline, is_tidy=is_tidy, at=now)

    def _commit(self, ready: Sequence[_Ready], left: dict[str, Outcome | Exception]) -> Sequence[_Turn]:
        """All of `ready` is committed or failed, and so noted in `left`; returns what lost and has to try again."""
        failures = commit_each(self._registry, [one.change for one in ready])
        lost: list[_Turn] = []
        answers = True
        for one in ready:
            turn, failure = one.turn, failures.get(one.turn.path)
            try:
                if failure is None:
                    left[turn.path] = self._finished(one)
                    continue
                # Lost, or the answer was lost after the commit took effect: only vectors nobody uses are removed.
                answers = answers and self._drop_unless_committed(one.change)
            except Exception as error:  # noqa: BLE001 - as above
                failure = error
            turn.races += 1
            if not isinstance(failure, VersionConflict):
                left[turn.path] = failure
            elif turn.races < _MAX_RACES:
                lost.append(turn)
            else:
                left[turn.path] = Conflict(f"{turn.path} kept changing while it was being indexed")
        return lost

    def _finished(self, one: _Ready) -> Outcome:
        change = one.change
        announce(change)
        is_tidy = not change.discarded or self._remove_discarded(change.doc_id, change.discarded)
        return Outcome(change.after, out_of_time=one.out_of_time, is_tidy=is_tidy and one.is_tidy)

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
        announce(change)

    def remove_unowned(self, doc_id: DocId, generation: Generation) -> bool:
        """The generation's vectors are gone unless the record names them; False when they could not be removed.

        Only for vectors whose writer cannot commit them any more.

        Raises:
            DependencyUnavailable: the registry did not answer.
        """
        record = self._registry.read(doc_id).record
        is_owned = record is not None and record.generation == generation
        return is_owned or self._remove_discarded(doc_id, generation)

    def _drop_unless_committed(self, change: DocumentChange) -> bool:
        """Vectors that no record uses are gone, as far as their store answers; False when the registry does not."""
        generation = change.after.generation if change.after else None
        if generation is None:
            return True
        try:
            current = self._registry.read(change.doc_id).record
        except DependencyUnavailable:
            return False
        if current is None or current.generation != generation:
            self._preparation.vectors.remove(change.doc_id, generation)
        return True

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
