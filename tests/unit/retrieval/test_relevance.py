"""What speaks for an answer, signal by signal."""

import math

import pytest

from knowledge.domain.document import DocId, Generation
from knowledge.ports import ChunkHit, SearchResult
from knowledge.retrieval.relevance import Comparison, Relevance, evidence_for_an_answer, unknown_names


def found(*absent: str, known: tuple[str, ...] = ()) -> SearchResult:
    return SearchResult([], dict.fromkeys((*known, *absent), 1.0), frozenset(absent))


def test_names_in_a_chinese_query_that_no_document_holds_are_unknown() -> None:
    assert unknown_names(found("tidb", known=("事务",))) == 1.0
    assert unknown_names(found("tidb", known=("事务", "err_timeout"))) == 0.5
    assert unknown_names(found("事务", known=("tidb",))) == 0.0
    assert unknown_names(found(known=("事务", "支持"))) == 0.0


def test_function_words_and_single_letters_are_no_names() -> None:
    assert unknown_names(found("the", "x", known=("事务",))) == 0.0


def test_the_words_of_a_query_without_chinese_are_no_names() -> None:
    assert unknown_names(found("kubernetes", known=("pods",))) == 0.0
    assert unknown_names(SearchResult([], {})) == 0.0


def test_coverage_is_of_the_words_that_say_something() -> None:
    held = frozenset({"the", "timeout"})
    hit = ChunkHit(DocId("d"), Generation("g"), "kb/a.md", 0, "text", 0.5, 1.0, held, lambda: 0.9)
    relevance = Comparison(SearchResult([hit], {"the": 0.1, "timeout": 1.9, "gateway": 2.0})).relevance(hit)
    assert (relevance.similarity, relevance.coverage, relevance.lexical) == (0.9, 0.5, 0.25)
    assert relevance.rank == pytest.approx(0.5 + 0.2 * 0.25)


def test_ranking_works_out_no_similarity() -> None:
    hit = ChunkHit(DocId("d"), Generation("g"), "kb/a.md", 0, "text", 0.5, 0.0, frozenset(), pytest.fail)
    assert Comparison(SearchResult([hit], {})).rank(hit) == 0.5


def relevance(rank: float, similarity: float = 0.9) -> Relevance:
    return Relevance(similarity, rank, 0.0, 0.0, rank)


def test_a_lead_speaks_for_an_answer_and_unknown_names_against_it() -> None:
    alike = [relevance(0.5)] * 6
    leading = [relevance(0.6), *alike]
    assert evidence_for_an_answer(alike, 0.0) == pytest.approx(0.9)
    assert evidence_for_an_answer(leading, 0.0) > evidence_for_an_answer(alike, 0.0)
    assert evidence_for_an_answer(leading, 0.0) > evidence_for_an_answer(leading, 1.0)
    assert evidence_for_an_answer([], 0.0) == -math.inf


def test_the_first_ten_documents_count() -> None:
    ten = [relevance(0.5)] * 10
    assert evidence_for_an_answer([*ten, relevance(0.1, similarity=1.0)], 0.0) == evidence_for_an_answer(ten, 0.0)
