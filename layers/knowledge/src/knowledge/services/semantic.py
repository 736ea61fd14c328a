"""The semantic tier: the nearest chunks whose document still has exactly that text, and whether they are an answer."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

from knowledge.domain.document import DocId, KnowledgeBasePath
from knowledge.ports import ChunkHit, DocumentRegistry, Embedder, VectorStore
from knowledge.retrieval.relevance import Relevance, term_share

_logger = logging.getLogger(__name__)

# Several chunks of one document and chunks of replaced generations are dropped after the search; ten for each wanted
# result leave enough, and their documents fit one read of the registry (at most 100 ids).
_CHUNKS_PER_RESULT = 10


@dataclass(frozen=True, slots=True)
class SemanticHit:
    """The best chunk of one document."""

    chunk: ChunkHit
    relevance: Relevance


class SemanticSearch:
    """Searches by meaning."""

    def __init__(
        self, embedder: Embedder, vectors: VectorStore, registry: DocumentRegistry, base: KnowledgeBasePath
    ) -> None:
        """`vectors` must hold what `embedder` made."""
        self._embedder = embedder
        self._vectors = vectors
        self._registry = registry
        self._base = base

    def search(self, query: str, *, top_k: int = 3, category: str | None = None) -> Sequence[SemanticHit]:
        """Up to `top_k` (1 to 10) documents that answer `query`, best first; none when there are only neighbours.

        One embedding, one search, one read of the registry. A chunk counts only while it belongs to its document's
        current generation, so a deleted or replaced text cannot come back.

        Raises:
            DependencyUnavailable: the embedder, the vector store or the registry failed.
        """
        vector = self._embedder.embed_query(query)
        found = self._vectors.search(query, vector, limit=top_k * _CHUNKS_PER_RESULT)
        current = self._registry.generations(list(dict.fromkeys(chunk.doc_id for chunk in found)))
        hits = [
            SemanticHit(chunk, Relevance(chunk.similarity, chunk.nearness, term_share(query, chunk.text)))
            for chunk in found
            if current.get(chunk.doc_id) == chunk.generation and self._is_in(category, chunk.file_path)
        ]
        evidence = max((hit.relevance.evidence for hit in hits), default=-math.inf)
        _logger.debug("semantic_search_finished", extra={"chunk_count": len(hits), "evidence": evidence})
        if evidence < self._embedder.answer_threshold:
            return []
        best: dict[DocId, SemanticHit] = {}
        for hit in sorted(hits, key=lambda hit: -hit.relevance.rank):
            best.setdefault(hit.chunk.doc_id, hit)
        return list(best.values())[:top_k]

    def _is_in(self, category: str | None, path: str) -> bool:
        found = self._base.category_of(path)
        return category is None or found == category or found.startswith(category + "/")
