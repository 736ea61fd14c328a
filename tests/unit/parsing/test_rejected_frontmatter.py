import pytest

from knowledge.domain.document import Chunk, ParsedDocument
from knowledge.parsing.chunks import chunk_document
from knowledge.parsing.sections import display_title, headings
from knowledge.parsing.yaml_block import MAX_BLOCK_BYTES
from tests.unit.parsing.chunking import LIMIT, piece, visible
from tests.unit.parsing.reading import read

BODY = "\n# Real Heading\n\ntext\n"
BROKEN = "---\ntitle: Payment: errors\nkeywords: [a]\n---\n"
TOO_LONG = "---\n" + "key: value\n" * (MAX_BLOCK_BYTES // 10) + "---\n"


def title_of(parsed: ParsedDocument) -> str:
    return display_title(parsed.frontmatter, parsed.prose, "kb/a.md")


def chunks_of(parsed: ParsedDocument) -> tuple[Chunk, ...]:
    return chunk_document(parsed, title=title_of(parsed), max_tokens=LIMIT)


@pytest.mark.parametrize(
    "block",
    [
        BROKEN,
        TOO_LONG,
        BROKEN.replace("\n", "\r\n"),
        "\n" + BROKEN,
        "---\ntitle：部署手册\n---\n",
        "---\n# comment\ntitle: a: b\n...\n",
        "---\n- a\n- b\n---\n",
    ],
    ids=lambda block: ascii(block[:20]),
)
def test_a_rejected_block_is_text_in_front_and_gives_no_heading(block: str) -> None:
    parsed = read(block + BODY)
    *first, last = chunks_of(parsed)

    assert parsed.warnings
    assert (parsed.body, parsed.prose, parsed.rejected_chars) == (block + BODY, BODY, len(block))
    assert (title_of(parsed), headings(parsed.prose)) == ("Real Heading", ("Real Heading",))
    assert last.text == "Real Heading\n\ntext"
    assert {chunk.heading_path for chunk in first} == {("Real Heading",)}
    assert visible("".join(map(piece, first))) == visible(block)


def test_a_rejected_block_shares_no_chunk_with_the_introduction_below_it() -> None:
    assert [chunk.text for chunk in chunks_of(read(BROKEN + "intro\n"))] == [
        "a\n\n" + BROKEN.rstrip(),
        "a\n\nintro",
    ]


@pytest.mark.parametrize(
    "content",
    [
        "---\n\n# In the rules\n\nhello\n\n---\n" + BODY,
        "---\n---\n" + BODY,
        "---\ntitle: not closed\n" + BODY,
        "+++\ntitle = 1\n+++\n" + BODY,
        "---\ntitle: A\n---\n" + BODY,
        BODY,
    ],
)
def test_everything_else_keeps_its_structure(content: str) -> None:
    parsed = read(content)

    assert parsed.rejected_chars == 0
    assert parsed.prose == parsed.body
