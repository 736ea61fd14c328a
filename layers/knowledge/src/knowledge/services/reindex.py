"""Embedding a whole base again, for another embedder, another store or another version, while lookups go on.

An index is built beside the one that is searched. It holds each document's current generation under the same id, with
vectors of its own: so the registry stays as it is, and both indices are right. Source: docs/adr/0014.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from knowledge.domain.document import Chunk, DocId, DocumentRecord, DocumentStatus, Generation, Json
from knowledge.domain.text import first_invalid_byte
from knowledge.errors import AccessRefused, DependencyUnavailable, InvalidInput, OtherEmbedder
from knowledge.parsing.frontmatter import FrontmatterParser
from knowledge.ports import (
    DocumentRegistry,
    Embedder,
    ObjectStore,
    RebuildableVectorStore,
    Vector,
    VectorStore,
)
from knowledge.services.chunk_vectors import ChunkVectors, with_vectors
from knowledge.services.converge import Converger
from knowledge.services.index_notes import identity
from knowledge.services.preparation import PIPELINE_VERSION, cut

_logger = logging.getLogger(__name__)

_PAGE = 100
# Documents worked on at the same time: stores and remote embedders answer while others are waited for. Source: own
# choice.
_WORKERS = 4
# Beyond what the adapters try by themselves: a program of hours should outlive the restart of a node, and an endpoint
# that is given too much at first. Source: own choice.
_PAUSES_S = (1.0, 5.0, 20.0)
# In a base where documents change all the time no pass finds nothing left; what the last one leaves, `settle` does.
# Source: own choice.
_MOST_PASSES = 5
# Every function ends within 28 seconds (docs/adr/0008): whoever wrote vectors before then has committed, or never will.
_WRITERS_ARE_GONE_AFTER_S = 30.0

Key = tuple[DocId, Generation | None]
"""A generation of a document; None when it has none."""


class Reindex:
    """Builds one index and settles what the running functions did meanwhile. One process at a time."""

    def __init__(
        self,
        objects: ObjectStore,
        registry: DocumentRegistry,
        converger: Converger,
        vectors: RebuildableVectorStore,
        embedder: Embedder,
        *,
        max_document_bytes: int,
        copied_from: VectorStore | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`converger` must work with the same stores and embedder.

        `copied_from` is another store with vectors of this embedder, which are taken over instead of made again.
        `clock` gives seconds, monotonic.
        """
        self._objects = objects
        self._registry = registry
        self._converger = converger
        self._vectors = vectors
        self._embedder = embedder
        self._max_document_bytes = max_document_bytes
        self._sources = [vectors, *([copied_from] if copied_from else [])]
        self._clock = clock
        self._sleep = sleep

    def build(self) -> Iterator[DocumentRecord]:
        """A new index holds every document and is this embedder's from the end on; yields each once it is in.

        The registry is not touched and every other embedder's index stays: functions that run with that one go on as
        if nothing had happened. What they change meanwhile is followed, up to the end. May be broken off and run again:
        what is done is kept. A document that this embedder refuses is left out.

        Raises:
            DependencyUnavailable: a store or the embedder failed; run again.
            Conflict: somebody else has built it.
        """
        target = self._vectors.begin_rebuild()
        held, done = set[Key](target.generations()), set[Key]()
        for number in range(_MOST_PASSES):
            filled = 0
            for record, was_filled in self._fill_from_registry(target, held, done):
                filled += was_filled
                if was_filled or not number:
                    yield record
            if not filled:
                break
        for doc_id, generation in done:
            self._remove_unless_current(target, doc_id, generation)
        target.note({**self._own_notes(), **identity(self._embedder)})
        self._vectors.finish_rebuild()
        _logger.info("index_built", extra={"embedder": self._embedder.name, "document_count": len(held | done)})

    def settle(self) -> Iterator[DocumentRecord]:
        """Every document is as the functions with this embedder would leave it; yields each after its turn.

        To be run once those functions run. What was changed by others before is embedded, what is left of deleted and
        replaced documents is removed, and so are the indices of other embedders. Takes half a minute at least, in which
        whoever is still writing comes to an end. May be broken off and run again.

        Raises:
            DependencyUnavailable, Conflict: a store failed; run again.
            OtherEmbedder: there is no index yet; build it first.
        """
        started = self._clock()
        held, done = set[Key](self._vectors.generations()), set[Key]()
        before = frozenset(held)
        for record, was_filled in self._fill_from_registry(self._vectors, held, done):
            # Without vectors that could be had, its file may be gone, and nobody have followed.
            is_there = was_filled or record.generation is None or _key(record) in held
            is_settled = is_there and self._is_current(record)
            after = record if is_settled else self._converger.converge(record.file_path)
            if after is not None:
                yield after
        self._sleep(max(0.0, started + _WRITERS_ARE_GONE_AFTER_S - self._clock()))
        held, done = set[Key](self._vectors.generations()), set[Key]()
        current = {_key(record) for record, _ in self._fill_from_registry(self._vectors, held, done)}
        for doc_id, generation in before - current:
            self._remove_unless_current(self._vectors, doc_id, generation)
        self._vectors.remove_others()

    def _fill_from_registry(
        self, target: VectorStore, held: set[Key], done: set[Key]
    ) -> Iterator[tuple[DocumentRecord, bool]]:
        """Each record in path order, and whether its generation was missing in `target` and is now there.

        `held` are the generations known to be there. `done` gets those that were looked at and need no other look.
        """
        into = ChunkVectors(target, self._embedder, self._clock)
        with ThreadPoolExecutor(_WORKERS, thread_name_prefix="reindex") as pool:
            for page in self._pages():
                missing = [
                    record
                    for record in page
                    if record.generation and _key(record) not in held and _key(record) not in done
                ]
                filled = list(pool.map(lambda record: self._fill(record, target, into), missing))
                done.update(map(_key, missing))
                new = {_key(record) for record, is_there in zip(missing, filled, strict=True) if is_there}
                yield from ((record, _key(record) in new) for record in page)

    def _pages(self) -> Iterator[tuple[DocumentRecord, ...]]:
        cursor: str | None = None
        while True:
            page = self._registry.list(path_prefix="", status=None, cursor=cursor, limit=_PAGE)
            yield page.records
            cursor = page.next_cursor
            if cursor is None:
                return

    def _fill(self, record: DocumentRecord, target: VectorStore, into: ChunkVectors) -> bool:
        """The record's generation is in `target`; False when its text cannot be had any more, or not be embedded."""
        doc_id, generation, chunks = record.doc_id, record.generation, self._chunks_of(record)
        if generation is None or chunks is None:
            return False
        vectors: dict[str, Vector] = {}
        for pause_s in (*_PAUSES_S, None):
            try:
                for source in self._sources:
                    vectors.update(source.embeddings(doc_id, generation))
                into.embed_missing(chunks, vectors)
                target.write(doc_id, generation, record.file_path, with_vectors(chunks, vectors))
                break
            except InvalidInput as error:
                extra = {"path": record.file_path, "doc_id": doc_id, "reason": str(error)}
                _logger.warning("document_left_out", extra=extra)
                return False
            except DependencyUnavailable:
                if pause_s is None:
                    raise
                self._sleep(pause_s)
        return True

    def _chunks_of(self, record: DocumentRecord) -> Sequence[Chunk] | None:
        """The chunks of the content that the record describes, None when it is not there to be had."""
        try:
            stored = self._objects.read(record.file_path, max_bytes=self._max_document_bytes)
        except AccessRefused:
            return None
        # Another content is another generation: whoever follows the bucket's event will commit it.
        if stored is None or stored.truncated or stored.info.etag != record.etag:
            return None
        if first_invalid_byte(stored.body) is not None:
            return None
        parsed = FrontmatterParser(log_problems=False).read(stored.body.decode(), path=record.file_path)
        return cut(parsed, record.file_path, self._embedder)

    def _is_current(self, record: DocumentRecord) -> bool:
        return (
            record.status is DocumentStatus.INDEXED
            and record.embedder == self._embedder.name
            and record.pipeline_version == PIPELINE_VERSION
        )

    def _remove_unless_current(self, store: VectorStore, doc_id: DocId, generation: Generation | None) -> None:
        record = self._registry.read(doc_id).record
        if generation and (record is None or record.generation != generation):
            try:
                store.delete(doc_id, generation)
            except DependencyUnavailable as error:
                # No answer uses it; the next run tries again.
                extra = {"doc_id": doc_id, "generation": generation, "reason": str(error)}
                _logger.warning("vectors_not_removed", extra=extra)

    def _own_notes(self) -> Mapping[str, Json]:
        """What this embedder's index has noted so far, such as its calibration."""
        try:
            return self._vectors.notes()
        except OtherEmbedder:
            return {}


def _key(record: DocumentRecord) -> Key:
    return record.doc_id, record.generation
