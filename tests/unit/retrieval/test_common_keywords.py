"""A word that many other documents have inside longer keywords tells none apart."""

import pytest

from knowledge.domain.document import KnowledgeEntry
from knowledge.retrieval.catalog_index import CatalogIndex


def entry(name: str, *keywords: str) -> KnowledgeEntry:
    return KnowledgeEntry(f"kb/{name}.md", name, keywords)


def others(count: int, keyword: str) -> list[KnowledgeEntry]:
    return [entry(f"other-{n:03}", keyword.format(n)) for n in range(count)]


def is_weak(index: CatalogIndex, query: str) -> bool:
    (match,) = index.match(query)
    return match.weak


@pytest.mark.parametrize(("count", "expected"), [(0, False), (4, False), (5, True), (300, True)])
def test_a_keyword_inside_those_of_five_other_documents_does_not_decide_alone(count: int, expected: bool) -> None:
    index = CatalogIndex([entry("time", "time"), *others(count, "time zone {}")])
    assert is_weak(index, "what time does the train leave") is expected


def test_a_common_keyword_that_is_the_query_decides() -> None:
    index = CatalogIndex([entry("time", "time"), *others(50, "runtime {} library")])
    assert not is_weak(index, "time")
    assert not next(
        iter(CatalogIndex([entry("time", "time"), *others(50, "time {}")]).match("Time").most_specific_first())
    ).weak


def test_a_longer_keyword_beside_the_common_one_decides() -> None:
    index = CatalogIndex([entry("time", "time", "summer time"), *others(50, "time zone {}")])
    assert not is_weak(index, "when does summer time begin")


@pytest.mark.parametrize("longer", ["runtime {}", "times {}", "ERR_time_{}", "time"])
def test_only_whole_words_of_longer_keywords_count(longer: str) -> None:
    index = CatalogIndex([entry("time", "time"), *others(50, longer)])
    assert not any(match.weak for match in index.match("what time does the train leave"))


def test_the_keywords_of_the_document_itself_do_not_count() -> None:
    index = CatalogIndex([entry("time", "time", *(f"time zone {n}" for n in range(50)))])
    assert not is_weak(index, "what time does the train leave")


def test_a_document_with_several_such_keywords_counts_once() -> None:
    index = CatalogIndex([entry("time", "time"), *(entry(f"{n}", f"time {n}", f"{n} time") for n in range(4))])
    assert not is_weak(index, "what time does the train leave")


def test_in_chinese_no_blank_is_needed() -> None:
    index = CatalogIndex([entry("支付", "支付"), *others(5, "支付网关{}号")])
    assert is_weak(index, "支付失败怎么处理")


def test_what_changed_since_counts_too() -> None:
    index = CatalogIndex([entry("time", "time"), *others(200, "vpn {}")])
    for n in range(5):
        assert not is_weak(index, "what time does the train leave")
        index = index.changed({f"kb/other-{n:03}.md": entry(f"other-{n:03}", f"time zone {n}")})
    assert is_weak(index, "what time does the train leave")
    assert not is_weak(index.changed({"kb/other-003.md": None}), "what time does the train leave")
