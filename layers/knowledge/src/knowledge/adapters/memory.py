"""Memory twins of the ports, for tests and for whoever tries the services without AWS.

Every method is atomic, and answers as the real adapters do: the contract tests hold both to the same sentences.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from uuid import uuid4

from knowledge.adapters import page_cursor
from knowledge.adapters.index_names import other_embedder
from knowledge.domain.document import DocId, DocumentRecord, DocumentStatus, Generation, Json
from knowledge.errors import Conflict, VersionConflict
from knowledge.ports import (
    CatalogChange,
    CatalogHead,
    ChunkHit,
    DocumentChange,
    DocumentPage,
    DocumentState,
    EmbeddedChunk,
    SearchResult,
    SnapshotPointer,
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
        self._deleted: dict[DocId, str] = {}
        self._log: list[CatalogChange] = []
        self._head = CatalogHead()

    def read(self, doc_id: DocId) -> DocumentState:
        """See DocumentRegistry."""
        with self._lock:
            discarded = tuple(sorted(self._discarded.get(doc_id, ())))
            return DocumentState(self._records.get(doc_id), discarded, self._deleted.get(doc_id))

    def commit(self, changes: Sequence[DocumentChange]) -> None:
        """See DocumentRegistry."""
        with self._lock:
            if lost := [change.file_path for change in changes if self._is_outdated(change)]:
                raise VersionConflict(*lost)
            for change in changes:
                self._apply(change)
            self._head = replace(self._head, version=self._head.version + 1)
            self._log.append(CatalogChange(self._head.version, {change.file_path: change.entry for change in changes}))

    def _is_outdated(self, change: DocumentChange) -> bool:
        stored = self._records.get(change.doc_id)
        if stored is None or change.before is None:
            return stored is not change.before or change.deleted != self._deleted.get(change.doc_id)
        return stored.revision != change.before.revision

    def _apply(self, change: DocumentChange) -> None:
        if change.after is not None:
            self._records[change.doc_id] = change.after
        else:
            gone = self._records.pop(change.doc_id, None)
            self._deleted[change.doc_id] = gone.revision if gone else uuid4().hex
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
        after, _ = page_cursor.decode_document(cursor, path_prefix) if cursor is not None else ("", None)
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
        return DocumentPage(tuple(page), page_cursor.encode_document(page[-1]) if more else None)

    def head(self) -> CatalogHead:
        """See CatalogLog."""
        with self._lock:
            return self._head

    def changes_after(self, version: int) -> Sequence[CatalogChange]:
        """See CatalogLog."""
        with self._lock:
            return tuple(change for change in self._log if change.version > version)

    def publish(self, snapshots: Sequence[SnapshotPointer], *, instead_of: Sequence[SnapshotPointer]) -> None:
        """See CatalogLog."""
        with self._lock:
            if self._head.version == 0 or self._head.snapshots[:1] != tuple(instead_of[:1]):
                raise Conflict("another snapshot was published meanwhile")
            self._head = replace(self._head, snapshots=tuple(snapshots))

    def forget_before(self, version: int, *, limit: int) -> int:
        """See CatalogLog."""
        with self._lock:
            removed = min(limit, sum(change.version < version for change in self._log))
            del self._log[:removed]
            return removed


@dataclass(slots=True)
class _MemoryIndex:
    stored: dict[tuple[DocId, Generation], tuple[str, tuple[EmbeddedChunk, ...]]] = field(default_factory=dict)
    notes: Mapping[str, Json] = field(default_factory=dict)


@dataclass(slots=True)
class _MemoryPlace:
    lock: Lock = field(default_factory=Lock)
    indices: dict[str | None, _MemoryIndex] = field(default_factory=dict)
    unfinished: dict[str | None, _MemoryIndex] = field(default_factory=dict)


class MemoryVectorStore:
    """RebuildableVectorStore over dicts; compares with every chunk."""

    def __init__(self, embedder: str | None = None, beside: "MemoryVectorStore | None" = None) -> None:
        """An empty store, or one in the same place as `beside`. Without an `embedder` it is the only one there."""
        self._embedder = embedder
        self._place: _MemoryPlace = beside._place if beside else _MemoryPlace()

    def notes(self) -> Mapping[str, Json]:
        """See VectorStore."""
        with self._place.lock:
            return self._current().notes

    def note(self, notes: Mapping[str, Json]) -> None:
        """See VectorStore."""
        with self._place.lock:
            self._made().notes = dict(notes)

    def write(self, doc_id: DocId, generation: Generation, file_path: str, chunks: Sequence[EmbeddedChunk]) -> None:
        """See VectorStore; nothing is kept of a generation without chunks."""
        if chunks:
            with self._place.lock:
                self._made().stored[doc_id, generation] = (file_path, tuple(chunks))

    def embeddings(self, doc_id: DocId, generation: Generation) -> Mapping[str, Vector]:
        """See VectorStore."""
        with self._place.lock:
            index = self._place.indices.get(self._embedder, _MemoryIndex())
            _, chunks = index.stored.get((doc_id, generation), ("", ()))
        return {item.chunk.content_hash: item.vector for item in chunks}

    def search(
        self, query: str, vector: Vector, *, limit: int, nearest_to: Vector | None = None, folders: Sequence[str] = ()
    ) -> SearchResult:
        """See VectorStore. Vectors of another length are of another model, never compared."""
        with self._place.lock:
            stored = sorted(self._current().stored.items())
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
                nearness=_dot(nearest_to or vector, item.vector),
                lexical=words.scores.get(row, 0.0),
                held=parts[row].held(0, words.idf),
                compare=partial(_dot, vector, item.vector),
            )
            for row, (identity, path, item) in enumerate(found)
            if not folders or path.startswith(tuple(folders))
        ]
        nearest = sorted(hits, key=lambda hit: -hit.nearness)[: max(limit, 0)]
        best = sorted((hit for hit in hits if hit.lexical), key=lambda hit: -hit.lexical)[: max(limit, 0)]
        return SearchResult(list(dict.fromkeys([*nearest, *best])), words.idf, words.absent)

    def delete(self, doc_id: DocId, generation: Generation) -> None:
        """See VectorStore."""
        with self._place.lock:
            self._place.indices.get(self._embedder, _MemoryIndex()).stored.pop((doc_id, generation), None)

    def begin_rebuild(self) -> "MemoryVectorStore":
        """See RebuildableVectorStore."""
        building = MemoryVectorStore()
        with self._place.lock:
            index = self._place.unfinished.setdefault(self._embedder, _MemoryIndex())
            building._place = _MemoryPlace(self._place.lock, {None: index})
        return building

    def finish_rebuild(self) -> None:
        """See RebuildableVectorStore."""
        with self._place.lock:
            if self._embedder not in self._place.unfinished:
                raise Conflict("there is no rebuilt index to change to: begin a rebuild first")
            self._place.indices[self._embedder] = self._place.unfinished.pop(self._embedder)

    def generations(self, *, after: DocId | None = None) -> Iterator[tuple[DocId, Generation]]:
        """See RebuildableVectorStore."""
        with self._place.lock:
            stored = self._place.indices.get(self._embedder, _MemoryIndex()).stored
            return iter(sorted(identity for identity in stored if identity[0] > (after or "")))

    def remove_others(self) -> None:
        """See RebuildableVectorStore."""
        with self._place.lock:
            for indices in (self._place.indices, self._place.unfinished):
                for embedder in indices.keys() - {self._embedder}:
                    del indices[embedder]

    def _current(self) -> _MemoryIndex:
        """The index, an empty one when no embedder has any; raises OtherEmbedder when only another one has."""
        if self._embedder in self._place.indices:
            return self._place.indices[self._embedder]
        if self._embedder is not None:
            for index in self._place.indices.values():
                raise other_embedder(index.notes, self._embedder)
        return _MemoryIndex()

    def _made(self) -> _MemoryIndex:
        """The index, made if no embedder has any."""
        return self._place.indices.setdefault(self._embedder, self._current())


def _dot(left: Vector, right: Vector) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


@dataclass(slots=True)
class MemoryEventQueue:
    """EventQueue over a list."""

    bodies: list[str] = field(default_factory=list)

    def put_again(self, body: str) -> None:
        """See EventQueue."""
        self.bodies.append(body)
