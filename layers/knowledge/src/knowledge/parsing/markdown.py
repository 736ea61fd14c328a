"""CommonMark blocks of a text by line number, and the plain text of headings. Renders nothing."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

# Link reference definitions stay paragraphs, so that every line that is not blank belongs to a block.
_BLOCKS = MarkdownIt("commonmark").enable("table")
_BLOCKS.core.ruler.disable(["inline"])
_BLOCKS.block.ruler.disable(["reference"])
_INLINE = MarkdownIt("commonmark")

# Source: CommonMark 0.31, section 2.1.
_LINE_END = re.compile(r"\r\n?|\n")
# Without one of these a text has no inline markup. Source: CommonMark 0.31, section 6.
_MARKUP = re.compile(r"[\\`*_\[\]<&!\n]")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of the document itself, not one inside a list or a quote; lines count from 0, `end` is the next one."""

    level: int
    text: str
    start: int
    end: int


def lines_of(text: str) -> list[str]:
    """The lines without their ends, as CommonMark counts them."""
    return _LINE_END.split(text)


def blocks_of(text: str) -> list[Token]:
    """The block tokens of `text`; inline content is not parsed."""
    return _BLOCKS.parse(text)


def headings_in(blocks: list[Token]) -> Iterator[Heading]:
    """The headings in order, each with its text without markup (empty when it has none)."""
    for token, inline in pairwise(blocks):
        if token.type == "heading_open" and token.level == 0 and token.map is not None:
            start, end = token.map
            yield Heading(int(token.tag[1]), plain_text(inline.content), start, end)


def plain_text(source: str) -> str:
    """What a reader sees of inline Markdown, on one line."""
    if not _MARKUP.search(source):
        return " ".join(source.split())
    return " ".join("".join(_seen(_INLINE.parseInline(source))).split())


def _seen(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token.children:
            yield from _seen(token.children)
        elif token.type in {"text", "code_inline"}:
            yield token.content
        elif token.type in {"softbreak", "hardbreak"}:
            yield " "
