"""Chunks with vectors, and what makes vectors of texts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from knowledge.domain.document import Chunk, DocId, Generation, Json
from knowledge.domain.question_centring import QuestionCentring

Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class EmbeddedChunk:
    """A chunk with its vector (unit length)."""

    chunk: Chunk
    vector: Vector


@dataclass(frozen=True, slots=True)
class ChunkHit:
    """A chunk found."""

    doc_id: DocId
    generation: Generation
    file_path: str
    ordinal: int
    text: str
    nearness: float
    """Product of the chunk's vector and the one whose nearest are searched for; comparable within one search."""
    lexical: float
    """BM25 of the query's terms in the chunk, 0 and up; one term adds at most its idf."""
    held: frozenset[str]
    """Those of the query's terms that occur in the chunk."""
    compare: Callable[[], float]
    """Works out `similarity`, for which a store may have to unpack the chunk's vector."""

    @property
    def similarity(self) -> float:
        """Cosine of query and chunk, -1 to 1."""
        return self.compare()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The candidates of one search, by vector and by words, and how rare the query's terms are."""

    hits: Sequence[ChunkHit]
    """In no particular order; no chunk twice."""
    idf: Mapping[str, float]
    """Weight of each distinct term of the query, as `retrieval.bm25.idf` gives it for the chunks of this store."""
    absent: frozenset[str] = frozenset()
    """Those of the query's terms that no chunk of this store holds."""


class VectorStore(Protocol):
    """One embedder's chunks; the registry says which count. OtherEmbedder: only another embedder has an index here."""

    def notes(self) -> Mapping[str, Json]:
        """What was noted with the index, such as the embedder of its vectors; empty when nothing was. One call."""

    def note(self, notes: Mapping[str, Json]) -> None:
        """These notes are kept with the index, in place of all earlier ones; it is made if there is none yet."""

    def write(self, doc_id: DocId, generation: Generation, file_path: str, chunks: Sequence[EmbeddedChunk]) -> None:
        """All chunks of that generation can be found. Generations are written once and never changed."""

    def embeddings(self, doc_id: DocId, generation: Generation) -> Mapping[str, Vector]:
        """Vector by `Chunk.content_hash`; empty when the generation is not there."""

    def search(
        self, query: str, vector: Vector, *, limit: int, nearest_to: Vector | None = None, folders: Sequence[str] = ()
    ) -> SearchResult:
        """The `limit` nearest chunks and the `limit` best by BM25, of any generation; an empty store gives none.

        With `folders` (beginnings of paths), of the chunks under any of them: however many others are nearer, they take
        no place. How rare terms are, and which are absent, is told of the whole store all the same.

        `vector` is the query's, of unit length. Nearest are those with the largest product with `nearest_to`, a vector
        of any length; None stands for `vector`. Every hit carries all its numbers, whichever of the two found it.
        """

    def delete(self, doc_id: DocId, generation: Generation) -> None:
        """No chunk of that generation is left. Idempotent."""


class RebuildableVectorStore(VectorStore, Protocol):
    """A VectorStore whose index can be built beside what is searched, and take its place once it is whole."""

    def begin_rebuild(self) -> "RebuildableVectorStore":
        """A store over the index in the making, which nobody searches; an unfinished one is gone on with."""

    def finish_rebuild(self) -> None:
        """What was built is the index, with its notes, from one search to the next. Raises Conflict without one."""

    def generations(self, *, after: DocId | None = None) -> Iterator[tuple[DocId, Generation]]:
        """Every generation whose chunks are all in the index, in order of ids, from the next one after `after`.

        None without an index.
        """

    def remove_others(self) -> None:
        """The indices of all other embedders in this place are gone."""


class Embedder(Protocol):
    """Turns text into unit vectors that compare by cosine."""

    @property
    def name(self) -> str:
        """Model and revision: vectors of different names must never be compared."""

    @property
    def dimension(self) -> int:
        """Length of every vector."""

    @property
    def max_tokens(self) -> int:
        """Tokens of one text that count; what is longer loses meaning."""

    @property
    def answer_threshold(self) -> float:
        """The evidence from which there is an answer and not merely a neighbour; measured for this model."""

    @property
    def question_centring(self) -> QuestionCentring | None:
        """Of questions in general, measured for this model; None where nobody has."""

    @property
    def batch_size(self) -> int:
        """The most passages (1 and up) that one call of `embed_passages` gains from."""

    def embed_query(self, text: str) -> Vector:
        """The vector of a question."""

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        """The vectors of pieces of documents, in order; an empty sequence makes no call."""
