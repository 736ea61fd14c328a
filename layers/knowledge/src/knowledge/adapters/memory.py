"""Memory twins of the ports, for tests and for whoever tries the services without AWS.

They answer as the real adapters do; the contract tests hold both to the same sentences. Each object has one lock, so
that every method is atomic. Two twins have modules of their own: `memory_objects` and `hashing_embedder`.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from threading import Lock

from knowledge.adapters import page_cursor
from knowledge.domain.access import Principal
from knowledge.domain.document import DocId, DocumentRecord, DocumentStatus, Generation, Json
from knowledge.errors import VersionConflict
from knowledge.ports import (
    CatalogChange,
    ChunkHit,
    DocumentChange,
    DocumentPage,
    DocumentState,
    EmbeddedChunk,
    SearchResult,
    Vector,
)
from knowledge.retrieval.lexical_index import LexicalIndex, LexicalPart


class MemoryDocumentRegistry:
    """DocumentRegistry and CatalogLog in one, because a commit changes both or neither."""

    def __init__(self) -> None:
        """An empty store."""
        self._lock = Lock()
        self._records: dict[DocId, DocumentRecord] = {}
        self._discarded: dict[DocId, frozenset[Generation]] = {}
        self._log: list[CatalogChange] = []

    def read(self, doc_id: DocId) -> DocumentState:
        """See DocumentRegistry."""
        with self._lock:
            return DocumentState(self._records.get(doc_id), tuple(sorted(self._discarded.get(doc_id, ()))))

    def commit(self, change: DocumentChange) -> None:
        """See DocumentRegistry."""
        with self._lock:
            stored = self._records.get(change.doc_id)
            if (stored and stored.revision) != (change.before and change.before.revision):
                raise VersionConflict(f"{change.file_path!r} was changed by somebody else")
            if change.after is None:
                self._records.pop(change.doc_id, None)
            else:
                self._records[change.doc_id] = change.after
            self._log.append(CatalogChange(len(self._log) + 1, change.file_path, change.entry))
            if change.discarded is not None:
                self._discarded[change.doc_id] = self._discarded.get(change.doc_id, frozenset()) | {change.discarded}

    def forget_discarded(self, doc_id: DocId, generation: Generation) -> None:
        """See DocumentRegistry."""
        with self._lock:
            self._discarded[doc_id] = self._discarded.get(doc_id, frozenset()) - {generation}

    def generations(self, doc_ids: Sequence[DocId]) -> Mapping[DocId, Generation]:
        """See DocumentRegistry."""
        with self._lock:
            found = {doc_id: self._records[doc_id].generation for doc_id in doc_ids if doc_id in self._records}
        return {doc_id: generation for doc_id, generation in found.items() if generation is not None}

    def list(self, *, path_prefix: str, status: DocumentStatus | None, cursor: str | None, limit: int) -> DocumentPage:
        """See DocumentRegistry."""
        after, _ = page_cursor.decode(cursor, path_prefix) if cursor is not None else ("", None)
        with self._lock:
            records = [
                record
                for record in self._records.values()
                if record.file_path.startswith(path_prefix) and status in (None, record.status)
            ]
        records.sort(key=lambda record: record.file_path)
        start = bisect_right(records, after, key=lambda record: record.file_path)
        page = records[start : start + limit]
        more = start + limit < len(records)
        return DocumentPage(tuple(page), page_cursor.encode(page[-1]) if more else None)

    def head(self) -> int:
        """See CatalogLog."""
        with self._lock:
            return len(self._log)

    def changes_after(self, version: int) -> Sequence[CatalogChange]:
        """See CatalogLog."""
        with self._lock:
            return tuple(self._log[max(version, 0) :])


class MemoryVectorStore:
    """VectorStore over a dict; compares with every chunk."""

    def __init__(self) -> None:
        """An empty store."""
        self._lock = Lock()
        self._stored: dict[tuple[DocId, Generation], tuple[str, tuple[EmbeddedChunk, ...]]] = {}
        self._notes: Mapping[str, Json] = {}

    def notes(self) -> Mapping[str, Json]:
        """See VectorStore."""
        return self._notes

    def note(self, notes: Mapping[str, Json]) -> None:
        """See VectorStore."""
        self._notes = dict(notes)

    def write(self, doc_id: DocId, generation: Generation, file_path: str, chunks: Sequence[EmbeddedChunk]) -> None:
        """See VectorStore; nothing is kept of a generation without chunks."""
        if chunks:
            with self._lock:
                self._stored[doc_id, generation] = (file_path, tuple(chunks))

    def embeddings(self, doc_id: DocId, generation: Generation) -> Mapping[str, Vector]:
        """See VectorStore."""
        with self._lock:
            _, chunks = self._stored.get((doc_id, generation), ("", ()))
        return {item.chunk.content_hash: item.vector for item in chunks}

    def search(self, query: str, vector: Vector, *, limit: int, nearest_to: Vector | None = None) -> SearchResult:
        """See VectorStore. Vectors of another length are of another model, never compared."""
        wanted = vector if nearest_to is None else nearest_to
        with self._lock:
            stored = sorted(self._stored.items())
        found = [
            (identity, path, item)
            for identity, (path, chunks) in stored
            for item in chunks
            if len(item.vector) == len(vector)
        ]
        parts = [LexicalPart([item.chunk.text]) for _, _, item in found]
        words = LexicalIndex(parts).search(query)
        hits = [
            ChunkHit(
                *(*identity, path, item.chunk.ordinal, item.chunk.text),
                similarity=_dot(vector, item.vector),
                nearness=_dot(wanted, item.vector),
                lexical=words.scores.get(row, 0.0),
                held=parts[row].held(0, words.idf),
            )
            for row, (identity, path, item) in enumerate(found)
        ]
        nearest = sorted(hits, key=lambda hit: -hit.nearness)[: max(limit, 0)]
        best = sorted((hit for hit in hits if hit.lexical), key=lambda hit: -hit.lexical)[: max(limit, 0)]
        return SearchResult(list(dict.fromkeys([*nearest, *best])), words.idf, words.absent)

    def delete(self, doc_id: DocId, generation: Generation) -> None:
        """See VectorStore."""
        with self._lock:
            self._stored.pop((doc_id, generation), None)


def _dot(left: Vector, right: Vector) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


class MemoryEventQueue:
    """EventQueue over a list."""

    def __init__(self) -> None:
        """An empty queue."""
        self.bodies: list[str] = []

    def put_again(self, body: str) -> None:
        """See EventQueue."""
        self.bodies.append(body)


class MemoryPrincipalStore:
    """PrincipalStore over a dict that is given once."""

    def __init__(self, principals: Mapping[str, Principal]) -> None:
        """`principals` by the SHA-256 (hex) of their token."""
        self._principals = dict(principals)

    def find(self, token_hash: str) -> Principal | None:
        """See PrincipalStore."""
        return self._principals.get(token_hash)
