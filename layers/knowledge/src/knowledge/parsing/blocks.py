"""The lines of a section as blocks that stay whole: paragraphs, list items, fences, tables. Knows no chunk size."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto

from markdown_it.token import Token


class Kind(StrEnum):
    """What may be done to a block that is too long."""

    PROSE = auto()
    FENCE = auto()
    TABLE = auto()
    RULE = auto()
    """A thematic break: no text by itself."""


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive lines without their ends. An oversized one is cut between `opening` and `closing`, which repeat."""

    kind: Kind
    lines: tuple[str, ...]
    opening: tuple[str, ...] = ()
    closing: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)


_KINDS = {
    "paragraph_open": Kind.PROSE,
    "heading_open": Kind.PROSE,
    "code_block": Kind.PROSE,
    "html_block": Kind.PROSE,
    "hr": Kind.RULE,
    "fence": Kind.FENCE,
    "table_open": Kind.TABLE,
}
# What stands before the first line of a block inside lists and quotes. Source: CommonMark 0.31, sections 5.1 and 5.2.
_CONTAINERS = re.compile(r"(?:[ \t>]|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))*")
_LIST_MARK = re.compile(r"[^ \t>]")


def blocks_between(tokens: Sequence[Token], lines: Sequence[str], start: int, end: int) -> Iterator[Block]:
    """The innermost blocks of `lines[start:end]`; together they hold every line that is not blank.

    `tokens` are those that begin in that range. Runs of blank lines after a block are kept as one.
    """
    position = start
    for token in tokens:
        kind = _KINDS.get(token.type)
        if kind is None or token.map is None or token.map[1] <= position:
            continue
        first, last = max(token.map[0], position), min(token.map[1], end)
        yield from _loose(lines[position:first])
        yield _block(kind, token, tuple(lines[first:last]))
        position = last
    yield from _loose(lines[position:end])


def _loose(lines: Sequence[str]) -> Iterator[Block]:
    """Lines of no block: blank ones, marks of empty list items, what is nested deeper than the parser goes."""
    if any(line.strip() for line in lines):
        yield Block(Kind.PROSE, tuple(lines))
    elif lines:
        yield Block(Kind.RULE, ("",))


def _block(kind: Kind, token: Token, lines: tuple[str, ...]) -> Block:
    if kind is Kind.TABLE:
        return Block(kind, lines, opening=(_unlisted(lines[0]), *lines[1:2]))
    if kind is not Kind.FENCE:
        return Block(kind, lines)
    opening = _unlisted(lines[0])
    prefix = opening[: opening.find(token.markup)]
    closing = prefix + token.markup
    # A fence that the end of the document closes gets a closing line, so that every chunk is well-formed.
    all_lines = lines if _is_closed(lines, prefix, token.markup) else (*lines, closing)
    return Block(kind, all_lines, (opening,), (closing,))


def _is_closed(lines: tuple[str, ...], prefix: str, markup: str) -> bool:
    """True when the last line is a fence of the same kind, inside as many quotes as the first, and at least as long."""
    quotes = rf"(?:[ \t]*>){{{prefix.count('>')}}}"
    return len(lines) > 1 and re.fullmatch(rf"{quotes}\s*{re.escape(markup)}{markup[0]}*\s*", lines[-1]) is not None


def _unlisted(line: str) -> str:
    """The line as it would stand further down in the same list item: list marks are blanks, quote marks stay."""
    containers = _CONTAINERS.match(line)
    prefix = containers[0] if containers else ""
    return _LIST_MARK.sub(" ", prefix) + line[len(prefix) :]
