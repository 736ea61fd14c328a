"""The exact tier's matcher: one Aho-Corasick pass over the query, whatever the number of documents."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from daachorse import CharwiseDoubleArrayAhoCorasick

from knowledge.domain.document import KnowledgeEntry
from knowledge.domain.text import is_word_character, normalise
from knowledge.retrieval.weak_keywords import is_weak

# Source: specification D10 and design section 5: a keyword may contain the query from two characters on.
_MIN_PARTIAL_CHARS = 2


@dataclass(frozen=True, slots=True)
class Match:
    """One document that the query hit, and by which of its keywords (normalised)."""

    entry: KnowledgeEntry
    inside: tuple[str, ...]
    """Keywords found inside the query, the one equal to it included; longest first."""
    containing: tuple[str, ...]
    """Keywords that contain the query."""
    weak: bool
    """True when nothing it was hit by could decide alone: function words, single characters, the front of a word."""

    @property
    def specificity(self) -> tuple[bool, int, int]:
        """Sorts the most specific match first; ties stay in index order under a stable sort."""
        longest = len(self.inside[0]) if self.inside else 0
        return self.weak, -longest, -len(self.inside) - len(self.containing)


class KeywordIndex:
    """An immutable index over the keywords of documents. Order everywhere is key order, the order of a scan."""

    def __init__(self, entries: Iterable[KnowledgeEntry]) -> None:
        """Index `entries`; at most one for each path, in any order. O(total length of keywords)."""
        self.entries = tuple(sorted(entries, key=lambda entry: entry.file_path))
        postings: dict[str, array[int]] = {}
        for position, entry in enumerate(self.entries):
            for keyword in dict.fromkeys(map(normalise, entry.keywords)):
                if keyword:
                    postings.setdefault(keyword, array("I")).append(position)
        self._keywords = list(postings)
        self._postings = list(postings.values())
        self._automaton = CharwiseDoubleArrayAhoCorasick(self._keywords) if self._keywords else None
        self._longest = max(map(len, self._keywords), default=0)
        # Every keyword on a line of its own: finding those that contain the query is one pass of str.find.
        self._lines = "\n" + "\n".join(self._keywords) + "\n"
        self._line_starts = array("I")
        start = 1
        for keyword in self._keywords:
            self._line_starts.append(start)
            start += len(keyword) + 1

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.entries)

    def match(self, query: str) -> tuple[Match, ...]:
        """Every document whose keyword the query contains, or that has a keyword containing the query, in key order."""
        text = normalise(query)
        hits: dict[int, tuple[list[str], list[str], list[bool]]] = {}
        for keyword_id in dict.fromkeys(self._inside(text)):
            keyword = self._keywords[keyword_id]
            weak = is_weak(keyword)
            for position in self._postings[keyword_id]:
                inside, _, weaknesses = hits.setdefault(position, ([], [], []))
                inside.append(keyword)
                weaknesses.append(weak)
        query_is_weak = is_weak(text)
        for keyword_id, whole_words in self._containing(text):
            for position in self._postings[keyword_id]:
                _, containing, weaknesses = hits.setdefault(position, ([], [], []))
                containing.append(self._keywords[keyword_id])
                weaknesses.append(query_is_weak or not whole_words)
        return tuple(
            Match(
                entry=self.entries[position],
                inside=tuple(sorted(inside, key=lambda keyword: (is_weak(keyword), -len(keyword)))),
                containing=tuple(containing),
                weak=all(weaknesses),
            )
            for position, (inside, containing, weaknesses) in sorted(hits.items())
        )

    def _inside(self, text: str) -> Iterator[int]:
        """Ids of the keywords inside `text`, on word boundaries where the keyword's edge is a word character."""
        if self._automaton is None or not text:
            return
        for start, end, keyword_id in self._automaton.find_overlapping(text):
            if not _goes_on(text, start - 1, start) and not _goes_on(text, end, end - 1):
                yield keyword_id

    def _containing(self, text: str) -> Iterator[tuple[int, bool]]:
        """Ids of longer keywords that contain `text` from the start of a word, and whether it ends with a word too.

        Inside a keyword `_` parts words, so that `timeout` finds `ERR_TIMEOUT`.
        """
        if not _MIN_PARTIAL_CHARS <= len(text) <= self._longest:
            return
        lines, whole_by_keyword = self._lines, dict[int, bool]()
        found = lines.find(text)
        while found >= 0:
            after = found + len(text)
            is_equal = lines[found - 1] == "\n" and lines[after] == "\n"
            if not is_equal and not _joins(lines[found - 1], text[0]):
                keyword_id = bisect_right(self._line_starts, found) - 1
                whole = not _joins(text[-1], lines[after])
                whole_by_keyword[keyword_id] = whole_by_keyword.get(keyword_id, False) or whole
            found = lines.find(text, found + 1)
        yield from whole_by_keyword.items()


def primary_order(matches: Iterable[Match]) -> list[Match]:
    """The same matches, most specific first.

    The longest keyword inside the query leads, so one equal to it before all; then keywords that contain it; then
    the most keywords; weak ones last; ties in index order. Source: design section 5.
    """
    return sorted(matches, key=lambda match: match.specificity)


def _goes_on(text: str, outside: int, edge: int) -> bool:
    """True when what is at `outside` belongs to the same word or number as the keyword's character at `edge`.

    `1.1` is not in `10.1.1`, nor `500` in `1,500`, nor `-1` in `PAY-1`.
    """
    if not 0 <= outside < len(text):
        return False
    if is_word_character(text[outside]) and (is_word_character(text[edge]) or text[edge] == "-"):
        return True
    beyond = 2 * outside - edge
    return text[edge].isdigit() and text[outside] in ".," and 0 <= beyond < len(text) and text[beyond].isdigit()


def _joins(left: str, right: str) -> bool:
    return left != "_" != right and is_word_character(left) and is_word_character(right)
