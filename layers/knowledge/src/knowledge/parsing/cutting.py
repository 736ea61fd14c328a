"""Cuts what is longer than a chunk: text at sentence, word or grapheme boundaries, fences and tables between lines."""

from collections.abc import Iterator

from semantic_text_splitter import TextSplitter

from knowledge.parsing.blocks import Block, Kind
from knowledge.parsing.tokens import cost, estimate_tokens

# The splitter weighs all that is left of a text for every piece that it takes off, so it gets a window at a time: as
# many characters as make this many pieces when each costs a whole token, two or three when it is English.
_WINDOW_PIECES = 8


def cut_text(text: str, capacity: int) -> Iterator[str]:
    """Pieces of `text`, each of at most `capacity` (see `tokens.cost`), that give `text` when joined.

    Cut at line breaks, else between sentences (also at 。！？), else between words, else between grapheme clusters
    (Source: Unicode UAX #29); inside a cluster only when it is longer than a piece.
    """
    # The splitter takes a text of no more bytes than the capacity for one that fits, so it must count whole tokens.
    splitter = TextSplitter.from_callback(estimate_tokens, max(1, capacity // 100), trim=False)
    smallest_window = max(1, _WINDOW_PIECES * capacity // 100)
    position, window = 0, smallest_window
    while position < len(text):
        pieces = splitter.chunks(text[position : position + window])
        if position + window < len(text):
            pieces.pop()  # it may end where the window does
            window = smallest_window if pieces else 2 * window
        yield from pieces
        position += sum(map(len, pieces))


def cut_block(block: Block, capacity: int) -> Iterator[str]:
    """Pieces of a block that is longer than `capacity`: lines of a fence between its marks, rows under their header."""
    first, last = len(block.opening), len(block.lines) - len(block.closing)
    opening = block.lines[:first]  # the first piece keeps the list mark that the others must not repeat
    frame = max(_frame(opening, block.closing), _frame(block.opening, block.closing))
    if block.kind in {Kind.PROSE, Kind.RULE} or frame > capacity // 2:
        yield from cut_text(block.text, capacity)
        return
    for rows in _packed(block.lines[first:last], capacity - frame):
        yield "\n".join((*opening, *rows, *block.closing))
        opening = block.opening


def _frame(opening: tuple[str, ...], closing: tuple[str, ...]) -> int:
    return cost("\n".join((*opening, "", *closing))) + cost("\n")


def _packed(lines: tuple[str, ...], capacity: int) -> Iterator[list[str]]:
    """The lines in groups of at most `capacity`; a line that is longer by itself is cut into groups of its own."""
    group: list[str] = []
    used = 0
    for line in lines:
        size = cost(line) + cost("\n")
        if used + size > capacity and group:
            yield group
            group, used = [], 0
        if size > capacity:
            yield from ([piece] for piece in cut_text(line, capacity))
        else:
            group.append(line)
            used += size
    if group:
        yield group
