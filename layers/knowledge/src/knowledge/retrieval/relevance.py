"""Fuses what a vector store found, and says how much speaks for there being an answer among it. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knowledge.ports import ChunkHit
from knowledge.retrieval.weak_keywords import is_weak

# What BM25, as a share of the most that any chunk could reach, counts beside the cosine. It notices by itself when
# words cannot help: in another language nothing matches and the share is near 0. Source: measured, docs/adr/0009.
_LEXICAL_WEIGHT = 0.3
# With fewer chunks in a language a mean says more about them than about the language, and is not taken off.
# Source: own choice, docs/adr/0009.
MIN_CHUNKS_FOR_A_MEAN = 20
# What counts beside the cosine when it is decided whether there is an answer: the share of the query's terms in the
# document, and the lead of the best one over the fifth, in which that share counts again. Source: measured,
# docs/adr/0010.
_COVERAGE_WEIGHT = 0.1
_LEAD_WEIGHT = 0.7
_COVERAGE_WEIGHT_IN_LEAD = 0.05
_LEAD_OVER = 5
# How steeply confidence rises around the threshold. Source: slope of the logistic regression over the evidence,
# docs/adr/0010.
_CONFIDENCE_SLOPE = 26.0


@dataclass(frozen=True, slots=True)
class Relevance:
    """The signals that a chunk gives."""

    similarity: float
    """Cosine, -1 to 1."""
    nearness: float
    """What the vector store orders by, comparable within one search."""
    lexical: float
    """BM25 as a share of the most that any chunk could reach for this query, 0 to 1."""
    coverage: float
    """Share of the query's terms, function words left out, that the chunk holds, 0 to 1."""

    @property
    def rank(self) -> float:
        """Orders the hits of one search."""
        return self.nearness + _LEXICAL_WEIGHT * self.lexical


def relevance_of(hit: ChunkHit, idf: Mapping[str, float]) -> Relevance:
    """The signals of a hit; `idf` is that of the query's distinct terms."""
    ceiling = sum(idf.values())
    wanted = {term for term in idf if not is_weak(term)}
    coverage = len(wanted & hit.held) / len(wanted) if wanted else 0.0
    lexical = min(1.0, hit.lexical / ceiling) if ceiling else 0.0
    return Relevance(hit.similarity, hit.nearness, lexical, coverage)


def evidence_for_an_answer(best_by_document: Sequence[Relevance]) -> float:
    """How much speaks for there being an answer; from where on depends on base and embedder. Nothing: minus infinity.

    The best cosine with the share of the query's terms, and by how much the best document leads the fifth (or the last
    of fewer): where many are equally near, none is meant. Languages are not levelled out here, only in the rank.
    """
    if not best_by_document:
        return -math.inf
    support = max(one.similarity + _COVERAGE_WEIGHT * one.coverage for one in best_by_document)
    scores = sorted(
        (
            one.similarity + _LEXICAL_WEIGHT * one.lexical + _COVERAGE_WEIGHT_IN_LEAD * one.coverage
            for one in best_by_document
        ),
        reverse=True,
    )
    return support + _LEAD_WEIGHT * (scores[0] - scores[:_LEAD_OVER][-1])


def confidence_in_an_answer(evidence: float, threshold: float) -> float:
    """0 to 1, one half at the threshold. Orders queries of one base; it is no promise of a frequency."""
    return 1.0 / (1.0 + math.exp(-_CONFIDENCE_SLOPE * (evidence - threshold)))
