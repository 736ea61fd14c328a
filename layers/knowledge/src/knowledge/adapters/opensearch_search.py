"""One search by vector and by words in OpenSearch: a single `_msearch`, and reading its answers.

Candidates are chosen by OpenSearch; the numbers on them are computed here from what it stores, so that they are those
of the other stores: BM25 from exact counts, not Lucene's rounded lengths.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from knowledge.adapters.opensearch_calls import OPENSEARCH, IndexAbsentError, error_type, refusal
from knowledge.adapters.opensearch_index import Document, Engine, unpack
from knowledge.domain.document import DocId, Generation
from knowledge.errors import DependencyUnavailable
from knowledge.ports import ChunkHit, SearchResult, Vector
from knowledge.retrieval.bm25 import idf, saturation
from knowledge.retrieval.terms import terms

# Candidates that the graph search keeps; with more it misses fewer of the nearest. Source: OpenSearch documentation,
# "k-NN query": engine lucene searches with k, and faiss with ef_search, 100 by default.
_MIN_CANDIDATES = 100
# Source: OpenSearch documentation, `indices.query.bool.max_clause_count`: 1,024 clauses by default.
_MAX_MATCHED_TERMS = 1000
_SHOWN = ("doc_id", "generation", "file_path", "ordinal", "text", "terms", "length")


class UnfitSearchError(Exception):
    """The index does not take such a search: most likely its vectors have another length; stays inside the adapter."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched for."""

    vector: Vector
    """Unit length, or zeros."""
    nearest_to: Vector
    """Any length."""
    limit: int
    words: tuple[str, ...]
    """The distinct terms of the query."""
    folders: tuple[str, ...]
    """Beginnings of the paths to search under; none for everything."""

    @classmethod
    def of(
        cls, query: str, vector: Vector, limit: int, nearest_to: Vector | None, folders: tuple[str, ...]
    ) -> "Question":
        """With the query taken apart; None stands for `vector`."""
        words = tuple(dict.fromkeys(terms(query)))
        return cls(vector, vector if nearest_to is None else nearest_to, limit, words, folders)

    @property
    def is_centred(self) -> bool:
        """True when the nearest are not searched for with the query's own vector."""
        return self.nearest_to is not self.vector


@dataclass(frozen=True, slots=True)
class Counts:
    """What is known of all chunks of the index, exactly."""

    mean_length: float
    idf: Mapping[str, float]
    absent: frozenset[str]


def searches(question: Question) -> list[Document]:
    """The bodies of the `_msearch`, the counts first. A candidate's vector is asked for where it is needed."""
    found = [_counts(question.words)]
    if any(question.nearest_to):
        k = max(question.limit, _MIN_CANDIDATES)
        # At unit length, where the score of either engine tells the cosine.
        length = math.hypot(*question.nearest_to)
        near: Document = {"vector": [value / length for value in question.nearest_to], "k": k}
        if question.folders:
            # Applied while the graph is searched, by either engine, so that k neighbours are left. Source: OpenSearch
            # documentation, "Efficient k-NN filtering": lucene from 2.4 on, faiss from 2.9 on.
            near["filter"] = _under(question.folders)
        shown = [*_SHOWN, "embedding"] if question.is_centred else list(_SHOWN)
        found.append({"size": question.limit, "_source": shown, "query": {"knn": {"vector": near}}})
    if question.words:
        query: Document = {"match": {"terms": {"query": " ".join(question.words[:_MAX_MATCHED_TERMS])}}}
        if question.folders:
            query = {"bool": {"must": [query], "filter": [_under(question.folders)]}}
        found.append({"size": question.limit, "_source": [*_SHOWN, "embedding"], "query": query})
    return found


def _under(folders: Sequence[str]) -> Document:
    """Matches the chunks whose path begins with one of `folders`."""
    return {"bool": {"should": [{"prefix": {"file_path": folder}} for folder in folders]}}


def _counts(words: Sequence[str]) -> Document:
    asked: Document = {"mean_length": {"avg": {"field": "length"}}}
    if words:
        asked["chunks_with"] = {"filters": {"filters": [{"term": {"terms": word}} for word in words]}}
    return {"size": 0, "track_total_hits": True, "aggs": asked}


