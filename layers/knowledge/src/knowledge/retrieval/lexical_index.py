"""BM25 over chunks in memory, in plain objects: what the faster forms of the stores are measured by."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from knowledge.retrieval.bm25 import idf, saturation
from knowledge.retrieval.terms import terms


class LexicalPart:
    """The words of one document's chunks. Immutable."""

    def __init__(self, texts: Sequence[str]) -> None:
        """O(length of the texts)."""
        self.lengths: list[int] = []
        self.postings: dict[str, list[tuple[int, int]]] = {}
        for place, text in enumerate(texts):
            counts = Counter(terms(text))
            self.lengths.append(counts.total())
            for term, occurrences in counts.items():
                self.postings.setdefault(term, []).append((place, occurrences))

    def held(self, place: int, wanted: Iterable[str]) -> frozenset[str]:
        """Those of the terms `wanted` that occur in the chunk at `place`."""
        return frozenset(term for term in wanted if any(at == place for at, _ in self.postings.get(term, ())))


@dataclass(frozen=True, slots=True)
class Words:
    """What a search by words finds."""

    scores: Mapping[int, float]
    """BM25 by row."""
    idf: Mapping[str, float]
    """Of each distinct term of the query."""
    absent: frozenset[str]
    """The terms that no row holds."""


class LexicalIndex:
    """Parts one after the other; a row is a chunk's place among all of them. Immutable."""

    def __init__(self, parts: Sequence[LexicalPart]) -> None:
        """O(distinct terms of all parts)."""
        self._parts = parts
        self._chunk_count = sum(len(part.lengths) for part in parts)
        total_length = sum(sum(part.lengths) for part in parts)
        self._mean_length = total_length / self._chunk_count if total_length else 1.0
        self._chunks_with: Counter[str] = Counter()
        for part in parts:
            self._chunks_with.update({term: len(places) for term, places in part.postings.items()})

    def search(self, query: str) -> "Words":
        """The rows that hold a term of the query, and what is known of its terms."""
        weights = {term: idf(self._chunk_count, self._chunks_with[term]) for term in dict.fromkeys(terms(query))}
        present = [term for term in weights if self._chunks_with[term]]
        scores: dict[int, float] = {}
        start = 0
        for part in self._parts:
            for term in present:
                for place, occurrences in part.postings.get(term, ()):
                    gain = weights[term] * saturation(occurrences, part.lengths[place], self._mean_length)
                    scores[start + place] = scores.get(start + place, 0.0) + gain
            start += len(part.lengths)
        return Words(scores, weights, frozenset(weights.keys() - set(present)))
