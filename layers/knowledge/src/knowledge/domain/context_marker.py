"""The marks around what is put before a prompt, and how such text is told and taken out again. Source: K8.

Agents quote, indent, cut and store their prompts. Whatever they do to a block, nothing may be learnt from it again, so
every doubt is decided against the text: a block without an end goes on to the end, an end without a beginning has begun
with the text.
"""

import re
from collections.abc import Iterator
from typing import Final

from knowledge.domain.text import normalise

# Source: specification K8.
START: Final = "[knowledge context]"
END: Final = "[/knowledge context]"

# In a normalised line: with blanks, and with the backslashes of Markdown and JSON.
_MARK = re.compile(r"\\?\[ ?(/?) ?knowledge ?context ?\\?\]")


def is_injected(text: str) -> bool:
    """True when there is a mark in `text`: a context, or a part of one."""
    return any(_marks_in(line) for line in text.splitlines())


def without_context(text: str) -> str:
    """`text` without every context in it: each line that has a mark, and those from a beginning to its end.

    Contexts may stand in one another. Without its end a context reaches to the end of the text, without its beginning
    from there. All other lines stay as they are, byte for byte.
    """
    kept: list[str] = []
    depth = 0
    for line in text.splitlines(keepends=True):
        marks = _marks_in(line)
        if not marks and depth == 0:
            kept.append(line)
        for is_end in marks:
            if is_end and depth == 0:
                kept.clear()
            depth = max(0, depth - 1) if is_end else depth + 1
    return "".join(kept)


def defused(text: str) -> Iterator[str]:
    """The lines of `text`, none of which has a mark: what would be one is written normalised and in other brackets."""
    for line in text.splitlines():
        yield _MARK.sub(lambda mark: f"({mark[1]}knowledge context)", normalise(line)) if _marks_in(line) else line


def _marks_in(line: str) -> list[bool]:
    """For each mark in the line, in order, whether it is the one at an end."""
    return [mark[1] == "/" for mark in _MARK.finditer(normalise(line))]
