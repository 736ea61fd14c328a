"""The semantic tier: the nearest chunks whose document still has exactly that text, and whether they are an answer."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from knowledge.domain.document import DocId, KnowledgeBasePath
from knowledge.ports import ChunkHit, DocumentRegistry, Embedder, Vector, VectorStore
from knowledge.retrieval.relevance import (
    COUNTED_DOCUMENTS,
    Comparison,
    Relevance,
    evidence_for_an_answer,
    evidence_for_one,
    unknown_names,
)
from knowledge.services.index_notes import IndexNotes, script_of

_logger = logging.getLogger(__name__)

# Several chunks of one document and chunks of replaced generations are dropped after the search; this many by vector
# and as many by words leave enough, and their documents fit one read of the registry (at most 100 ids). Source:
# measured on the seed and four public sets: nDCG@10, MRR@10 and recall@3 are the same to four digits with 20, 30, 50.
_CHUNKS = 30


@dataclass(frozen=True, slots=True)
class SemanticHit:
    """The best chunk of one document."""

    chunk: ChunkHit
    relevance: Relevance
    evidence: float
    """How much speaks for this document being an answer, whatever the others are; at most that of the ranking."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a search found, and whether any of it is an answer."""

    hits: Sequence[SemanticHit]
    """Best first, one for each document."""
    evidence: float
    """How much speaks for there being an answer; minus infinity when nothing was found."""
    threshold: float
    """The evidence from which there is an answer, for queries in this script, in this base with this embedder."""
    unknown_names: float
    """Share of the names in the query that no document holds, 0 to 1."""

    @property
    def is_answer(self) -> bool:
        """True when there is enough evidence."""
        return self.evidence >= self.threshold

    @property
    def answers(self) -> Sequence[SemanticHit]:
        """The best hit when this is an answer, and the others with enough evidence of their own, best first.

        The best one is told by vectors without their language, and evidence by cosines with it: in another language
        than the question it has less of its own than its neighbours.
        """
        best = self.hits[:1] if self.is_answer else []
        return [*best, *(hit for hit in self.hits[len(best) :] if hit.evidence >= self.threshold)]


class SemanticSearch:
    """Searches by meaning."""

    def __init__(
        self, embedder: Embedder, vectors: VectorStore, registry: DocumentRegistry, base: KnowledgeBasePath
    ) -> None:
        """Notes with `vectors` that name another embedder make every search fail."""
        self._embedder = embedder
        self._vectors = vectors
        self._registry = registry
        self._base = base
        self.notes = IndexNotes(vectors, embedder)
        """What is in force for these searches."""

    def search(self, query: str, *, top_k: int = 3, category: str | None = None) -> Sequence[SemanticHit]:
        """Up to `top_k` documents that answer `query`, best first; none when there are only neighbours. See `rank`."""
        ranking = self.rank(query, top_k=top_k, folders=() if category is None else [f"{self._base.prefix}{category}/"])
        return ranking.hits if ranking.is_answer else []

    def rank(self, query: str, *, top_k: int, folders: Sequence[str] = ()) -> Ranking:
        """The `top_k` (1 to 20) nearest documents under `folders` (none: everywhere), best first, answer or not.

        One embedding, one search, one read of the registry. A chunk counts only while it belongs to its document's
        current generation, so a deleted or replaced text cannot come back.

        Raises:
            DependencyUnavailable: the embedder, the vector store or the registry failed.
            CorruptState: the vectors are another embedder's; says what to do.
        """
        return self.rank_vector(query, self.embed(query), top_k=top_k, folders=folders)

    def embed(self, query: str) -> Vector:
        """The query's vector. Raises DependencyUnavailable when the embedder failed."""
        # The model reads no more; the rest of a long message would only cost time. The words of all of it count.
        from knowledge.parsing.cutting import cut_text  # needs the splitter, which no exact answer does

        beginning = next(cut_text(query, 100 * self._embedder.max_tokens), query)
        return self._embedder.embed_query(beginning)

    def rank_vector(self, query: str, vector: Vector, *, top_k: int, folders: Sequence[str] = ()) -> Ranking:
        """As `rank`, for a query that is embedded already."""
        threshold, centring = self.notes.answer_threshold(script_of(query)), self.notes.question_centring()
        nearest_to = None if centring is None else centring.nearest_to(vector)
        found = self._vectors.search(query, vector, limit=_CHUNKS, nearest_to=nearest_to, folders=folders)
        current = self._registry.generations(list(dict.fromkeys(chunk.doc_id for chunk in found.hits)))
        valid = [hit for hit in found.hits if current.get(hit.doc_id) == hit.generation]
        comparison = Comparison(found)
        best: dict[DocId, ChunkHit] = {}
        for hit in sorted(valid, key=comparison.rank, reverse=True):
            best.setdefault(hit.doc_id, hit)
        wanted = list(best.values())[: max(top_k, COUNTED_DOCUMENTS)]
        signals = [comparison.relevance(hit) for hit in wanted]
        unknown = unknown_names(found)
        evidence = evidence_for_an_answer(signals, unknown)
        hits = [
            SemanticHit(hit, one, evidence_for_one(one, signals, unknown))
            for hit, one in zip(wanted, signals, strict=True)
        ]
        _logger.debug("semantic_search_finished", extra={"chunk_count": len(valid), "evidence": evidence})
        return Ranking(hits[:top_k], evidence, threshold, unknown)
