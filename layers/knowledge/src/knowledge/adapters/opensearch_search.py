"""One search by vector and by words in OpenSearch: a single `_msearch`, and reading its answers.

Candidates are chosen by OpenSearch; the numbers on them are computed here from what it stores, so that they are those
of the other stores: BM25 from exact counts, not Lucene's rounded lengths.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knowledge.adapters.opensearch_calls import OPENSEARCH, IndexAbsentError, error_type, refusal
from knowledge.adapters.opensearch_index import SPACED, UNSPACED, Document, Engine, unpack
from knowledge.adapters.opensearch_nearness import CentredQuery, dot, unit_dot, within
from knowledge.domain.document import DocId, Generation
from knowledge.errors import DependencyUnavailable
from knowledge.ports import ChunkHit, SearchResult, Vector
from knowledge.retrieval.bm25 import idf, saturation
from knowledge.retrieval.relevance import MIN_CHUNKS_FOR_A_MEAN
from knowledge.retrieval.terms import terms

# Candidates that the graph search keeps; with more it misses fewer of the nearest. Source: OpenSearch documentation,
# "k-NN query": engine lucene searches with k, and faiss with ef_search, 100 by default.
_MIN_CANDIDATES = 100
# Source: OpenSearch documentation, `indices.query.bool.max_clause_count`: 1,024 clauses by default.
_MAX_MATCHED_TERMS = 1000
_SHOWN = ("doc_id", "generation", "file_path", "ordinal", "text", "script", "terms", "length")


class UnfitSearchError(Exception):
    """The index does not take such a search: most likely its vectors have another length; stays inside the adapter."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched for."""

    query: str
    vector: Vector
    square: float
    """Of the vector's length."""
    limit: int
    words: tuple[str, ...]
    """The distinct terms of `query`."""

    @classmethod
    def of(cls, query: str, vector: Vector, limit: int) -> "Question":
        """With the query taken apart."""
        return cls(query, vector, dot(vector, vector), limit, tuple(dict.fromkeys(terms(query))))


@dataclass(frozen=True, slots=True)
class Counts:
    """What is known of all chunks of the index, exactly."""

    by_script: Mapping[str, int]
    mean_length: float
    idf: Mapping[str, float]

    @property
    def has_two_languages(self) -> bool:
        """True when each kind of script has enough chunks to speak of its mean."""
        return min(self.by_script.get(script, 0) for script in (SPACED, UNSPACED)) >= MIN_CHUNKS_FOR_A_MEAN


def searches(question: Question, centred: CentredQuery | None) -> list[Document]:
    """The bodies of the `_msearch`, the counts first.

    With `centred`, the nearest are searched for as they will be ordered, and every candidate's vector is asked for.
    """
    found = [_counts(question.words)]
    if any(question.vector):
        k = max(question.limit, _MIN_CANDIDATES)
        for script in (SPACED, UNSPACED):
            wanted = centred.probes[script].vector if centred else question.vector
            near = {"vector": list(wanted), "k": k, "filter": {"term": {"script": script}}}
            shown = [*_SHOWN, "embedding"] if centred else list(_SHOWN)
            found.append({"size": question.limit, "_source": shown, "query": {"knn": {"vector": near}}})
    if question.words:
        match = {"terms": {"query": " ".join(question.words[:_MAX_MATCHED_TERMS])}}
        found.append({"size": question.limit, "_source": [*_SHOWN, "embedding"], "query": {"match": match}})
    return found


def _counts(words: Sequence[str]) -> Document:
    asked: Document = {"mean_length": {"avg": {"field": "length"}}, "scripts": {"terms": {"field": "script"}}}
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
    return Counts(
        by_script={bucket["key"]: bucket["doc_count"] for bucket in asked["scripts"]["buckets"]},
        mean_length=asked["mean_length"]["value"] or 1.0,
        idf={word: idf(total, bucket["doc_count"]) for word, bucket in zip(words, buckets, strict=True)},
    )


def result_of(
    question: Question,
    counts: Counts,
    answers: Sequence[Document],
    engine: Engine,
    centred: CentredQuery | None,
) -> SearchResult:
    """The hits in the answers after the first, with all their numbers.

    A chunk that is stored twice, as a lost answer may leave it where there are no ids of one's own, is one hit.
    """
    reader = _Reader(question, counts, centred)
    hits: dict[tuple[str, str, int], ChunkHit] = {}
    by_words_from = 2 if any(question.vector) else 0
    for place, answer in enumerate(answers):
        for found in answer["hits"]["hits"]:
            source = found["_source"]
            key = (source["doc_id"], source["generation"], source["ordinal"])
            if key not in hits:
                hits[key] = reader.hit(source, engine.cosine(found["_score"]) if place < by_words_from else None)
    ordered = [hit for _, hit in sorted(hits.items())]
    nearest = sorted(ordered, key=lambda hit: -hit.nearness)[: question.limit]
    best = sorted((hit for hit in ordered if hit.lexical), key=lambda hit: -hit.lexical)[: question.limit]
    return SearchResult(list(dict.fromkeys([*nearest, *best])), counts.idf)


@dataclass(frozen=True, slots=True)
class _Reader:
    question: Question
    counts: Counts
    centred: CentredQuery | None

    def hit(self, source: Document, found_by: float | None) -> ChunkHit:
        """The hit; `found_by` is its cosine with the vector that was searched for, None when words found it."""
        centred = 0.0
        if self.centred is not None:
            similarity, centred = self.centred.cosines(unpack(source["embedding"]), source["script"], found_by)
        elif found_by is not None:
            similarity = found_by
        else:
            similarity = within(unit_dot(unpack(source["embedding"]), self.question.vector, self.question.square))
        identity = (DocId(source["doc_id"]), Generation(source["generation"]), source["file_path"], source["ordinal"])
        occurrences = self._occurrences(source["terms"])
        length, mean_length = source["length"], self.counts.mean_length
        lexical = sum(
            (self.counts.idf[word] * saturation(count, length, mean_length) for word, count in occurrences.items()), 0.0
        )
        held = frozenset(occurrences)
        return ChunkHit(*identity, source["text"], similarity, similarity + centred, lexical, held)

    def _occurrences(self, stored: str) -> Mapping[str, int]:
        """How often each of the query's terms that a chunk with the terms `stored` holds is in it."""
        # Most chunks hold few of the words, and looking for a piece of text is much quicker than taking it apart.
        present = [word for word in self.counts.idf if word in stored]
        if not present:
            return {}
        words = stored.split(" ")
        return {word: count for word in present if (count := words.count(word))}
