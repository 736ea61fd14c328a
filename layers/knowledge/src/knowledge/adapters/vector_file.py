"""The file in which the embedded vector store keeps one generation of one document.

A numpy archive: `vectors`, float32, a row for each chunk; `chunks`, the bytes of a JSON text with what else is known of
them; and the arrays of `ChunkWords`. Nothing in it is ever executed.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from knowledge.adapters.embedded_words import ChunkWords
from knowledge.domain.document import DocId, Generation
from knowledge.ports import EmbeddedChunk

_Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]


class UnreadableVectorsError(Exception):
    """The bytes are not such a file; stays inside the adapter."""


@dataclass(slots=True)
class StoredVectors:
    """One file's content; row, ordinal, text and hash of a chunk have the same index."""

    doc_id: DocId
    generation: Generation
    file_path: str
    matrix: _Matrix
    ordinals: tuple[int, ...]
    texts: tuple[str, ...]
    content_hashes: tuple[str, ...]
    words: ChunkWords


class _Chunks(BaseModel):
    model_config = ConfigDict(frozen=True)

    file_path: str
    ordinals: Annotated[tuple[int, ...], Field(min_length=1)]
    texts: tuple[str, ...]
    content_hashes: tuple[str, ...]

    @model_validator(mode="after")
    def _of_equal_length(self) -> Self:
        if not len(self.ordinals) == len(self.texts) == len(self.content_hashes):
            raise ValueError("not one of each for every chunk")
        return self


def pack(file_path: str, chunks: Sequence[EmbeddedChunk]) -> bytes:
    """The file for at least one chunk; vectors are rounded to 32 bits."""
    described = _Chunks(
        file_path=file_path,
        ordinals=tuple(item.chunk.ordinal for item in chunks),
        texts=tuple(item.chunk.text for item in chunks),
        content_hashes=tuple(item.chunk.content_hash for item in chunks),
    )
    words = ChunkWords.of(described.texts)
    buffer = io.BytesIO()
    np.savez(
        buffer,
        allow_pickle=False,
        vectors=np.asarray([item.vector for item in chunks], dtype=np.float32),
        chunks=np.frombuffer(described.model_dump_json().encode(), dtype=np.uint8),
        hashes=words.hashes,
        places=words.places,
        counts=words.counts,
        lengths=words.lengths,
    )
    return buffer.getvalue()


def unpack(body: bytes, doc_id: DocId, generation: Generation) -> StoredVectors:
    """The content of a file. Raises UnreadableVectorsError, whatever is wrong with it."""
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as archive:
            matrix = archive["vectors"]
            described = _Chunks.model_validate_json(archive["chunks"].tobytes())
            words = ChunkWords(*(archive[name] for name in ("hashes", "places", "counts", "lengths")))
    except Exception as error:
        raise UnreadableVectorsError from error
    if matrix.dtype != np.float32 or matrix.ndim != 2 or len(matrix) != len(described.ordinals):
        raise UnreadableVectorsError
    if not np.isfinite(matrix).all() or not words.is_sound(len(matrix)):
        raise UnreadableVectorsError
    return StoredVectors(
        doc_id=doc_id,
        generation=generation,
        file_path=described.file_path,
        matrix=matrix,
        ordinals=described.ordinals,
        texts=described.texts,
        content_hashes=described.content_hashes,
        words=words,
    )
