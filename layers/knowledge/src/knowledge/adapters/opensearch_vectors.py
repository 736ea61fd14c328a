"""VectorStore in OpenSearch: a managed domain, a node of one's own, or OpenSearch Serverless.

An alias for each embedder names a versioned index, that is made on first use. The terms of a text are computed by the
application and indexed as they are, so that words match, and weigh, exactly as in the other stores: pairs of Chinese
characters, identifiers and their parts.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from opensearchpy import OpenSearch

from knowledge.adapters.opensearch_admin import IndexAdmin
from knowledge.adapters.opensearch_calls import OPENSEARCH, Backoff, IndexAbsentError, readable, refusal
from knowledge.adapters.opensearch_generations import (
    DomainGenerations,
    Generations,
    ServerlessGenerations,
    stored_chunks,
    whole_generations,
)
from knowledge.adapters.opensearch_hybrid import HybridSearch
from knowledge.adapters.opensearch_index import FAISS, LUCENE, document, unpack
from knowledge.adapters.opensearch_search import Question, UnfitSearchError
from knowledge.domain.document import DocId, Generation, Json
from knowledge.errors import CorruptState, DependencyUnavailable, InvalidInput
from knowledge.ports import EmbeddedChunk, SearchResult, Vector

# Longest time until a write shows on Serverless. Source: OpenSearch Service guide, "Comparing OpenSearch Service and
# OpenSearch Serverless": the refresh interval is between 10 and 60 seconds and cannot be chosen.
_VISIBLE_AFTER_S = 60.0


class OpenSearchVectorStore:
    """VectorStore over an alias; thread-safe. On a domain every search sees what was written before it."""

    def __init__(
        self,
        client: OpenSearch,
        *,
        alias: str,
        dimension: int,
        embedder: str | None = None,
        serverless: bool = False,
        visible_after_s: float = _VISIBLE_AFTER_S,
        backoff: Backoff = Backoff(),  # noqa: B008 - immutable
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Makes no call. `dimension` is the length of every vector, `clock` gives monotonic seconds.

        `embedder` names whose vectors these are: each has an index of its own, and `alias` is what their names begin
        with. Without one, the index under `alias` is the only one. `client` must not try again by itself;
        `opensearch_client` makes one. `visible_after_s` counts on Serverless.
        """
        self._client = client
        self._dimension = dimension
        self._serverless = serverless
        self._visible_after_s = visible_after_s
        self._backoff = backoff
        self._clock = clock
        engine = FAISS if serverless else LUCENE
        self._index = IndexAdmin(client, alias, embedder, engine, dimension, backoff)
        alias = self._alias = self._index.alias
        self._hybrid = HybridSearch(client, alias, engine, backoff)
        self._generations: Generations = (
            ServerlessGenerations(client, alias, backoff, visible_after_s, clock)
            if serverless
            else DomainGenerations(client, alias, backoff)
        )
        self._ensured = False

    def notes(self) -> Mapping[str, Json]:
        """See VectorStore; one call, two without an index."""
        return self._index.notes()

    def note(self, notes: Mapping[str, Json]) -> None:
        """See VectorStore; one call, five when the index has to be made."""
        self._index.note(notes)

    def write(self, doc_id: DocId, generation: Generation, file_path: str, chunks: Sequence[EmbeddedChunk]) -> None:
        """See VectorStore; a call for each 4 MiB, one more for the first generation that this object writes.

        Raises:
            InvalidInput: a vector has another length than this store is for.
            CorruptState: the index is for vectors of another length, or was made by another version.
        """
        if any(len(item.vector) != self._dimension for item in chunks):
            message = f"a vector has another length than the {self._dimension} numbers this index is for"
            raise InvalidInput(f"{message}: embed everything again with: make reindex")
        if not chunks:
            return
        count = len(chunks)
        documents = [document(doc_id, generation, file_path, item, chunk_count=count) for item in chunks]
        if not self._ensured:
            self._index.ensure()
        try:
            try:
                self._generations.write(doc_id, generation, documents)
            except IndexAbsentError:
                # Somebody removed it since this object first wrote.
                self._index.ensure()
                self._generations.write(doc_id, generation, documents)
        except IndexAbsentError as error:
            raise DependencyUnavailable(OPENSEARCH, "lost its index while a document was written") from error
        except CorruptState:
            self._index.check_dimension()
            raise
        self._ensured = True

    def embeddings(self, doc_id: DocId, generation: Generation) -> Mapping[str, Vector]:
        """See VectorStore; a call for each 500 chunks."""
        shown = ("content_hash", "embedding")
        with readable():
            return {
                hit["_source"]["content_hash"]: list(unpack(hit["_source"]["embedding"]))
                for hit in stored_chunks(self._client, self._alias, self._backoff, doc_id, generation, shown)
            }

    def search(
        self, query: str, vector: Vector, *, limit: int, nearest_to: Vector | None = None, folders: Sequence[str] = ()
    ) -> SearchResult:
        """See VectorStore; one call.

        Raises:
            CorruptState: the index is for vectors of another length.
        """
        if limit < 1 or len(vector) != self._dimension:
            # Vectors of another length are of another model and never compared.
            return SearchResult([], {})
        try:
            return self._hybrid.run(Question.of(query, vector, limit, nearest_to, tuple(folders)))
        except IndexAbsentError:
            self._index.refuse_other()
            return SearchResult([], {})
        except UnfitSearchError as error:
            self._index.check_dimension()
            raise refusal(400, error.kind) from error

    def delete(self, doc_id: DocId, generation: Generation) -> None:
        """See VectorStore; one call.

        On Serverless two, and DependencyUnavailable while it is not certain that every chunk was visible: whoever asks
        again after `visible_after_s` seconds removes what has appeared since.
        """
        self._generations.delete(doc_id, generation)

    def begin_rebuild(self) -> "OpenSearchVectorStore":
        """See RebuildableVectorStore; three calls, one for a rebuild that was begun before."""
        self._index.begin_rebuild()
        building = OpenSearchVectorStore(
            self._client,
            alias=self._index.rebuild_alias,
            dimension=self._dimension,
            serverless=self._serverless,
            visible_after_s=self._visible_after_s,
            backoff=self._backoff,
            clock=self._clock,
        )
        building._index = replace(building._index, may_create=False)
        return building

    def finish_rebuild(self) -> None:
        """See RebuildableVectorStore; two calls, and one for each index that is replaced."""
        if self._serverless:
            # Or searches would miss for a while what was written last.
            self._backoff.sleep(self._visible_after_s)
        self._index.finish_rebuild()

    def generations(self, *, after: DocId | None = None) -> Iterator[tuple[DocId, Generation]]:
        """See RebuildableVectorStore; a call for each 1,000."""
        return whole_generations(self._client, self._alias, self._backoff, after)

    def remove_others(self) -> None:
        """See RebuildableVectorStore; one call, and one for each index."""
        self._index.remove_others()
