"""A query that very many keywords contain: its first match is found without the others, and is the right one."""

import tracemalloc
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.domain.document import KnowledgeEntry
from knowledge.domain.text import is_word_character
from knowledge.retrieval import layers, matches, word_starts
from knowledge.retrieval.catalog_index import CatalogIndex
from knowledge.retrieval.matches import Match, rank_containing, rank_inside
from knowledge.retrieval.weak_keywords import is_weak
from knowledge.retrieval.word_starts import joins


def entry(name: str, *keywords: str) -> KnowledgeEntry:
    return KnowledgeEntry(f"kb/{name}.md", name, keywords)


def paths(found: Iterable[Match]) -> list[str]:
    return [match.entry.file_path for match in found]


def ranked(index: CatalogIndex, query: str) -> list[str]:
    return paths(index.match(query).most_specific_first())


def by_definition(entries: Iterable[KnowledgeEntry], query: str, most_counted: int) -> list[str]:
    """The paths of what `query` hits, most specific first, as design section 5 has it."""
    found = list(CatalogIndex(entries).match(query))
    are_too_many = sum(len(match.containing) for match in found) > most_counted

    def specificity(match: Match) -> tuple[object, ...]:
        ranks = [rank_inside(keyword, weak=match.weak_by_keyword[keyword]) for keyword in match.inside]
        ranks += [
            rank_containing(weak=is_weak(match.query) or not holds_as_words(keyword, match.query))
            for keyword in match.containing
        ]
        return min(ranks), 0 if are_too_many else -len(ranks), match.entry.file_path

    return paths(sorted(found, key=specificity))


def holds_as_words(keyword: str, text: str) -> bool:
    """True when `text` is somewhere in `keyword` from a word's start to a word's end."""
    return any(
        keyword.startswith(text, start)
        and not (start and joins(keyword[start - 1], text[0]))
        and not joins(text[-1], keyword[start + len(text) : start + len(text) + 1] or " ")
        for start in range(len(keyword))
    )


# So few that most of them have the query somewhere, some more than once.
_QUERIES = st.sampled_from(["aa", "a1", "支支", "a支", "a a", "a_", "of"])
_TEXTS = st.lists(_QUERIES | st.sampled_from(["a", " ", "_", "支"]), min_size=1, max_size=4).map("".join)
_DOCUMENTS = st.none() | st.lists(_TEXTS, max_size=5)
_STEPS = st.lists(st.dictionaries(st.sampled_from("abcdefgh"), _DOCUMENTS, min_size=1, max_size=8), max_size=8)


