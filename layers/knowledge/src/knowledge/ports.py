"""What the services need from outside, named by capability. Every port has a memory twin among the adapters.

Every method may raise `DependencyUnavailable`; other errors are named where they can occur.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from knowledge.domain.access import Principal
from knowledge.domain.document import Chunk, DocId, DocumentRecord, DocumentStatus, Generation, Json, KnowledgeEntry
from knowledge.domain.question_centring import QuestionCentring

Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One stored object, without its bytes."""

    key: str
    etag: str
    size_bytes: int
    version_id: str | None = None
    """None where the call does not tell: in a listing."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One stored object; `body` holds its first bytes, all of them unless `truncated`."""

    info: ObjectInfo
    body: bytes

    @property
    def truncated(self) -> bool:
        """True when the object is longer than what was asked for."""
        return len(self.body) < self.info.size_bytes


class ObjectStore(Protocol):
    """A versioned, strongly consistent store of files under keys. Keys are verbatim."""

    def put(self, key: str, body: bytes, *, content_type: str) -> str:
        """`body` is the current version of `key`; returns the version's id. After an error no new version is left."""

    def read(self, key: str, *, max_bytes: int) -> StoredObject | None:
        """The current version's first `max_bytes` bytes (one call, ranged), or None when there is none."""

    def stat(self, key: str) -> ObjectInfo | None:
        """The current version without its bytes, or None when there is none."""

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Every current object under `prefix`, in key order (UTF-8 bytes), a call for each 1,000."""

    def delete(self, key: str) -> None:
        """`key` has no current version; earlier versions are kept. Deleting what is not there is no error."""

    def delete_version(self, key: str, version_id: str) -> None:
        """That version is gone; the one before it, if any, is current again."""

    def download_url(self, key: str, *, expires_s: int) -> str:
        """A URL from which anybody may read the object for `expires_s` seconds; makes no call."""


@dataclass(frozen=True, slots=True)
class DocumentState:
    """What the registry holds of one document, read in one strongly consistent call."""

    record: DocumentRecord | None
    discarded: tuple[Generation, ...] = ()
    """Generations of vectors that were replaced and not yet removed."""
    deleted: str | None = None
    """The revision that was deleted last, None when none ever was: tells one absence from a later one."""


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """One committed step of a document: the record, its catalog entry and its place in the log change together."""

    doc_id: DocId
    file_path: str
    before: DocumentRecord | None
    after: DocumentRecord | None
    entry: KnowledgeEntry | None
    """The catalog entry from now on; None takes the document out of the exact tier."""
    deleted: str | None = None
    """`DocumentState.deleted` as it was read with `before`; counts where that is None."""

    @property
    def discarded(self) -> Generation | None:
        """The generation of vectors that this change makes useless."""
        old = self.before.generation if self.before else None
        return old if old != (self.after.generation if self.after else None) else None


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """Records in path order; `next_cursor` is None on the last page."""

    records: tuple[DocumentRecord, ...]
    next_cursor: str | None


class DocumentRegistry(Protocol):
    """Knows what is indexed, and says so atomically with the catalog log."""

    def read(self, doc_id: DocId) -> DocumentState:
        """The record and the generations waiting to be removed, strongly consistent, one call."""

    def commit(self, change: DocumentChange) -> None:
        """In one transaction: the record, the catalog log entry, head version + 1, and `change.discarded` noted.

        Raises VersionConflict when the stored record is not `change.before`, or when there was none and one has come
        and gone since; then nothing was written. Contention on the head alone is retried inside.
        """

    def forget_discarded(self, doc_id: DocId, generation: Generation) -> None:
        """The generation is no longer waiting to be removed. Idempotent."""

    def generations(self, doc_ids: Sequence[DocId]) -> Mapping[DocId, Generation]:
        """The current generation of each document that has one; strongly consistent; at most 100 ids, one call."""

    def list(self, *, path_prefix: str, status: DocumentStatus | None, cursor: str | None, limit: int) -> DocumentPage:
        """Up to `limit` (1 to 100) records in path order. Raises InvalidInput for a cursor that is not ours."""


@dataclass(frozen=True, slots=True)
class CatalogChange:
    """One entry of the catalog log: the document's entry from `version` on, or None when it has none."""

    version: int
    file_path: str
    entry: KnowledgeEntry | None


class CatalogLog(Protocol):
    """The numbered, gapless sequence of changes to the exact tier."""

    def head(self) -> int:
        """The version of the newest committed change, 0 when there is none; strongly consistent."""

    def changes_after(self, version: int) -> Sequence[CatalogChange]:
        """Every change after `version`, in order; strongly consistent; one call when there is none."""


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
    similarity: float
    """Cosine of query and chunk, -1 to 1."""
    nearness: float
    """Product of the chunk's vector and the one whose nearest are searched for; comparable within one search."""
    lexical: float
    """BM25 of the query's terms in the chunk, 0 and up; one term adds at most its idf."""
    held: frozenset[str]
    """Those of the query's terms that occur in the chunk."""


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

    def search(self, query: str, vector: Vector, *, limit: int, nearest_to: Vector | None = None) -> SearchResult:
        """The `limit` nearest chunks and the `limit` best by BM25, of any generation; an empty store gives none.

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

    def generations(self) -> Iterator[tuple[DocId, Generation]]:
        """Every generation whose chunks are all in the index, in no particular order; none without an index."""

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


class EventQueue(Protocol):
    """The queue that the bucket's events come through."""

    def put_again(self, body: str) -> None:
        """A message with this body is delivered soon, as a new one with its deliveries counted from one."""


class PrincipalStore(Protocol):
    """Knows callers by the hash of their token; never sees a token."""

    def find(self, token_hash: str) -> Principal | None:
        """The principal whose token has this SHA-256 (hex), or None; strongly consistent."""
