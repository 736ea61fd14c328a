"""Finds the keywords that contain a text from the start of a word, without looking at the other keywords."""

import functools
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from operator import itemgetter

from knowledge.domain.text import is_word_character
from knowledge.retrieval.packed_texts import PackedTexts

# In a line of kinds (`_kind`): a word goes on from one "a" to the next, and no query starts with a blank.
_START = re.compile("(?<!a)a|-")
# Sorting in groups that begin alike takes a tenth of the memory of sorting all places at once; three bytes are one
# Chinese character. Source: measured, 500,000 keywords.
_GROUP_BYTES = 3
# Source: RFC 3629, no character takes more bytes in UTF-8.
_MAX_BYTES_PER_CHAR = 4
# Neighbours in code point, as long in UTF-8, that are all characters of words or all none, so that they need not be
# told apart. Source: ASCII; Unicode block list for Kana, the most used Han block, and Hangul.
_ALIKE = ("\0/", "09", ":@", "AZ", "[^", "az", "{\x7f", "\u3040\u30ff", "\u4e00\u9fff", "\uac00\ud7af")
# The smallest owner is noted for each so many places, of which 100,000 documents have two million: so a query goes over
# few blocks, and through one in little time. Source: measured, 0.5 µs for each block, 150 µs to look through one.
_BLOCK = 1024


class WordStarts:
    """A suffix array over the keywords that has the starts of words only. Inside a keyword `_` parts words."""

    __slots__ = ("_keywords", "least", "owners", "places")

    def __init__(self, keywords: PackedTexts, places: "array[int]", owners: "array[int]", least: "array[int]") -> None:
        """`places` in the block of `keywords`, sorted by what follows; `owners`: the keyword each place is in.

        `least`: the smallest of each 1,024 owners.
        """
        self._keywords = keywords
        self.places = places
        self.owners = owners
        self.least = least

    @classmethod
    def of(cls, keywords: PackedTexts) -> "WordStarts":
        """The word starts of `keywords`, which hold no line break."""
        block = keywords.block
        groups: dict[bytes, array[int]] = {}
        for place in _starts(block.decode()):
            groups.setdefault(block[place : place + _GROUP_BYTES], array("I")).append(place)
        places, owners = array("I"), array("I")
        for beginning in sorted(groups):
            group = sorted(groups.pop(beginning), key=lambda place: block[place : block.index(b"\n", place)])
            places.extend(group)
            owners.extend(bisect_left(keywords.ends, place) for place in group)
        least = array("I", (min(owners[at : at + _BLOCK]) for at in range(0, len(owners), _BLOCK)))
        return cls(keywords, places, owners, least)

    def followed_by(self, text: str) -> Iterator[tuple[str, range]]:
        """The runs of `places` at which `text` is, each with a character that follows it there.

        That is a line break at a keyword's end. Where `text` ends a word or does not depends on that character; it is
        the same in all of a run. O(log n) for each run, whatever its length.
        """
        prefix, block, places = text.encode(), self._keywords.block, self.places
        length = len(prefix)
        first = bisect_left(places, prefix, key=lambda place: block[place : place + length])
        while first < len(places) and block.startswith(prefix, places[first]):
            after = places[first] + length
            character = block[after : after + _MAX_BYTES_PER_CHAR].decode(errors="ignore")[0]
            last = prefix + _last_alike(character).encode() if is_word_character(text[-1]) else prefix
            size = len(last)
            end = bisect_right(places, last, first, key=lambda place: block[place : place + size])
            yield character, range(first, end)
            first = end

    def owners_at(self, runs: Iterable[range], left_out: set[int]) -> Iterator[set[int]]:
        """The keywords at `runs`, some at a time, each once and without those `left_out`, which are then more."""
        for run in runs:
            for at in run[::_BLOCK]:
                found = set(self.owners[at : min(at + _BLOCK, run.stop)]) - left_out
                left_out |= found
                yield found

    def by_least_owner(self, runs: Iterable[range]) -> list[tuple[int, range]]:
        """`runs` in pieces of at most 1,024 places, each behind its smallest owner, and sorted by that."""
        pieces = list[tuple[int, range]]()
        for run in runs:
            for block in range(run.start // _BLOCK, -(-run.stop // _BLOCK)):
                start, stop = max(block * _BLOCK, run.start), min((block + 1) * _BLOCK, run.stop)
                is_whole = stop - start == _BLOCK
                least = self.least[block] if is_whole else min(self.owners[start:stop])
                pieces.append((least, range(start, stop)))
        return sorted(pieces, key=itemgetter(0))


def joins(left: str, right: str) -> bool:
    """True when two neighbours in a keyword belong to one word."""
    return left != "_" != right and is_word_character(left) and is_word_character(right)


def _last_alike(character: str) -> str:
    """The last character that need not be told from this one."""
    return next((alike[1] for alike in _ALIKE if alike[0] <= character <= alike[1]), character)


def _starts(lines: str) -> Iterator[int]:
    """The places in UTF-8 at which a word or a mark begins, ascending; every character of an unspaced script is one."""
    kinds = "".join(map(_kind, lines))
    place = before = 0
    for found in _START.finditer(kinds):
        place += len(lines[before : found.start()].encode())
        before = found.start()
        yield place


@functools.lru_cache(maxsize=4096)
def _kind(char: str) -> str:
    if char.isspace():
        return " "
    return "a" if char != "_" and is_word_character(char) else "-"
