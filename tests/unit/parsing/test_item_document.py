"""The document of a knowledge item says exactly what the item says, read by the parser that reads every document."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from knowledge.domain.item import MAX_TAG_CHARS, MAX_TITLE_CHARS, Draft, KnowledgeKind
from knowledge.errors import InvalidInput
from knowledge.parsing.frontmatter import FrontmatterParser
from knowledge.parsing.item_document import render, summary_of

PITFALL = KnowledgeKind.PITFALL
# What people and models write that YAML, or this parser, might read as something else.
NASTY = (
    "no", "NO", "1.10", "0123", "null", "~", "2026-01-01", "{{ name }}", "- a", "# a", "a: b", "'a'", '"a"', "a'b",
    "[a]", "{a}", "&a", "*a", "!!str a", "---", "...", "%TAG", "@a", "`a`", "a\\b", "支付", "😀", "e\u0301", "C++", "=",
    "\ufeffa", "a\u200bb", "\ufffe", "?", "|", ">", "<<", "a #b", "x" * MAX_TAG_CHARS,
)  # fmt: skip
lines = st.one_of(st.sampled_from(NASTY), st.text(max_size=MAX_TAG_CHARS))
contents = st.one_of(
    st.sampled_from(
        ["---\na: b\n---\n", "\r\nx\r", "\ufeffx", "a\u2028b\x85c\x0cd", "  x  ", "```\n---\n```", "+++\nx"]
    ),
    st.text(min_size=1),
    st.lists(lines, min_size=1).map("\n".join),
)


@given(title=lines, content=contents, tags=st.lists(lines, max_size=8), source=st.sampled_from(["manual", "mcp:a:b#c"]))
@example(title="A", content="x", tags=list(NASTY[:4]), source="manual")
def test_the_parser_reads_back_exactly_what_the_item_says(
    title: str, content: str, tags: list[str], source: str
) -> None:
    try:
        draft = Draft(PITFALL, title, content, tuple(tags), source_ref=source)
    except InvalidInput:
        return
    document = render(draft)
    assert document == render(draft)
    parsed = FrontmatterParser(log_problems=False).read(document.decode())
    assert parsed.frontmatter is not None
    assert parsed.warnings == ()
    assert (parsed.frontmatter.title, parsed.frontmatter.keywords) == (title, tuple(tags))
    assert parsed.frontmatter.summary == summary_of(content)
    assert parsed.frontmatter.fields["kind"] == "pitfall"
    assert parsed.frontmatter.fields["source_ref"] == source
    assert parsed.body == content


@pytest.mark.parametrize("tag", NASTY)
def test_a_tag_that_can_be_a_keyword_is_taken(tag: str) -> None:
    parsed = FrontmatterParser().read(render(Draft(PITFALL, "A", "x", (tag,))).decode())
    assert parsed.frontmatter is not None
    assert parsed.frontmatter.keywords == (tag,)


@pytest.mark.parametrize(
    ("tags", "problem"),
    [
        (("a,b",), "comma"),
        (("支付，网关",), "comma"),
        (("支付、网关",), "comma"),
        ((" a",), "blank"),
        (("a\nb",), "line break"),
        (("a\u2028b",), "line break"),
        (("\u200b",), "seen"),
        (("API", "api"), "differ only"),
        (("ＡＰＩ", "API"), "differ only"),
        (("x" * (MAX_TAG_CHARS + 1),), "longer"),
    ],
)
def test_a_tag_that_could_not_be_a_keyword_as_it_is_written_is_refused_by_name(
    tags: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem) as refused:
        Draft(PITFALL, "A", "x", tags)
    assert refused.value.field == "tags"


@pytest.mark.parametrize("title", ["", "  ", "\u200b", "a ", "a\nb", "a\x00", "x" * (MAX_TITLE_CHARS + 1)])
def test_a_title_that_is_no_visible_line_is_refused(title: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Draft(PITFALL, title, "x")
    assert refused.value.field == "title"


@pytest.mark.parametrize(
    ("content", "summary"),
    [
        ("Close the pool. Then retry.", "Close the pool."),
        ("\n\n# Close the pool\n\nAlways.", "Close the pool"),
        ("先关闭连接池。然后重试。", "先关闭连接池。"),
        ("Set version 1.10 first", "Set version 1.10 first"),
        ("x" * 300, "x" * 200),
        ("\u200b\n", None),
    ],
)
def test_the_summary_is_the_first_sentence_that_can_be_seen(content: str, summary: str | None) -> None:
    assert summary_of(content) == summary
