"""The vectors and words of many files as one matrix and one index of words: what the embedded store searches."""

from collections.abc import Sequence

import numpy as np

from knowledge.adapters.embedded_words import WordIndex
from knowledge.adapters.vector_file import StoredVectors
from knowledge.ports import ChunkHit, SearchResult, Vector

_Floats = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


class EmbeddedBlock:
    """All rows of one dimension, in key order, under each other. Never changed once it is made."""

    def __init__(self, parts: Sequence[StoredVectors]) -> None:
        """At least one part; from here on the parts are views of the block, so that rows are kept once."""
        self._matrix = np.concatenate([part.matrix for part in parts])
        self._parts = parts
        self._starts = np.cumsum([0, *(len(part.texts) for part in parts)])
        for part, start in zip(parts, self._starts[:-1], strict=True):
            part.matrix = self._matrix[start : start + len(part.texts)]
        self._words = WordIndex([part.words for part in parts])

    def search(
        self, query: str, vector: Vector, *, limit: int, nearest_to: Vector | None, folders: Sequence[str]
    ) -> SearchResult:
        """See VectorStore, for `limit` from 1 on."""
        similarities = np.clip(self._products(vector), -1.0, 1.0)
        nearness = similarities if nearest_to is None else self._products(nearest_to)
        words = self._words.search(query)
        if folders:
            searched = self._rows_under(tuple(folders))
            nearest = searched[np.argsort(-nearness[searched], kind="stable")[:limit]].tolist()
            best = words.best(limit, among=searched)
        else:
            nearest = np.argsort(-nearness, kind="stable")[:limit].tolist()
            best = words.best(limit)
        rows = list(dict.fromkeys([*nearest, *best]))
        hits = [
            self._hit(row, float(nearness[row]), float(words.scores[row]), held, float(similarities[row]))
            for row, held in zip(rows, words.held(rows), strict=True)
        ]
        return SearchResult(hits, words.idf, frozenset(term for term, found in words.rows.items() if not len(found)))

    def _rows_under(self, folders: tuple[str, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
        """The rows whose path begins with one of `folders`, ascending."""
        is_under = [part.file_path.startswith(folders) for part in self._parts]
        return np.flatnonzero(np.repeat(is_under, np.diff(self._starts)))

    def _products(self, vector: Vector) -> _Floats:
        """The product of every row with the vector."""
        products: _Floats = self._matrix @ np.asarray(vector, dtype=np.float32)
        return products

    def _hit(self, row: int, nearness: float, lexical: float, held: frozenset[str], similarity: float) -> ChunkHit:
        """The chunk in `row`."""
        index = int(np.searchsorted(self._starts, row, side="right")) - 1
        part = self._parts[index]
        place = row - int(self._starts[index])
        identity = (part.doc_id, part.generation, part.file_path)
        text, ordinal = part.texts[place], part.ordinals[place]
        return ChunkHit(*identity, ordinal, text, nearness, lexical, held, lambda: similarity)
