import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.domain.document import KnowledgeEntry
from knowledge.domain.text import is_word_character, normalise
from knowledge.retrieval.catalog_index import CatalogIndex


def index_of(**keywords_by_path: list[str]) -> CatalogIndex:
    return CatalogIndex(KnowledgeEntry(path, path, tuple(keywords)) for path, keywords in keywords_by_path.items())


def paths(index: CatalogIndex, query: str) -> list[str]:
    return [match.entry.file_path for match in index.match(query)]


def ranked(index: CatalogIndex, query: str) -> list[str]:
    return [match.entry.file_path for match in index.match(query).most_specific_first()]


def test_a_query_that_contains_a_keyword_matches_D10() -> None:
    assert paths(index_of(a=["ERR_TIMEOUT"]), "出现ERR_TIMEOUT错误") == ["a"]


def test_a_query_contained_in_a_keyword_matches_from_two_characters_on_D10() -> None:
    index = index_of(a=["支付网关"])
    assert paths(index, "支付") == ["a"]
    assert paths(index, "支") == []


@pytest.mark.parametrize("query", ["err_timeout", "ＥＲＲ＿ＴＩＭＥＯＵＴ", "Err_Timeout?"])
def test_case_and_width_do_not_matter_D10(query: str) -> None:
    assert paths(index_of(a=["ERR_TIMEOUT"]), query) == ["a"]


def test_all_matches_come_in_key_order_D11() -> None:
    index = index_of(c=["vpn"], a=["vpn"], b=["vpn"], 中=["vpn"])
    assert paths(index, "vpn down") == ["a", "b", "c", "中"]
    assert paths(index, "printer") == []


@pytest.mark.parametrize("query", ["雾凇", "雾凇词库怎么用", "雾凇 词库", "词库"])
def test_chinese_keywords_are_found_inside_unspaced_text_E01(query: str) -> None:
    assert paths(index_of(a=["雾凇词库"]), query) == ["a"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("configuration", []),
        ("email is maintained", []),
        ("manageable category", []),
        ("c++ build", ["C++"]),
        ("asp.net vs .NET", [".NET"]),
        ("k8s", ["k8s"]),
        ("the man and his cat", ["cat", "man"]),
        ("io错误", ["io"]),
    ],
)
def test_letters_and_digits_match_on_word_boundaries_E03(query: str, expected: list[str]) -> None:
    index = index_of(**{word: [word] for word in ("io", "ai", "man", "cat", "C++", ".NET", "k8s")})
    assert sorted(paths(index, query)) == expected


@pytest.mark.parametrize(
    ("keyword", "query", "expected"),
    [
        ("1.1", "version 10.1.1 fails", False),
        ("1.10", "since 1.10.2", False),
        ("500", "1,500 users", False),
        ("10", "10.5 percent", False),
        ("-1", "PAY-1", False),
        ("-1", "exit code -1", True),
        ("500", "it answers 500, always", True),
        ("1.10", "since 1.10.", True),
        ("v2", "v2. Then", True),
        ("支付 API", "支付API怎么用", True),
        ("支付API", "支付 API 怎么用", True),
        ("e-mail", "the e\u2011mail was lost", True),
    ],
)
def test_numbers_and_spellings_are_taken_whole(keyword: str, query: str, expected: bool) -> None:
    assert bool(index_of(a=[keyword]).match(query)) is expected


def test_any_whole_word_in_a_keyword_makes_a_partial_hit_strong() -> None:
    (match,) = index_of(a=["payments pay"]).match("pay")
    assert not match.weak


def test_the_longest_keyword_wins_E03() -> None:
    index = index_of(a=["gpt-4o"], b=["gpt-4o-mini"])
    assert ranked(index, "is gpt-4o-mini cheaper") == ["b", "a"]


@pytest.mark.parametrize("code", ["C2065", "LNK2001", "PAY-2003", "ORA-00001", "ERR_TIMEOUT", "0x80070005"])
def test_the_code_in_a_message_decides_and_not_its_words(code: str) -> None:
    index = index_of(a=["undeclared identifier"], b=[code], c=["error"])
    (match, *_) = index.match(f"error {code}: undeclared identifier").most_specific_first()
    assert (match.entry.file_path, match.weak) == ("b", False)


@pytest.mark.parametrize("name", ["utf8", "int32", "http2", "size_t", "3000", "v2"])
def test_a_name_with_digits_is_no_code(name: str) -> None:
    assert ranked(index_of(a=["connection pool"], b=[name]), f"connection pool with {name}")[0] == "a"


def test_the_order_of_specificity_is_equal_inside_containing_and_more_keywords() -> None:
    index = index_of(a=["timeout of the gateway"], b=["timeout"], c=["timeout", "gateway timeout"], d=["gateway"])
    assert ranked(index, "gateway timeout")[0] == "c"
    assert ranked(index, "timeout") == ["c", "b", "a"]


def test_ties_are_broken_by_key_order() -> None:
    assert ranked(index_of(b=["vpn"], a=["vpn"]), "vpn") == ["a", "b"]


@pytest.mark.parametrize("keyword", ["for", "do", "?", "x", "7", "的", "怎么", "what is", "::"])
def test_weak_keywords_match_but_are_weak(keyword: str) -> None:
    (match,) = index_of(a=[keyword]).match(f"what is {keyword} 怎么 for")
    assert match.weak


def test_a_strong_keyword_beside_a_weak_one_makes_the_match_strong() -> None:
    (match,) = index_of(a=["for", "vpn"]).match("vpn for mac")
    assert not match.weak


def test_a_weak_match_comes_after_every_strong_one() -> None:
    assert ranked(index_of(a=["for the"], b=["vpn"]), "vpn for the mac") == ["b", "a"]


def test_the_front_of_a_word_matches_weakly_and_its_middle_not_at_all() -> None:
    index = index_of(a=["configuration"])
    (match,) = index.match("config")
    assert match.weak
    assert not index.match("figuration")


def test_underscores_part_words_when_a_keyword_contains_the_query() -> None:
    (match,) = index_of(a=["ERR_TIMEOUT"]).match("timeout")
    assert not match.weak


def test_blank_keywords_never_match() -> None:
    assert paths(index_of(a=["", " ", "\u200b"]), "anything at all") == []


def test_an_empty_index_matches_nothing() -> None:
    assert CatalogIndex(()).match("anything")[:] == []


_LETTERS = st.text(alphabet="ab_1 支付-.,A", min_size=0, max_size=8)


@given(keywords=st.lists(_LETTERS, max_size=6), query=_LETTERS)
def test_the_automaton_finds_what_the_plain_scan_finds(keywords: list[str], query: str) -> None:
    index = CatalogIndex(KnowledgeEntry(f"{n}", "t", (keyword,)) for n, keyword in enumerate(keywords))
    text = normalise(query)
    found = {match.entry.file_path for match in index.match(query) if match.inside}
    assert found == {f"{n}" for n, keyword in enumerate(keywords) if _occurs(normalise(keyword), text)}


def _occurs(keyword: str, text: str) -> bool:
    for start in range(len(text) - len(keyword) + 1 if keyword else 0):
        end = start + len(keyword)
        if text[start:end] == keyword and not _cut(text[:start], keyword) and not _cut(text[end:][::-1], keyword[::-1]):
            return True
    return False


def _cut(before: str, keyword: str) -> bool:
    """A word or number that ends in `before` goes on in `keyword`."""
    if not before:
        return False
    if is_word_character(before[-1]) and (is_word_character(keyword[0]) or keyword[0] == "-"):
        return True
    return keyword[0].isdigit() and before[-1] in ".," and before[-2:-1].isdigit()
