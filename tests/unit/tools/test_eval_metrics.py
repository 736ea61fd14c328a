"""The figures of the evaluation against values worked out by hand."""

import math

import pytest

from tools.eval.baselines import Found, fused
from tools.eval.evaluation import quality
from tools.eval.metrics import auroc, ndcg, percentile, precision_and_recall, recall, reciprocal_rank
from tools.eval.sets import HELD_OUT, TUNING, Query


def test_recall_counts_the_relevant_documents_among_the_first() -> None:
    assert recall(["a", "x", "b", "c"], {"a": 1, "b": 1, "c": 1, "d": 1}, depth=3) == 0.5
    assert recall([], {"a": 1}, depth=3) == 0.0


def test_the_reciprocal_rank_is_that_of_the_first_relevant_document() -> None:
    assert reciprocal_rank(["x", "y", "a", "b"], {"a": 1, "b": 1}, depth=10) == pytest.approx(1 / 3)
    assert reciprocal_rank(["x", "y", "a"], {"a": 1}, depth=2) == 0.0


def test_ndcg_of_one_relevant_document_depends_on_its_place() -> None:
    assert ndcg(["a", "x"], {"a": 1}, depth=10) == 1.0
    assert ndcg(["x", "y", "a"], {"a": 1}, depth=10) == pytest.approx(0.5)
    assert ndcg([*"0123456789", "a"], {"a": 1}, depth=10) == 0.0


def test_ndcg_weighs_gains_and_divides_by_the_best_order() -> None:
    # (1 + 3 / log2(3)) / (3 + 1 / log2(3))
    assert ndcg(["b", "a"], {"a": 3, "b": 1}, depth=10) == pytest.approx(0.79671, abs=1e-5)
    # Of three relevant documents one is found, second: (1 / log2(3)) / (1 + 1 / log2(3) + 1 / 2)
    assert ndcg(["x", "a"], {"a": 1, "b": 1, "c": 1}, depth=10) == pytest.approx(0.29608, abs=1e-5)


def test_auroc_counts_pairs_in_the_right_order_and_half_of_the_ties() -> None:
    # Pairs: 3>2, 3>1, 2=2, 2>1, of four.
    assert auroc([3.0, 2.0], [2.0, 1.0]) == 0.875
    assert auroc([math.inf, 1.0], [-math.inf]) == 1.0
    assert auroc([0.0], [0.0, 0.0]) == 0.5
    assert auroc([1.0], []) is None


def test_precision_and_recall_are_none_where_there_is_nothing_to_share() -> None:
    assert precision_and_recall([True, True, False, False], [True, False, True, False]) == (0.5, 0.5)
    assert precision_and_recall([False, False], [False, True]) == (None, 0.0)


def test_a_percentile_is_a_measured_value() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert (percentile(values, 50), percentile(values, 99), percentile([7.0], 99)) == (50.0, 99.0, 7.0)
    assert percentile([], 50) is None


def test_reciprocal_rank_fusion_adds_over_the_rankings() -> None:
    scores = fused([["a", "b"], ["b", "c"]])
    assert scores == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 62})


def test_a_query_is_in_the_same_half_whatever_else_there_is() -> None:
    halves = [Query(f"q{number}", "text", {}, True).half for number in range(1000)]
    assert halves == [Query(f"q{number}", "other", {"a": 1.0}, False).half for number in range(1000)]
    assert halves[:6] == [TUNING, HELD_OUT, TUNING, TUNING, HELD_OUT, TUNING]
    assert 450 < halves.count(HELD_OUT) < 550


def test_only_queries_with_an_answer_are_ranked_and_only_decisions_are_judged() -> None:
    queries = [Query("yes", "a", {"d": 1.0}, True), Query("no", "b", {}, False), Query("lost", "c", {"d": 1.0}, True)]
    found = {
        "yes": Found(["d"], 3.0, is_answer=True),
        "no": Found(["d"], 1.0, is_answer=False),
        "lost": Found([], 2.0, is_answer=False),
    }
    figures = quality(queries, found)
    assert (figures["ndcg@10"], figures["recall@3"], figures["mrr@10"], figures["auroc"]) == (0.5, 0.5, 0.5, 1.0)
    assert (figures["not_found_precision"], figures["not_found_recall"], figures["answered"]) == (0.5, 1.0, 0.5)
    undecided = quality(queries, {**found, "no": Found(["d"], 1.0)})
    assert (undecided["not_found_precision"], undecided["not_found_recall"], undecided["auroc"]) == (None, None, 1.0)
