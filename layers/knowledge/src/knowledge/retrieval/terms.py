"""A text as terms for word matching: the same for a query and for what it is compared with."""

import re
from collections.abc import Iterator

from knowledge.domain.text import is_unspaced, normalise

_WORDS = re.compile(r"\w+")


def terms(text: str) -> list[str]:
    """The terms of `text` in order, repeated ones repeated: words, and pairs of neighbours in scripts without blanks.

    An identifier counts whole and by its parts (`err_timeout`, `err`, `timeout`). A single character of an unspaced
    script between others is a term of its own. Source: bigrams as in Lucene's CJKAnalyzer.
    """
    return list(_terms(text))


def _terms(text: str) -> Iterator[str]:
    for word in _WORDS.findall(normalise(text)):
        for run in _runs(word):
            if is_unspaced(run[0]):
                yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))
            else:
                yield run
                if "_" in run:
                    yield from filter(None, run.split("_"))


def _runs(word: str) -> list[str]:
    """`word` cut where it changes between scripts with and without blanks."""
    runs: list[str] = []
    for char in word:
        if runs and is_unspaced(runs[-1][-1]) == is_unspaced(char):
            runs[-1] += char
        else:
            runs.append(char)
    return runs
