"""Okapi BM25 in the form that Lucene uses: one term adds at most its idf."""

import math

# Source: Robertson and Zaragoza, The Probabilistic Relevance Framework (2009), and the defaults of Lucene.
K1 = 1.2
B = 0.75


def idf(chunk_count: int, with_term: int) -> float:
    """Weight of a term that `with_term` of `chunk_count` chunks hold; always positive."""
    return math.log(1 + (chunk_count - with_term + 0.5) / (with_term + 0.5))


def saturation(occurrences: int, length: int, mean_length: float) -> float:
    """The share of its idf that a term adds to a chunk of `length` terms in which it occurs so often; 0 to 1."""
    return occurrences / (occurrences + K1 * (1 - B + B * length / mean_length))