def checked(answers: Sequence[Document]) -> Sequence[Document]:
    """The answers, each complete. Raises IndexAbsentError, UnfitSearchError or DependencyUnavailable."""
    for answer in answers:
        if "error" in answer:
            status = int(answer["status"])
            if status == 404:
                raise IndexAbsentError
            if status == 400:
                raise UnfitSearchError(error_type(answer["error"]))
            raise refusal(status, error_type(answer["error"]))
        if answer["timed_out"] or answer["_shards"]["failed"]:
            raise DependencyUnavailable(OPENSEARCH, "answered for a part of the index only")
    return answers


def counts_in(answer: Document, words: Sequence[str]) -> Counts:
    """What the first body asked for."""
    asked = answer["aggregations"]
    total = answer["hits"]["total"]["value"]
    buckets = asked["chunks_with"]["buckets"] if words else []
    chunks_with = {word: bucket["doc_count"] for word, bucket in zip(words, buckets, strict=True)}
    return Counts(
        mean_length=asked["mean_length"]["value"] or 1.0,
        idf={word: idf(total, count) for word, count in chunks_with.items()},
        absent=frozenset(word for word, count in chunks_with.items() if not count),
    )


def result_of(question: Question, counts: Counts, answers: Sequence[Document], engine: Engine) -> SearchResult:
    """The hits in the answers after the first, with all their numbers.

    A chunk that is stored twice, as a lost answer may leave it where there are no ids of one's own, is one hit.
    """
    reader = _Reader(question, counts)
    hits: dict[tuple[str, str, int], ChunkHit] = {}
    by_words_from = 1 if any(question.nearest_to) else 0
    for place, answer in enumerate(answers):
        for found in answer["hits"]["hits"]:
            source = found["_source"]
            key = (source["doc_id"], source["generation"], source["ordinal"])
            if key not in hits:
                hits[key] = reader.hit(source, engine.cosine(found["_score"]) if place < by_words_from else None)
    ordered = sorted(hits)
    nearest = sorted(ordered, key=lambda key: -hits[key].nearness)[: question.limit]
    best = sorted((key for key in ordered if hits[key].held), key=lambda key: -hits[key].lexical)[: question.limit]
    return SearchResult([hits[key] for key in dict.fromkeys([*nearest, *best])], counts.idf, counts.absent)


class _Reader:
    def __init__(self, question: Question, counts: Counts) -> None:
        self._question = question
        self._counts = counts
        self._vector = _Compared.of(question.vector)
        self._nearest_to = _Compared.of(question.nearest_to)

    def hit(self, source: Document, found_by: float | None) -> ChunkHit:
        """The hit; `found_by` is its cosine with the vector that was searched for, None when words found it."""
        if found_by is None:
            nearness = self._nearest_to.product(unpack(source["embedding"]))
        else:
            nearness = found_by * self._nearest_to.length
        identity = (DocId(source["doc_id"]), Generation(source["generation"]), source["file_path"], source["ordinal"])
        occurrences = self._occurrences(source["terms"])
        length, mean_length = source["length"], self._counts.mean_length
        lexical = sum(
            (self._counts.idf[word] * saturation(count, length, mean_length) for word, count in occurrences.items()),
            0.0,
        )
        compare = partial(self._similarity, source, None if self._question.is_centred else found_by)
        return ChunkHit(*identity, source["text"], nearness, lexical, frozenset(occurrences), compare)

    def _similarity(self, source: Document, known: float | None) -> float:
        # Not before somebody asks: most hits are only ranked.
        return known if known is not None else min(1.0, max(-1.0, self._vector.product(unpack(source["embedding"]))))

    def _occurrences(self, stored: str) -> Mapping[str, int]:
        """How often each of the query's terms that a chunk with the terms `stored` holds is in it."""
        # Most chunks hold few of the words, and looking for a piece of text is much quicker than taking it apart.
        present = [word for word in self._counts.idf if word in stored]
        if not present:
            return {}
        apart = f" {stored} ".replace(" ", "  ")
        return {word: count for word in present if (count := apart.count(f" {word} "))}


@dataclass(frozen=True, slots=True)
class _Compared:
    """A vector that is multiplied with many of unit length, or of zeros.

    By way of their distance, which Python computes without making a number of each element.
    """

    vector: Vector
    length: float

    @classmethod
    def of(cls, vector: Vector) -> "_Compared":
        return cls(vector, math.hypot(*vector))

    def product(self, unit: Vector) -> float:
        return (self.length**2 + 1.0 - math.dist(unit, self.vector) ** 2) / 2.0 if any(unit) else 0.0
