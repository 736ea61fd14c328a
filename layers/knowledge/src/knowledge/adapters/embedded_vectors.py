"""Exact vector search without a server: numpy over vectors that lie in the object store.

One immutable object for each generation of a document, in a folder for each embedder. An object of notes beside the
folder says that the index is there; while it is built for the first time there is none. A process keeps what it has
read; each search lists the folder (one call for each 1,000 documents), so that it sees what any other process has
written. Right for some thousand documents. Knows nothing of where the objects lie and of what the texts mean.

numpy is loaded with the first vectors: an exact answer, and so a cold start, needs none.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING

from knowledge.adapters.embedded_index import EmbeddedIndex
from knowledge.domain.document import DocId, Generation, Json
from knowledge.ports import EmbeddedChunk, ObjectInfo, ObjectStore, SearchResult, Vector

if TYPE_CHECKING:
    from knowledge.adapters.embedded_block import EmbeddedBlock
    from knowledge.adapters.vector_file import StoredVectors

_logger = logging.getLogger(__name__)

_SUFFIX = ".npz"
# Objects read at the same time. Source: own choice; half of the connections of `aws_client_config`.
_READERS = 16
# More than any object can hold. Source: Amazon S3 user guide: one PUT stores at most 5 GB.
_WHOLE_OBJECT = 5 * 1024**3


class EmbeddedVectorStore:
    """RebuildableVectorStore over an ObjectStore; thread-safe when that is.

    A first index is built where it will be searched, and counts once it has notes. One that is there already is made
    whole in place: a generation never changes, so there is nothing to change over to.
    """

    def __init__(self, objects: ObjectStore, prefix: str = "_index/vectors/", embedder: str | None = None) -> None:
        """Everything under `prefix`, and notes beside it, belong to this store and to those of other embedders.

        Without an `embedder`, the index under `prefix` is the only one.
        """
        self._objects = objects
        self._index = EmbeddedIndex(objects, prefix, embedder)
        self._prefix = self._index.folder
        self._is_there = False
        self._lock = Lock()
        # By key and ETag; None marks an object that cannot be read, so that it is reported once.
        self._parts: dict[tuple[str, str], StoredVectors | None] = {}
        self._blocks: dict[int, EmbeddedBlock] = {}

    def notes(self) -> Mapping[str, Json]:
        """See VectorStore; one read, and a listing without an index."""
        return self._index.notes()

    def note(self, notes: Mapping[str, Json]) -> None:
        """See VectorStore; one look and one put."""
        self._index.note(notes)

    def write(self, doc_id: DocId, generation: Generation, file_path: str, chunks: Sequence[EmbeddedChunk]) -> None:
        """See VectorStore; one look and one put, none when there are no chunks."""
        if chunks:
            from knowledge.adapters.vector_file import pack

            self._index.ensure()
            key = self._key(doc_id, generation)
            self._objects.put(key, pack(file_path, chunks), content_type="application/octet-stream")

    def embeddings(self, doc_id: DocId, generation: Generation) -> Mapping[str, Vector]:
        """See VectorStore; one read."""
        key = self._key(doc_id, generation)
        stored = self._objects.read(key, max_bytes=_WHOLE_OBJECT)
        part = stored and self._unpack(key, stored.body)
        return dict(zip(part.content_hashes, part.matrix.tolist(), strict=True)) if part else {}

    def search(
        self, query: str, vector: Vector, *, limit: int, nearest_to: Vector | None = None, folders: Sequence[str] = ()
    ) -> SearchResult:
        """See VectorStore; a listing, and a read for each object that this process has not seen.

        Vectors of another length are of another model and never compared.
        """
        block = self._refresh(list(self._objects.list(self._prefix))).get(len(vector))
        if block is None or not self._is_there:
            self._is_there = self._index.is_there()
        if block is None or limit < 1:
            return SearchResult([], {})
        return block.search(query, vector, limit=limit, nearest_to=nearest_to, folders=folders)

    def delete(self, doc_id: DocId, generation: Generation) -> None:
        """See VectorStore; one delete."""
        self._objects.delete(self._key(doc_id, generation))

    def begin_rebuild(self) -> "EmbeddedVectorStore":
        """See RebuildableVectorStore; one read, and one put for a rebuild that was not begun before."""
        building = EmbeddedVectorStore(self._objects, self._prefix)
        building._index = self._index.begin_rebuild()
        return building

    def finish_rebuild(self) -> None:
        """See RebuildableVectorStore; a read, a put and a delete."""
        self._index.finish_rebuild()

    def generations(self, *, after: DocId | None = None) -> Iterator[tuple[DocId, Generation]]:
        """See RebuildableVectorStore; a call for each 1,000."""
        # `~` comes after every character of a generation.
        start = f"{self._prefix}{after}/~" if after else ""
        return (self._generation_of(info.key) for info in self._objects.list(self._prefix, after=start))

    def remove_others(self) -> None:
        """See RebuildableVectorStore; a delete for each generation."""
        self._index.remove_others()

    def _generation_of(self, key: str) -> tuple[DocId, Generation]:
        doc_id, _, name = key.removeprefix(self._prefix).partition("/")
        return DocId(doc_id), Generation(name.removesuffix(_SUFFIX))

    def _key(self, doc_id: DocId, generation: Generation) -> str:
        return f"{self._prefix}{doc_id}/{generation}{_SUFFIX}"

    def _refresh(self, listing: Sequence[ObjectInfo]) -> "Mapping[int, EmbeddedBlock]":
        """The blocks for exactly the objects of `listing`."""
        with self._lock:
            wanted = {(info.key, info.etag): info for info in listing}
            missing = [info for identity, info in wanted.items() if identity not in self._parts]
            gone = self._parts.keys() - wanted.keys()
            if not missing and not gone:
                return self._blocks
            from knowledge.adapters.embedded_block import EmbeddedBlock

            with ThreadPoolExecutor(max_workers=_READERS, thread_name_prefix="vectors") as readers:
                read = dict(pair for pair in readers.map(self._read, missing) if pair is not None)
            parts = {**self._parts, **read}
            self._parts = {identity: parts[identity] for identity in wanted if identity in parts}
            by_dimension: dict[int, list[StoredVectors]] = {}
            for part in self._parts.values():
                if part is not None:
                    by_dimension.setdefault(part.matrix.shape[1], []).append(part)
            self._blocks = {dimension: EmbeddedBlock(group) for dimension, group in by_dimension.items()}
            return self._blocks

    def _read(self, info: ObjectInfo) -> "tuple[tuple[str, str], StoredVectors | None] | None":
        """The object by its identity, or None when it went away or changed since it was listed."""
        stored = self._objects.read(info.key, max_bytes=max(info.size_bytes, 1))
        if stored is None or stored.info.etag != info.etag:
            return None
        return (info.key, info.etag), self._unpack(info.key, stored.body)

    def _unpack(self, key: str, body: bytes) -> "StoredVectors | None":
        from knowledge.adapters.vector_file import UnreadableVectorsError, unpack

        try:
            return unpack(body, *self._generation_of(key))
        except UnreadableVectorsError:
            # Torn or foreign. Its document is still found by the exact tier, and converges to a new generation.
            _logger.warning("vectors_unreadable", extra={"key": key})
            return None
