"""The documents of knowledge items: what is published has one that says what the item says, nothing else has any.

The item is the truth, its file a projection (docs/adr/0019). Level-triggered, as `converge` is: whoever calls only
hints to look, and what a process that died left undone, the next one that looks does.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from knowledge.domain.document import DocumentRecord, DocumentStatus, Json, KnowledgeBasePath
from knowledge.domain.item import Embedding, EmbeddingState, Item, ItemId, failed, item_named_by
from knowledge.domain.timeline import SYSTEM, Event, EventType
from knowledge.errors import Conflict, DependencyUnavailable, KnowledgeError
from knowledge.ports import ItemStore, ObjectStore
from knowledge.services.converge import Converger, Outcome
from knowledge.services.item_files import ItemFiles

_logger = logging.getLogger(__name__)

# As in services/converge: so many losses in a row on one item mean something else is wrong.
_MAX_ROUNDS = 10


@dataclass(slots=True)
class _Turn:
    """An item on its way, from one round to the next."""

    item: Item
    versions: dict[str, str | None]
    """Where a file of it is, was or should not be, with the version that is right."""
    must_look: bool = False
    """A file may be wrong, whatever the item says: it was seen to be, or this process may have been late with it."""
    is_overtaken: bool = False
    """Somebody else has noted the end of the last round with the item."""


class ItemDocuments:
    """Makes file and index say what items say. Safe from any process, in any order, any number of times."""

    def __init__(
        self,
        store: ItemStore,
        objects: ObjectStore,
        converger: Converger,
        base: KnowledgeBasePath,
        *,
        embed_budget_s: float,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`converger` works on the same bucket and base; a call without a deadline embeds for `embed_budget_s`."""
        self._store = store
        self._files = ItemFiles(store, objects, base)
        self._converger = converger
        self._base = base
        self._embed_budget_s = embed_budget_s
        self._now = now
        self._clock = clock

    def settle(
        self, item_ids: Collection[ItemId], *, by: str = SYSTEM, deadline: float | None = None
    ) -> Mapping[ItemId, Item | Exception]:
        """The next lookup anywhere finds of these items what they say; returns each as it is stored then.

        An item whose file or index could not be made right, or for which there was no time, has its error, stays
        unsettled and is seen to by the sweep. An embedding that fails is no error: the item says so, and when it is
        tried again. `by` is the actor of the events; embedding stops at `deadline` (monotonic seconds).
        """
        turns = [self._turn(item) for item in self._store.read_all(item_ids).values()]
        return self._settle(turns, by, deadline)

    def settle_one(self, item: Item, *, by: str) -> Item:
        """As `settle`, for the answer to a command: raises what kept the documents from being right."""
        if is_done(item):
            return item
        end = self.settle([item.item_id], by=by)[item.item_id]
        if isinstance(end, Exception):
            raise end
        return end

    def put_right(self, paths: Iterable[str], *, deadline: float | None = None) -> Mapping[str, Exception]:
        """Every file whose name is an item's says what the item says: for whoever is about to converge the paths.

        Somebody who changed, dropped or removed one is overruled: the item's timeline names their version, which stays
        in the bucket. Returns why paths could not be put right; those must not be converged. A call for each hundred
        paths that name items, a read for each of their files; none for other paths.
        """
        named = [path for path in paths if item_named_by(path, self._base)]
        try:
            return self.put_back(self._files.wrong(dict.fromkeys(named, "")), deadline=deadline)
        except KnowledgeError as error:
            return dict.fromkeys(named, error)

    def wrong(self, listed: Mapping[str, str | None]) -> Mapping[str, Item]:
        """See ItemFiles."""
        return self._files.wrong(listed)

    def put_back(self, wrong: Mapping[str, Item], *, deadline: float | None = None) -> Mapping[str, Exception]:
        """The files of `wrong` are what their items say; returns why some could not be made so.

        Raises DependencyUnavailable when the store of the items does not answer.
        """
        if not wrong:
            return {}
        for item in {item.item_id: item for item in wrong.values() if item.is_settled}.values():
            self._overrule(item, [path for path, other in wrong.items() if other.item_id == item.item_id])
        current = self._store.read_all({item.item_id for item in wrong.values()})
        turns = {item_id: self._turn(item) for item_id, item in current.items()}
        for path, item in wrong.items():
            turns[item.item_id].versions[path] = None
            turns[item.item_id].must_look = True
        left = self._settle(turns.values(), SYSTEM, deadline)
        ends = {path: left[item.item_id] for path, item in wrong.items()}
        return {path: end for path, end in ends.items() if isinstance(end, Exception)}

    def _turn(self, item: Item) -> _Turn:
        return _Turn(item, {item.file_path(self._base): None})

    def _settle(self, turns: Collection[_Turn], by: str, deadline: float | None) -> Mapping[ItemId, Item | Exception]:
        """Round by round, because others may change items and files at any moment.

        Files are written first, then items are read again, and the index follows only where the item is still what was
        written: a process that was overtaken never has an old text indexed. Who is through has seen the record of the
        very version that is right.
        """
        stop = self._clock() + self._embed_budget_s if deadline is None else deadline
        left: dict[ItemId, Item | Exception] = {}
        waiting = {turn.item.item_id: turn for turn in turns}
        for _ in range(_MAX_ROUNDS):
            left |= {i: turn.item for i, turn in waiting.items() if is_done(turn.item) and not turn.must_look}
            waiting = {item_id: turn for item_id, turn in waiting.items() if item_id not in left}
            if not waiting:
                return left
            left |= self._written(waiting)
            left |= self._indexed({i: turn for i, turn in waiting.items() if i not in left}, by, stop)
            waiting = self._again({i: turn for i, turn in waiting.items() if i not in left}, left)
        return left | {item_id: Conflict(f"the item {item_id} kept changing") for item_id in waiting}

    def _written(self, turns: Mapping[ItemId, _Turn]) -> Mapping[ItemId, Exception]:
        """The files are what the items say; why some could not be made so."""
        failures: dict[ItemId, Exception] = {}
        for item_id, turn in turns.items():
            try:
                turn.versions = {path: self._files.make_right(path, turn.item) for path in turn.versions}
            except KnowledgeError as error:
                failures[item_id] = error
        return failures

    def _indexed(self, turns: Mapping[ItemId, _Turn], by: str, deadline: float) -> Mapping[ItemId, Item | Exception]:
        """The index follows, and is noted with the items; those that were changed meanwhile are left out."""
        current = self._store.read_all(turns)
        same = [turn for item_id, turn in turns.items() if current[item_id].version == turn.item.version]
        outcomes = self._converged(
            {path: version for turn in same for path, version in turn.versions.items()}, deadline
        )
        left: dict[ItemId, Item | Exception] = {}
        for turn in same:
            item, ends = turn.item, {path: outcomes[path] for path in turn.versions}
            try:
                end = self._noted(turn, ends, by)
            except KnowledgeError as error:
                end = error
            if end is not None:
                left[item.item_id] = end
        return left

    def _converged(self, versions: Mapping[str, str | None], deadline: float) -> Mapping[str, Outcome | Exception]:
        """What has to go goes first: it needs no embedding, and there may be too little time for that.

        Its absence is committed, or somebody who read the file before it went could still commit that.
        """
        gone = [path for path, version in versions.items() if version is None]
        there = [path for path in versions if path not in gone]
        return {
            **self._converger.converge_all(gone, deadline=deadline, anew=True),
            **self._converger.converge_all(there, deadline=deadline),
        }

    def _noted(self, turn: _Turn, ends: Mapping[str, Outcome | Exception], by: str) -> Item | Exception | None:
        """The item with its document in place, or why it is not; None when somebody else has changed one of them."""
        records: dict[str, DocumentRecord | None] = {}
        for path, end in ends.items():
            if isinstance(end, Exception):
                return end
            if end.record is None and end.out_of_time:
                return DependencyUnavailable("index", f"there was no time for {path}; it is seen to within minutes")
            if (end.record.version_id if end.record else None) != turn.versions[path]:
                return None
            records[path] = end.record
        after = self._settled(turn.item, records[turn.item.file_path(self._base)], by)
        turn.is_overtaken = after is None
        return after

    def _settled(self, item: Item, record: DocumentRecord | None, by: str) -> Item | None:
        """The item as it is stored now; None when somebody else was quicker."""
        at = self._now()
        embedding, event = None, None
        if record is not None:
            is_ready = record.status is DocumentStatus.INDEXED
            reason = record.reason or record.status.value
            embedding = Embedding(EmbeddingState.READY) if is_ready else failed(item.embedding, reason, at=at)
            details: dict[str, Json] = {} if is_ready else {"reason": reason, "attempt": embedding.attempts}
            event_type = EventType.EMBEDDED if is_ready else EventType.EMBEDDING_FAILED
            event = Event(item.item_id, event_type, by, at, item.version, details)
        after = replace(item, settled_version=item.version, embedding=embedding)
        if after == item or self._store.settle(item, after, event):
            return after
        return None

    def _again(self, turns: Mapping[ItemId, _Turn], left: dict[ItemId, Item | Exception]) -> dict[ItemId, _Turn]:
        """The turns with their items as they are now; those that somebody else has settled meanwhile are `left`."""
        for item_id, item in self._store.read_all(turns).items():
            turn = turns[item_id]
            if turn.is_overtaken and item.is_settled and item.version == turn.item.version:
                left[item_id] = item
            turn.item, turn.must_look = item, True
            turn.versions.setdefault(item.file_path(self._base), None)
        return {item_id: turn for item_id, turn in turns.items() if item_id not in left}

    def _overrule(self, item: Item, paths: Sequence[str]) -> None:
        """The item is unsettled, and its timeline names the versions of files that do not count: in one step.

        Nothing happens when the item was changed meanwhile: whoever did so is seeing to its files.
        """
        versions: dict[str, Json] = {path: self._files.version_of(path) for path in paths}
        details: dict[str, Json] = {"overruled_versions": versions}
        event = Event(item.item_id, EventType.DOCUMENT_PUT_BACK, SYSTEM, self._now(), item.version, details)
        embedding = Embedding(EmbeddingState.PENDING) if item.is_published else None
        unsettled = replace(item, settled_version=item.version - 1, embedding=embedding)
        if self._store.settle(item, unsettled, event):
            _logger.warning("document_put_back", extra={"item_id": item.item_id, **details})


def is_done(item: Item) -> bool:
    """True when its documents say what it says, in both tiers."""
    is_embedded = item.embedding is None or item.embedding.state is EmbeddingState.READY
    return item.is_settled and is_embedded
