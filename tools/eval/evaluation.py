"""One set through every system: who ranks what, and the figures of each."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tools.eval.baselines import Bm25, Dense, Found, Grep, Rrf, System, passages, whole_text, words_for
from tools.eval.embedding_cache import CachedEmbedder
from tools.eval.metrics import auroc, mean, ndcg, percentile, precision_and_recall, recall, reciprocal_rank, share
from tools.eval.ours import KnowledgeBase
from tools.eval.sets import HELD_OUT, TUNING, Query, RetrievalSet
from tools.eval.stores import store

SYSTEMS = ("ours", "dense", "bm25", "rrf", "grep")
Figures = Mapping[str, float | None]
"""A system's figures by name, such as `ndcg@10`; None where there is nothing to measure."""

# Queries embedded anew to measure the model, which the cache would hide. Source: own choice; p99 is then their slowest.
_EMBED_SAMPLE = 50
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Report:
    """What was measured on one set."""

    name: str
    documents: int
    queries: int
    unanswerable: int
    skipped: int
    figures: Mapping[str, Figures]
    """By system, in the order of SYSTEMS."""


def evaluate(retrieval_set: RetrievalSet, embedder: CachedEmbedder, store_name: str) -> Report:
    """Every system's figures on the set.

    Raises:
        Problem: the product refuses a document, or its store is not there.
    """
    documents, queries = retrieval_set.documents, retrieval_set.queries
    with _progress(retrieval_set.name) as shown, store(store_name, embedder.dimension) as make_store:
        pieces = [piece for document in documents for piece in passages(document)]
        for text in _track(shown, "embedding documents", embedder.missing("passage", pieces)):
            embedder.embed_passages([text])
        for text in _track(shown, "embedding queries", embedder.missing("query", [query.text for query in queries])):
            embedder.embed_query(text)
        words_of = words_for([*map(whole_text, documents), *(query.text for query in queries)])
        base = KnowledgeBase(embedder, make_store)
        dense, bm25 = Dense(documents, embedder), Bm25(documents, words_of)
        for document in _track(shown, "indexing", documents):
            base.upload(document)
        base.calibrate()
        systems: Mapping[str, System] = {
            "ours": base,
            "dense": dense,
            "bm25": bm25,
            "rrf": Rrf(dense, bm25),
            "grep": Grep(documents, words_of),
        }
        figures: dict[str, Figures] = {}
        for name in SYSTEMS:
            found = {query.id: systems[name].find(query) for query in _track(shown, f"asking {name}", queries)}
            figures[name] = quality(queries, found)
        sample = embedder.measure([query.text for query in queries[:_EMBED_SAMPLE]])
        figures["ours"] = {**figures["ours"], **_own(base, queries, sample)}
    unanswerable = sum(not query.answerable for query in queries)
    return Report(retrieval_set.name, len(documents), len(queries), unanswerable, retrieval_set.skipped, figures)


def quality(queries: Sequence[Query], found: Mapping[str, Found]) -> Figures:
    """The figures of one system from what it found, by query id."""
    judged = [query for query in queries if query.relevant]
    gain = {query.id: ndcg(found[query.id].ranked, query.relevant, depth=10) for query in judged}
    figures: dict[str, float | None] = {
        "ndcg@10": mean(list(gain.values())),
        f"ndcg@10/{TUNING}": mean([gain[query.id] for query in judged if query.half == TUNING]),
        f"ndcg@10/{HELD_OUT}": mean([gain[query.id] for query in judged if query.half == HELD_OUT]),
        "recall@3": mean([recall(found[query.id].ranked, query.relevant, depth=3) for query in judged]),
        "mrr@10": mean([reciprocal_rank(found[query.id].ranked, query.relevant, depth=10) for query in judged]),
    }
    for suffix, half in (("", None), (f"/{TUNING}", TUNING), (f"/{HELD_OUT}", HELD_OUT)):
        chosen = [query for query in queries if half in (None, query.half)]
        figures[f"auroc{suffix}"] = _auroc(chosen, {query.id: found[query.id].score for query in chosen})
    margins = {query_id: one.margin for query_id, one in found.items() if one.margin is not None}
    figures["auroc/margin"] = _auroc(queries, margins) if margins else None
    return {**figures, **_decision(queries, found)}


def _decision(queries: Sequence[Query], found: Mapping[str, Found]) -> Figures:
    """How good the system's own decision is; nothing for one that always answers."""
    names = ("not_found_precision", "not_found_recall", "answered")
    if any(found[query.id].is_answer is None for query in queries):
        return dict.fromkeys(names)
    refused = [not found[query.id].is_answer for query in queries]
    precision, refusal = precision_and_recall(refused, [not query.answerable for query in queries])
    answerable = [not no for query, no in zip(queries, refused, strict=True) if query.answerable]
    has_both = len(answerable) < len(queries)
    return {
        "not_found_precision": precision if has_both else None,
        "not_found_recall": refusal,
        "answered": share(sum(answerable), len(answerable)),
    }


def averages(reports: Sequence[Report]) -> Mapping[str, Figures]:
    """The mean of each figure over the sets that have it, each set counting the same."""
    names = list(dict.fromkeys(name for report in reports for name in report.figures["ours"]))
    return {
        system: {
            name: mean([value for report in reports if (value := report.figures[system].get(name)) is not None])
            for name in names
        }
        for system in SYSTEMS
    }


def _own(base: KnowledgeBase, queries: Sequence[Query], embed_ms: Sequence[float]) -> Figures:
    """What only the product has: its semantic tier alone, vector calls avoided, time by stage."""
    semantic = [
        ndcg(base.semantic[query.id], query.relevant, depth=10)
        for query in queries
        if query.relevant and query.id in base.semantic
    ]
    figures = {
        "ndcg@10/semantic": mean(semantic),
        "vector_calls_avoided": base.certain_share,
        "certain_precision": base.certain_precision,
    }
    for stage, elapsed_ms in {"embed": embed_ms, **base.stages_ms}.items():
        figures |= {f"{stage}_ms/p50": percentile(elapsed_ms, 50), f"{stage}_ms/p99": percentile(elapsed_ms, 99)}
    return figures


def _auroc(queries: Sequence[Query], scores: Mapping[str, float]) -> float | None:
    answerable = [scores[query.id] for query in queries if query.answerable]
    return auroc(answerable, [scores[query.id] for query in queries if not query.answerable])


def _progress(name: str) -> Progress:
    return Progress(
        TextColumn(f"{name}: {{task.description}}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
    )


def _track(shown: Progress, description: str, items: Sequence[_Item]) -> Iterable[_Item]:
    return shown.track(items, total=len(items), description=description) if items else ()
