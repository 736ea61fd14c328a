"""Tells a broken block of keys from prose between two rules, and names the mistakes that input methods cause."""

import re

from knowledge.parsing.yaml_values import Note

_LINE_START = r"(?<![^\r\n])"
_NAME = r"[\w.-]{1,40}"

_KEY_CHARACTER = r"(?:[\w .-]|[^\x00-\x7f])"
_KEY = re.compile(rf"{_LINE_START}[ \t]*(?:- )?[\"']?(?![ .-]){_KEY_CHARACTER}{{1,40}}[\"']?[ \t]*:(?:\s|\Z)")

# Chinese and Japanese input methods type a full-width colon; editors and web pages bring no-break and ideographic
# spaces. Neither ends a key. Source: YAML 1.2.2, sections 5.3 and 5.5: the indicator is ":", white space is tab and
# space.
_CAUSES = (
    (re.compile(rf"{_LINE_START}(?:<{{7}}|={{7}}|>{{7}})(?![^\s])"), "a merge conflict marker stands in the block"),
    (re.compile(rf"{_LINE_START}{_NAME}[^\S\r\n]*(?=：)"), "full-width colon (：) after a key; YAML needs ': '"),
    (
        re.compile(rf"{_LINE_START}{_NAME}:(?=[^\S\x00-\x7f]|[\u200b\ufeff])"),
        "no-break space or another special blank after the colon; YAML needs an ordinary one",
    ),
)
# A time, a URL or a path is no key.
_NO_BLANK = re.compile(rf"{_LINE_START}[A-Za-z_][\w-]{{0,39}}:(?=[^\s/\\:])")


def looks_like_keys(text: str) -> bool:
    """True when some line of `text` looks like a key of a mapping, rightly typed or not."""
    return bool(_KEY.search(text) or _NO_BLANK.search(text)) or any(cause.search(text) for cause, _ in _CAUSES)


def cause_of(text: str, *, before: int | None) -> Note | None:
    """The first mistake that explains why `text` is no mapping.

    `before` is where the loader gave up: what stands behind it cannot be the cause. None when it read all of it and
    found plain text; then a key without a blank after its colon is a cause too.
    """
    end = len(text) if before is None else before + 1
    found = [Note(match.end(), reason) for cause, reason in _CAUSES if (match := cause.search(text, 0, end))]
    if not found and before is None and (match := _NO_BLANK.search(text)):
        found = [Note(match.end(), "no blank after the colon; YAML needs ': '")]
    return min(found, key=lambda note: note.index, default=None)
