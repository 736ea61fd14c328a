"""BM25 over the embedded store's chunks: which term occurs where, in arrays instead of objects.

A term is known by 64 bits of its hash. What a file holds is worked out when it is written, so that a process that
reads it takes no text apart.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from knowledge.retrieval.bm25 import K1, B, idf
from knowledge.retrieval.terms import terms

_Array = np.ndarray[tuple[int, ...], np.dtype[Any]]


@dataclass(slots=True)
class ChunkWords:
    """The words of one file's chunks; `hashes`, `places` and `counts` have the same index."""

    hashes: _Array
    """uint64: of a term, ascending."""
    places: _Array
    """uint32: of a chunk in the file that holds the term."""
    counts: _Array
    """uint32: how often it does."""
    lengths: _Array
    """uint32: terms of each chunk, repeated ones repeated."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> "ChunkWords":
        """O(length of the texts)."""
        counted = [Counter(terms(text)) for text in texts]
        rows = [
            (hashed, place, count)
            for place, counts in enumerate(counted)
            for hashed, count in zip(_hashes(counts), counts.values(), strict=True)
        ]
        hashes = np.array([row[0] for row in rows], dtype=np.uint64)
        order = np.argsort(hashes, kind="stable")
        places, counts = (np.array([row[at] for row in rows], dtype=np.uint32) for at in (1, 2))
        lengths = np.array([counts.total() for counts in counted], dtype=np.uint32)
        return cls(hashes[order], places[order], counts[order], lengths)

    def is_sound(self, chunk_count: int) -> bool:
        """False when it cannot be of that many chunks."""
        kinds = [(self.hashes, np.uint64), *((array, np.uint32) for array in (self.places, self.counts, self.lengths))]
        return (
            all(array.dtype == kind and array.ndim == 1 for array, kind in kinds)
            and len(self.hashes) == len(self.places) == len(self.counts)
            and len(self.lengths) == chunk_count
            and bool(np.all(self.places < chunk_count))
        )


@dataclass(frozen=True, slots=True)
class FoundWords:
    """What a search by words finds."""

    scores: _Array
    """BM25 of each row; 0 where it holds no term of the query."""
    idf: Mapping[str, float]
    """Of each distinct term of the query."""
    rows: Mapping[str, _Array]
    """The rows that hold a term, by term."""

    def best(self, limit: int, among: _Array | None = None) -> list[int]:
        """The rows (those of `among`, ascending; None: all) that hold a term, best first, ties by row."""
        matched = np.flatnonzero(self.scores) if among is None else among[self.scores[among] > 0]
        best: list[int] = matched[np.argsort(-self.scores[matched], kind="stable")[:limit]].tolist()
        return best

    def held(self, rows: Sequence[int]) -> list[frozenset[str]]:
        """For each of `rows`, the terms of the query that it holds."""
        held: list[set[str]] = [set() for _ in rows]
        for term, holding in self.rows.items():
            for at in np.flatnonzero(np.isin(rows, holding)):
                held[at].add(term)
        return list(map(frozenset, held))


class WordIndex:
    """Files one after the other; a row is a chunk's place among all of them. Immutable."""

    def __init__(self, parts: Sequence[ChunkWords]) -> None:
        """O(terms of all parts); afterwards the parts are views of its arrays."""
        self._hashes = np.concatenate([part.hashes for part in parts])
        self._counts = np.concatenate([part.counts for part in parts])
        self._lengths = np.concatenate([part.lengths for part in parts])
        first_rows = np.cumsum([0, *(len(part.lengths) for part in parts)])[:-1]
        sizes = [len(part.hashes) for part in parts]
        self._rows = np.concatenate([part.places for part in parts]) + np.repeat(first_rows, sizes).astype(np.uint32)
        # Runs that are sorted already are merged, which takes little more than reading them.
        self._order = np.argsort(self._hashes, kind="stable")
        self._mean_length = float(self._lengths.mean()) if self._lengths.any() else 1.0
        start = 0
        for part, size in zip(parts, sizes, strict=True):
            part.hashes, part.counts = self._hashes[start : start + size], self._counts[start : start + size]
            start += size

    def search(self, query: str) -> FoundWords:
        """BM25 by row, and what is known of the query's terms."""
        wanted = list(dict.fromkeys(terms(query)))
        hashes = np.array(list(_hashes(wanted)), dtype=np.uint64)
        starts = np.searchsorted(self._hashes, hashes, side="left", sorter=self._order)
        ends = np.searchsorted(self._hashes, hashes, side="right", sorter=self._order)
        scores = np.zeros(len(self._lengths))
        weights: dict[str, float] = {}
        rows: dict[str, _Array] = {}
        for term, start, end in zip(wanted, starts, ends, strict=True):
            found = self._order[start:end]
            rows[term], counts = self._rows[found], self._counts[found]
            weights[term] = idf(len(self._lengths), len(found))
            lengths = self._lengths[rows[term]]
            scores[rows[term]] += weights[term] * (counts / (counts + K1 * (1 - B + B * lengths / self._mean_length)))
        return FoundWords(scores, weights, rows)


def _hashes(words: Iterable[str]) -> Iterable[int]:
    for word in words:
        yield int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