@pytest.mark.parametrize("most_counted", [0, 1, 3, matches.MOST_COUNTED])
@given(steps=_STEPS, query=_QUERIES, most=st.integers(0, 10))
def test_matches_are_counted_and_ranked_as_defined_on_either_side_of_the_bound(
    most_counted: int, steps: list[dict[str, list[str] | None]], query: str, most: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(matches, "MOST_COUNTED", most_counted)
        # So that runs go over several blocks, and begin and end inside others.
        patched.setattr(word_starts, "_BLOCK", 2)
        # So that layers are seldom merged, and hide documents.
        patched.setattr(layers, "_MAX_SHARE", 3)
        patched.setattr(layers, "_MAX_HIDDEN_SHARE", 0.9)
        index, held = CatalogIndex(), dict[str, KnowledgeEntry | None]()
        for step in steps:
            latest = {f"kb/{name}.md": words and entry(name, *words) for name, words in step.items()}
            index = index.changed({path: changed or None for path, changed in latest.items()})
            held |= {path: changed or None for path, changed in latest.items()}
        expected = by_definition(filter(None, held.values()), query, most_counted)
        assert index.match(query).count(most) == min(len(expected), most)
        assert ranked(index, query) == expected
        assert paths(index.match(query)) == sorted(expected)


MANY = matches.MOST_COUNTED


def test_the_document_with_the_most_keywords_leads_up_to_500_keywords_and_the_first_one_beyond() -> None:
    entries = [*(entry(f"{n:04}", f"gateway {n}") for n in range(MANY - 2)), entry("a", "gateway")]
    entries.append(entry("z", "gateway and gateways", "my gateway"))
    assert ranked(CatalogIndex(entries), "gateway")[:2] == ["kb/a.md", "kb/z.md"]
    assert ranked(CatalogIndex([*entries, entry("y", "my gateway")]), "gateway")[:2] == ["kb/a.md", "kb/0000.md"]


def test_one_document_with_thousands_of_such_keywords_is_one() -> None:
    index = CatalogIndex([entry("a", *(f"gateway {n}" for n in range(3 * MANY)))])
    assert index.match("gateway").count(2) == len(index.match("gateway")) == 1


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("gateway", "kb/other.md"),
        ("my gateway", "kb/other.md"),
        ("gateways", "kb/0000.md"),
    ],
)
def test_a_keyword_that_is_the_query_and_whole_words_lead_beyond_the_bound_too(other: str, expected: str) -> None:
    index = CatalogIndex([*(entry(f"{n:04}", f"gateways {n}") for n in range(MANY + 1)), entry("other", other)])
    assert ranked(index, "gateway")[0] == expected
    assert ranked(index, "gateway") == [expected, *sorted({*paths(index.match("gateway"))} - {expected})]


def test_documents_that_changed_or_went_do_not_lead_any_more() -> None:
    index = CatalogIndex(entry(f"{n:05}", f"gateway {n}") for n in range(3 * MANY))
    index = index.changed({"kb/00000.md": None, "kb/00001.md": entry("00001", "vpn")})
    assert ranked(index, "gateway")[0] == "kb/00002.md"
    index = index.changed({"kb/00001.md": entry("00001", "the gateway"), "kb/a.md": entry("a", "gateway")})
    assert ranked(index, "gateway")[:2] == ["kb/a.md", "kb/00001.md"]
    assert index.match("gateway").count(100) == 100
    assert len(index.match("gateway")) == 3 * MANY


def test_the_first_document_is_the_first_of_all_blocks_whose_first_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matches, "MOST_COUNTED", 0)
    monkeypatch.setattr(word_starts, "_BLOCK", 2)
    keywords = {"0": "gateway a", "2": "gateway b", "1": "gateway c", "3": "gateway d"}
    index = CatalogIndex(entry(name, keyword) for name, keyword in keywords.items())
    assert ranked(index.changed({"kb/0.md": None, "kb/1.md": None}), "gateway") == ["kb/2.md", "kb/3.md"]


def peak_bytes(work: Callable[[], object]) -> int:
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("query", ["gateway", "gate"])
@pytest.mark.parametrize("is_first_gone", [False, True])
def test_what_a_lookup_asks_takes_no_more_memory_for_ten_times_the_hits(query: str, is_first_gone: bool) -> None:
    def asked(index: CatalogIndex) -> None:
        found = index.match(query)
        assert found.count(100) == 100
        assert next(found.most_specific_first()).entry.file_path == f"kb/{int(is_first_gone):05}.md"

    few, many = (CatalogIndex(entry(f"{n:05}", f"gateway {n}") for n in range(count)) for count in (2_000, 20_000))
    if is_first_gone:
        few, many = (index.changed({"kb/00000.md": None}) for index in (few, many))
    assert peak_bytes(lambda: asked(many)) < 1.2 * peak_bytes(lambda: asked(few))


def test_characters_taken_for_alike_are_all_of_words_or_all_not() -> None:
    for alike in word_starts._ALIKE:
        chars = [chr(code) for code in range(ord(alike[0]), ord(alike[1]) + 1)]
        assert len({(joins("a", char), is_word_character(char), len(char.encode())) for char in chars}) == 1
