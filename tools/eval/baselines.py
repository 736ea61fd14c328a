"""What the knowledge base is compared with: plain vectors, BM25, their fusion, grep. None of it is the product's code.

Source: the published baselines these repeat are a multilingual-e5-small, BM25 with k1 1.2 and b 0.75 and jieba for
Chinese, both over title and text, and reciprocal rank fusion with k 60.
"""

import logging
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from knowledge.ports import Embedder
from tools.eval.sets import Document, Query

with warnings.catch_warnings():
    # Regular expressions in its source are written so that newer Pythons warn.
    warnings.simplefilter("ignore")
    import bm25s
    import jieba

jieba.setLogLevel(logging.WARNING)

WordsOf = Callable[[str], list[str]]

# Source: Cormack, Clarke and Büttcher 2009.
RRF_K = 60
# How far down the two rankings are fused. Source: own choice; ten times what is measured.
_FUSED_DEPTH = 100
# A longer document is compared piece by piece, its best piece counting: a model reads some 500 tokens.
_PIECE_CHARS = 1500

_WORD = re.compile(r"\w+")
_HAN = re.compile("[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class Found:
    """What a system makes of one query."""

    ranked: Sequence[str]
    """Ids of documents, best first; those that the system takes for no hit at all are left out."""
    score: float
    """How much speaks for there being an answer; orders the queries of one set."""
    margin: float | None = None
    """How far the best hit's score is above the second one's, where that is looked at."""
    is_answer: bool | None = None
    """The system's own decision, where it makes one."""


class System(Protocol):
    """Anything that ranks the documents of one set."""

    def find(self, query: Query) -> Found:
        """What it finds."""


class Dense:
    """Cosine of the embedder's vectors; nothing else."""

    def __init__(self, documents: Sequence[Document], embedder: Embedder) -> None:
        """Embeds every document."""
        pieces = [(at, piece) for at, document in enumerate(documents) for piece in passages(document)]
        self._ids = [document.id for document in documents]
        self._owners = np.array([at for at, _ in pieces])
        self._matrix = np.array(embedder.embed_passages([piece for _, piece in pieces]))
        self._embedder = embedder

    def find(self, query: Query) -> Found:
        """See System."""
        scores = np.full(len(self._ids), -np.inf)
        np.maximum.at(scores, self._owners, self._matrix @ np.array(self._embedder.embed_query(query.text)))
        return _found(self._ids, scores, above=-np.inf)


class Bm25:
    """BM25 over words."""

    def __init__(self, documents: Sequence[Document], words_of: WordsOf) -> None:
        """Indexes title and text of every document."""
        self._ids = [document.id for document in documents]
        self._words_of = words_of
        words = [words_of(whole_text(document)) for document in documents]
        self._index = bm25s.BM25(k1=1.2, b=0.75, method="lucene") if any(words) else None
        if self._index is not None:
            self._index.index(words, show_progress=False)

    def find(self, query: Query) -> Found:
        """See System; a document that holds no word of the query is no hit."""
        words = self._words_of(query.text)
        if self._index is None or not words:
            return Found([], 0.0, 0.0)
        return _found(self._ids, self._index.get_scores(words), above=0.0)


class Grep:
    """Counts the distinct words of the query that stand literally in the document; ties in the order of the set."""

    def __init__(self, documents: Sequence[Document], words_of: WordsOf) -> None:
        """Keeps title and text of every document in lower case."""
        self._words_of = words_of
        self._ids = [document.id for document in documents]
        self._texts = [whole_text(document).lower() for document in documents]

    def find(self, query: Query) -> Found:
        """See System."""
        words = set(self._words_of(query.text))
        scores = np.array([sum(word in text for word in words) for text in self._texts], dtype=np.float64)
        return _found(self._ids, scores, above=0.0)


class Rrf:
    """Reciprocal rank fusion of other systems."""

    def __init__(self, *systems: System) -> None:
        """Each of `systems` counts the same."""
        self._systems = systems

    def find(self, query: Query) -> Found:
        """See System."""
        scores = fused([system.find(query).ranked for system in self._systems])
        ranked = sorted(scores, key=lambda doc_id: -scores[doc_id])
        best, second = (*(scores[doc_id] for doc_id in ranked[:2]), 0.0, 0.0)[:2]
        return Found(ranked, best, best - second)


def fused(rankings: Sequence[Sequence[str]]) -> dict[str, float]:
    """The sum of 1 / (60 + place) over the rankings for each document in one of them."""
    scores: dict[str, float] = {}
    for ranked in rankings:
        for place, doc_id in enumerate(ranked[:_FUSED_DEPTH], start=1):
            scores[doc_id] = scores.get(doc_id, 0.0) + 1 / (RRF_K + place)
    return scores


def words_for(texts: Iterable[str]) -> WordsOf:
    """What parts a text into words, in lower case: jieba for all texts when one of them holds Chinese."""
    return _chinese_words if any(map(_HAN.search, texts)) else _words


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _chinese_words(text: str) -> list[str]:
    return [word for word in jieba.cut(text.lower()) if any(map(str.isalnum, word))]


def whole_text(document: Document) -> str:
    """Title and text, as every baseline reads them."""
    return f"{document.title}\n\n{document.text}".strip()


def passages(document: Document) -> list[str]:
    """What is embedded of a document: all of it, or its pieces, cut at line ends, when it is long."""
    pieces = [""]
    for line in document.text.splitlines(keepends=True):
        if pieces[-1] and len(pieces[-1]) + len(line) > _PIECE_CHARS:
            pieces.append("")
        pieces[-1] += line
    return [f"{document.title}\n\n{piece}".strip() for piece in pieces]


def _found(ids: Sequence[str], scores: "np.ndarray[Any, np.dtype[np.float64]]", *, above: float) -> Found:
    order = [int(at) for at in np.argsort(-scores, kind="stable")[:_FUSED_DEPTH] if scores[at] > above]
    best, second = (*(float(scores[at]) for at in order[:2]), 0.0, 0.0)[:2]
    return Found([ids[at] for at in order], best, best - second)
