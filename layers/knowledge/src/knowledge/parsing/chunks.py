"""Cuts a document into the pieces that are embedded, each under its heading path. Knows no tokenizer and no model."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it.token import Token

from knowledge.domain.document import Chunk, ParsedDocument
from knowledge.domain.text import normalise
from knowledge.parsing.blocks import Block, Kind, blocks_between
from knowledge.parsing.cutting import cut_block, cut_text
from knowledge.parsing.markdown import Heading, blocks_of, headings_in, lines_of
from knowledge.parsing.tokens import cost

# Less leaves no room for text beside a path of seven parts.
MIN_MAX_TOKENS = 64
# What embedders put around a text. Source: multilingual-e5-small adds 5 tokens ("passage: " and two marks).
RESERVED_TOKENS = 8
# Share of a chunk that packing fills. A piece about one thing is found more easily than a full one; the rest is room
# for a fence or table that belongs to the paragraph before it, and for an estimate that is too low.
TARGET_SHARE = 0.7
# A part of the path that is longer than this share of the limit is shown cut: seven parts leave half for the text.
_PATH_PART_SHARE = 1 / 16
_SEPARATOR = " > "
_CUT_MARK = "…"

# U+0000 is replaced as CommonMark 0.31, section 2.3, asks; lone surrogates because no UTF-8 can hold them.
_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")


def chunk_document(parsed: ParsedDocument, *, title: str, max_tokens: int) -> tuple[Chunk, ...]:
    """The document's pieces in order, none of them blank; none at all when there is no text below the headings.

    Each costs at most `max_tokens` by `estimate_tokens`, what the embedder adds included. Sections never share a
    chunk. A heading shows in the path of its section; one too long for that stays in the text as well. Rejected
    frontmatter comes first, as plain text in chunks of its own. Raises ValueError when `max_tokens` is under
    MIN_MAX_TOKENS.
    """
    if max_tokens < MIN_MAX_TOKENS:
        raise ValueError(f"max_tokens is {max_tokens}; at least {MIN_MAX_TOKENS} are needed")
    room = 100 * (max_tokens - RESERVED_TOKENS)
    chunks: list[Chunk] = []
    for part in _sections(parsed, _clean(title), int(100 * max_tokens * _PATH_PART_SHARE)):
        header = _SEPARATOR.join(part.path) + "\n\n" if part.path else ""
        limit = room - cost(header)
        for piece in _pieces(part.blocks, target=int(limit * TARGET_SHARE), limit=limit):
            chunks.append(Chunk(len(chunks), part.path, header + piece))
    return tuple(chunks)


@dataclass(frozen=True, slots=True)
class _Section:
    path: tuple[str, ...]
    blocks: Iterator[Block]


def _clean(text: str) -> str:
    return _NOT_TEXT.sub("\ufffd", text)


def _sections(parsed: ParsedDocument, title: str, max_part: int) -> Iterator[_Section]:
    prose = _clean(parsed.prose)
    tokens, lines = blocks_of(prose), lines_of(prose)
    starts = [i for i, token in enumerate(tokens) if token.type == "heading_open" and token.level == 0]
    heads = list(headings_in(tokens))
    root = _shown(title, max_part)
    if rejected := _clean(parsed.body[: parsed.rejected_chars]):
        yield _Section(_path(root, ()), iter([Block(Kind.PROSE, tuple(lines_of(rejected)))]))
    first_line = heads[0].start if heads else len(lines)
    before = tokens[: starts[0]] if starts else tokens
    yield _Section(_path(root, ()), blocks_between(before, lines, 0, first_line))
    above: list[tuple[int, str]] = []
    for number, head in enumerate(heads):
        is_last = number + 1 == len(heads)
        end = len(lines) if is_last else heads[number + 1].start
        inner = tokens[starts[number] + 3 : None if is_last else starts[number + 1]]
        above = [(level, text) for level, text in above if level < head.level]
        above.append((head.level, _shown(head.text, max_part)))
        path = _path(root, [text for _, text in above])
        yield _Section(path, _section_blocks(head, above[-1][1], inner, lines, end))


def _path(root: str, texts: Sequence[str]) -> tuple[str, ...]:
    if root and texts and normalise(texts[0]) == normalise(root):
        texts = texts[1:]
    return tuple(text for text in (root, *texts) if text)


def _section_blocks(
    head: Heading, shown: str, tokens: Sequence[Token], lines: Sequence[str], end: int
) -> Iterator[Block]:
    """The blocks below a heading; above them its own lines when the path does not show all of its text."""
    own = tuple(lines[head.start : head.end])
    if shown != head.text or (not shown and any(line.strip(" \t#") for line in own)):
        yield Block(Kind.PROSE, own)
    yield from blocks_between(tokens, lines, head.end, end)


def _shown(text: str, max_cost: int) -> str:
    """`text` on one line, cut when it is too long for a part of the path; empty when nothing of it is visible."""
    line = " ".join(text.split())
    if not normalise(line):
        return ""
    if cost(line) <= max_cost:
        return line
    return next(cut_text(line, max_cost - cost(_CUT_MARK))).rstrip() + _CUT_MARK


def _pieces(blocks: Iterator[Block], *, target: int, limit: int) -> Iterator[str]:
    """Texts of at most `limit`: blocks packed up to `target`, a fence or table with what stands before it."""
    pending: list[str] = []
    used = 0
    has_text = False
    for block in blocks:
        for text, size in _parts(block, target=target, limit=limit):
            allowed = limit if block.kind in {Kind.FENCE, Kind.TABLE} else target
            if pending and used + size > allowed:
                yield from _finished(pending, has_text=has_text)
                pending, used, has_text = [], 0, False
            pending.append(text)
            used += size
            has_text |= block.kind is not Kind.RULE
    yield from _finished(pending, has_text=has_text)


def _parts(block: Block, *, target: int, limit: int) -> Iterator[tuple[str, int]]:
    """The block as it is while it fits, else cut: prose to the target, fences and tables to the limit."""
    line_end = cost("\n")
    size = cost(block.text) + line_end
    if size <= limit:
        yield block.text, size
        return
    capacity = limit if block.kind in {Kind.FENCE, Kind.TABLE} else target
    for piece in cut_block(block, capacity - line_end):
        yield piece, cost(piece) + line_end


def _finished(pending: Sequence[str], *, has_text: bool) -> Iterator[str]:
    piece = "\n".join(pending).strip("\n").rstrip()
    if has_text and normalise(piece):
        yield piece
