"""A catalog's index after changes, and after it was stored, is the one that would be built at once."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.domain.document import KnowledgeEntry
from knowledge.errors import CorruptState
from knowledge.retrieval import index_dump
from knowledge.retrieval.catalog_index import CatalogIndex

_PATHS = st.sampled_from([f"kb/{name}.md" for name in ("a", "b", "c", "d", "支付", "é", "😀", "\ud800")])
_KEYWORDS = st.sampled_from(
    [
        "vpn",
        "vpn client",
        "the",
        "time",
        "time zone",
        "zone",
        "支付",
        "支付网关",
        "ERR_TIME",
        "1.1",
        "10.1.1",
        "",
        "\ud800",
    ]
)
_ENTRIES = st.builds(
    KnowledgeEntry,
    file_path=_PATHS,
    title=st.sampled_from(["A", '题"\n', "\ud800"]),
    keywords=st.lists(_KEYWORDS, max_size=4).map(tuple),
    summary=st.sampled_from([None, "", "s"]),
)
_CHANGES = st.lists(st.dictionaries(_PATHS, st.none() | _ENTRIES, max_size=4), max_size=12)
_QUERIES = ("vpn", "time", "the time zone of 支付网关", "支付", "ERR_TIME 10.1.1", "zo", "vpn client time", "vp")


def answers(index: CatalogIndex) -> object:
    """All that a lookup could see of it."""
    answers = []
    for query in _QUERIES:
        matches = index.match(query)
        ranked = [match.entry for match in matches.most_specific_first()]
        found = [(match.entry, match.weak, match.inside, match.containing) for match in matches]
        answers.append((len(matches), found, ranked))
    return len(index), list(index.entries), answers


def changed(steps: list[dict[str, KnowledgeEntry | None]]) -> tuple[CatalogIndex, list[KnowledgeEntry]]:
    """The index after every step, and the entries it should hold."""
    index, held = CatalogIndex(), dict[str, KnowledgeEntry | None]()
    for step in steps:
        latest = {
            path: entry and KnowledgeEntry(path, entry.title, entry.keywords, entry.summary)
            for path, entry in step.items()
        }
        index = index.changed(latest)
        held |= latest
    return index, [entry for entry in held.values() if entry]


@given(steps=_CHANGES)
def test_an_index_after_any_changes_answers_like_one_built_at_once(
    steps: list[dict[str, KnowledgeEntry | None]],
) -> None:
    index, held = changed(steps)
    assert answers(index) == answers(CatalogIndex(held))


@given(steps=_CHANGES)
def test_an_index_that_was_stored_answers_like_the_original(steps: list[dict[str, KnowledgeEntry | None]]) -> None:
    index, _ = changed(steps)
    assert answers(CatalogIndex.load(index.dump())) == answers(index)


def entry(number: int, *keywords: str) -> KnowledgeEntry:
    return KnowledgeEntry(f"kb/{number:04}.md", f"Document {number}", keywords)


def test_changing_one_document_of_many_builds_no_large_index_again() -> None:
    index = CatalogIndex(entry(n, f"code-{n}", "shared") for n in range(1_000))
    oldest = index._layers.all[0].index
    for n in range(60):
        index = index.changed({f"kb/{n:04}.md": None, f"kb/{n + 2_000}.md": entry(n + 2_000, f"code-{n}", "shared")})
    assert index._layers.all[0].index is oldest
    assert len(index._layers.all) <= 4
    assert len(index) == len(index.match("shared")) == 1_000
    assert [match.entry.file_path for match in index.match("see code-7 first")] == ["kb/2007.md"]


def test_a_thousand_changes_one_by_one_end_in_few_layers() -> None:
    index = CatalogIndex()
    for n in range(1_000):
        index = index.changed({f"kb/{n:04}.md": entry(n, f"code-{n}")})
    assert len(index) == 1_000
    assert len(index._layers.all) <= 4


STORED = CatalogIndex(entry(n, f"code-{n}", "支付", "gateway timeout") for n in range(20)).dump()


@given(data=st.data())
def test_torn_or_flipped_bytes_are_refused(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(STORED) - 1))
    flipped = bytearray(STORED)
    flipped[place] ^= 1 << data.draw(st.integers(0, 7))
    for wrong in (STORED[:place], bytes(flipped), STORED + b"x"):
        with pytest.raises(CorruptState):
            CatalogIndex.load(wrong)


@pytest.mark.parametrize("wrong", [b"", b"{}", zlib.compress(b"[]"), STORED.replace(b"index 2", b"index 1", 1)])
def test_other_formats_are_refused(wrong: bytes) -> None:
    with pytest.raises(CorruptState):
        CatalogIndex.load(wrong)


def test_an_automaton_of_another_version_of_its_library_is_built_from_the_keywords(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class OtherVersion:
        @staticmethod
        def deserialize(serialised: bytes) -> object:
            raise ValueError("InvalidAutomatonError")

    with monkeypatch.context() as patched:
        patched.setattr(index_dump, "CharwiseDoubleArrayAhoCorasick", OtherVersion)
        index = CatalogIndex.load(STORED)
    assert [match.entry.file_path for match in index.match("code-7 fails")] == ["kb/0007.md"]


def test_an_empty_index_is_stored_too() -> None:
    assert len(CatalogIndex.load(CatalogIndex().dump())) == 0
