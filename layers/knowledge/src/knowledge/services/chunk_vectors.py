"""The vectors of a document's chunks: embedded, stored under a generation of their own, removed. Knows no record."""

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence

from knowledge.domain.document import Chunk, DocId, DocumentRecord, Generation
from knowledge.errors import DependencyUnavailable, InvalidInput
from knowledge.ports import EmbeddedChunk, Embedder, Vector, VectorStore
from knowledge.services.index_notes import IndexNotes

_logger = logging.getLogger(__name__)

# Texts embedded between two looks at the clock.
_EMBED_BATCH = 4


class ChunkVectors:
    """Embeds chunks and keeps their vectors."""

    def __init__(self, vectors: VectorStore, embedder: Embedder, clock: Callable[[], float]) -> None:
        """`clock` gives monotonic seconds, in which deadlines are given."""
        self._vectors = vectors
        self._embedder = embedder
        self._clock = clock
        self._notes = IndexNotes(vectors, embedder)

    def embed(
        self,
        doc_id: DocId,
        chunks: Sequence[Chunk],
        before: DocumentRecord | None,
        deadline: float,
        vectors: dict[str, Vector],
    ) -> tuple[Mapping[str, Vector], DependencyUnavailable | InvalidInput | None]:
        """Vectors by content hash, and why some are missing. Chunks embedded before cost no embedding.

        `vectors` holds what is known already; new ones are added to it. Ends at `deadline`.
        """
        wanted = {chunk.content_hash: chunk.text for chunk in chunks}
        try:
            if before and before.generation and before.embedder == self._embedder.name:
                known = self._vectors.embeddings(doc_id, before.generation)
                vectors.update((content_hash, known[content_hash]) for content_hash in wanted.keys() & known.keys())
            missing = [content_hash for content_hash in wanted if content_hash not in vectors]
            for start in range(0, len(missing), _EMBED_BATCH):
                if self._clock() >= deadline:
                    message = f"{len(missing) - start} of {len(wanted)} chunks are still to be embedded"
                    raise DependencyUnavailable("embedder", message)
                batch = missing[start : start + _EMBED_BATCH]
                embedded = self._embedder.embed_passages([wanted[content_hash] for content_hash in batch])
                vectors.update(zip(batch, embedded, strict=True))
        except (DependencyUnavailable, InvalidInput) as error:
            return vectors, error
        return vectors, None

    def write(
        self, doc_id: DocId, path: str, chunks: Sequence[Chunk], vectors: Mapping[str, Vector]
    ) -> Generation | None:
        """The chunks that have a vector are stored under a generation of their own; None when there is none."""
        embedded = [
            EmbeddedChunk(chunk, vectors[chunk.content_hash]) for chunk in chunks if chunk.content_hash in vectors
        ]
        if not embedded:
            return None
        generation = Generation(unique())
        try:
            self._vectors.write(doc_id, generation, path, embedded)
        except DependencyUnavailable:
            self.remove(doc_id, generation)
            raise
        self._notes.claim()
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


def unique() -> str:
    """An id that nothing else has: of a generation, of a revision."""
    return uuid.uuid4().hex
