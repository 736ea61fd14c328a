"""Headings, sections and the title to show. Knows nothing of chunks or retrieval."""

import re
from itertools import pairwise

from knowledge.domain.document import EXTENSION, Frontmatter
from knowledge.domain.text import normalise
from knowledge.parsing.markdown import blocks_of, headings_in, lines_of, plain_text

# A title is one line of a list, an answer or a heading path, and every index holds it; a longer one is a paragraph
# that became a heading by mistake. As long as the longest keyword. Source: own choice.
MAX_TITLE_CHARACTERS = 200
_CUT_MARK = "…"
# As long as a question gets. Source: own choice.
MAX_OPENING_CHARACTERS = 200
_SENTENCE_END = re.compile(r"(?<=[。！？])|(?<=[.!?])\s")


def headings(body: str) -> tuple[str, ...]:
    """The texts of the headings in order, without markup; those without text are left out."""
    return tuple(heading.text for heading in headings_in(blocks_of(body)) if normalise(heading.text))


def first_heading(body: str) -> str | None:
    """The text of the first heading that has one."""
    return next(iter(headings(body)), None)


def opening(body: str) -> str | None:
    """The first sentence that is no heading, without markup, on one line, at most MAX_OPENING_CHARACTERS long."""
    for before, token in pairwise(blocks_of(body)):
        if token.type == "inline" and before.type != "heading_open":
            text = plain_text(token.content)
            if normalise(text):
                return _SENTENCE_END.split(text, maxsplit=1)[0][:MAX_OPENING_CHARACTERS]
    return None


def section(body: str, title: str) -> tuple[str, str] | None:
    """The heading that a reader takes for `title`, and the section's text from that line on, or None.

    The section ends before the next heading of the same or a higher level. The first of several equal ones is meant.
    """
    wanted = normalise(title)
    found = None
    end = None
    for heading in headings_in(blocks_of(body)):
        if found is None and wanted and normalise(heading.text) == wanted:
            found = heading
        elif found is not None and heading.level <= found.level:
            end = heading.start
            break
    if found is None:
        return None
    return found.text, "\n".join(lines_of(body)[found.start : end]).rstrip()


def display_title(frontmatter: Frontmatter | None, body: str, path: str) -> str:
    """The declared title, else the first heading, else the file name without its extension; never blank, one line.

    A title of one line stays as the author typed it; line breaks become blanks. One of more than
    MAX_TITLE_CHARACTERS is cut to that many, the last of them an ellipsis.
    """
    name = path.rpartition("/")[2]
    stem = name[: -len(EXTENSION)] if name.lower().endswith(EXTENSION) else name
    declared = (frontmatter.title if frontmatter else None) or ""
    heading = "" if normalise(declared) else first_heading(body) or ""
    candidates = (" ".join(map(str.strip, text.splitlines())).strip() for text in (declared, heading, stem, name, path))
    title = next((text for text in candidates if normalise(text)), "untitled")
    return title if len(title) <= MAX_TITLE_CHARACTERS else title[: MAX_TITLE_CHARACTERS - 1].rstrip() + _CUT_MARK
