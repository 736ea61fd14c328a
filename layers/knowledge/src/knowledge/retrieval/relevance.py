"""Fuses what a vector store found, and says how much speaks for there being an answer among it. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from knowledge.domain.text import is_unspaced
from knowledge.ports import ChunkHit, SearchResult
from knowledge.retrieval.weak_keywords import is_weak

# What BM25, as a share of the most that any chunk could reach, counts beside the vectors. It notices by itself when
# words cannot help: in another language nothing matches and the share is near 0. Source: measured, docs/adr/0012.
_LEXICAL_WEIGHT = 0.2
# What counts beside the cosine when it is decided whether there is an answer: the share of the query's terms in the
# document, the lead of the best one over the fifth, and names that the base does not know. Source: measured,
# docs/adr/0010 and 0012.
_COVERAGE_WEIGHT = 0.1
_LEAD_WEIGHT = 1.0
_UNKNOWN_NAMES_WEIGHT = 0.05
_LEAD_OVER = 5
COUNTED_DOCUMENTS = 10
"""So many documents say whether there is an answer."""
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
    rank: float
    """Orders the hits of one search."""


class Comparison:
    """What the hits of one search are worth for its query."""

    def __init__(self, found: SearchResult) -> None:
        """O(terms of the query)."""
        self._ceiling = sum(found.idf.values())
        self._wanted = frozenset(term for term in found.idf if not is_weak(term))

    def rank(self, hit: ChunkHit) -> float:
        """Orders the hits of the search; asks for no similarity, which may have to be worked out."""
        return hit.nearness + _LEXICAL_WEIGHT * self._lexical(hit)

    def relevance(self, hit: ChunkHit) -> Relevance:
        """The signals of a hit."""
        coverage = len(self._wanted & hit.held) / len(self._wanted) if self._wanted else 0.0
        return Relevance(hit.similarity, hit.nearness, self._lexical(hit), coverage, self.rank(hit))

    def _lexical(self, hit: ChunkHit) -> float:
        return min(1.0, hit.lexical / self._ceiling) if self._ceiling else 0.0


def unknown_names(found: SearchResult) -> float:
    """Share of the names in the query that no document of the base holds, 0 to 1; 0 where there are none.

    Names are the words in Latin letters or digits of a query in a script without blanks: what is not translated there
    is a product, a function or an error code. Among the words of other queries, nothing tells names apart.
    """
    if not any(is_unspaced(term[0]) for term in found.idf):
        return 0.0
    names = {term for term in found.idf if len(term) > 1 and not is_unspaced(term[0]) and not is_weak(term)}
    return len(names & found.absent) / len(names) if names else 0.0


def evidence_for_an_answer(best: Sequence[Relevance], unknown: float) -> float:
    """How much speaks for there being an answer; from where on depends on base and embedder. Nothing: minus infinity.

    `best` are the best documents, each by its best chunk, best first; the first ten count. Their best cosine with the
    share of the query's terms, and by how much the first leads the fifth (or the last of fewer): where many are equally
    near, none is meant. `unknown` is the share of names that the base does not know.
    """
    counted = best[:COUNTED_DOCUMENTS]
    if not counted:
        return -math.inf
    support = max(one.similarity + _COVERAGE_WEIGHT * one.coverage for one in counted)
    return support + _LEAD_WEIGHT * (counted[0].rank - counted[:_LEAD_OVER][-1].rank) - _UNKNOWN_NAMES_WEIGHT * unknown


def evidence_for_one(one: Relevance, best: Sequence[Relevance], unknown: float) -> float:
    """How much speaks for that document being an answer by itself; never more than `evidence_for_an_answer`.

    Its own cosine, its own terms, and by how much it leads the fifth of the `best`, which may be less than nothing.
    """
    fifth = best[:_LEAD_OVER][-1]
    support = one.similarity + _COVERAGE_WEIGHT * one.coverage
    return support + _LEAD_WEIGHT * (one.rank - fifth.rank) - _UNKNOWN_NAMES_WEIGHT * unknown


def confidence_in_an_answer(evidence: float, threshold: float) -> float:
    """0 to 1, one half at the threshold. Orders queries of one base; it is no promise of a frequency."""
    return 1.0 / (1.0 + math.exp(-_CONFIDENCE_SLOPE * (evidence - threshold)))
