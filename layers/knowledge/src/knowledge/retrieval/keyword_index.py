"""The keywords of some documents: one Aho-Corasick pass over a query finds those inside it, whatever their number."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import accumulate, chain

from daachorse import CharwiseDoubleArrayAhoCorasick

from knowledge.domain.document import KnowledgeEntry
from knowledge.domain.text import is_encodable, is_word_character, normalise
from knowledge.retrieval.packed_entries import PackedEntries
from knowledge.retrieval.packed_texts import PackedTexts
from knowledge.retrieval.weak_keywords import is_weak
from knowledge.retrieval.word_starts import WordStarts, joins

# Source: specification D10 and design section 5: a keyword may contain the query from two characters on.
_MIN_PARTIAL_CHARS = 2
# One byte for each keyword: what a weak one has in place of a count, and how far is counted.
WEAK = 255
_MAX_COUNTED = 254


@dataclass(frozen=True, slots=True)
class KeywordIndex:
    """Immutable. A document is known by its place in `entries`, a keyword by its place in `keywords`."""

    entries: PackedEntries
    keywords: PackedTexts
    """Every keyword once, normalised, in the order of the first documents that declare them."""
    automaton: CharwiseDoubleArrayAhoCorasick | None
    """None when there are no keywords."""
    word_starts: WordStarts
    documents: "array[int]"
    """Those that declare the first keyword, ascending, then those of the second, and so on."""
    ends: "array[int]"
    """Nought, and where the documents of each keyword end."""
    inside_others: bytes
    """For each keyword: how many documents have longer ones with this inside and not itself, at most 254; WEAK for one
    that says too little anyway."""
    longest: int
    """Length of the longest keyword in characters."""

    @classmethod
    def of(cls, entries: Iterable[KnowledgeEntry]) -> "KeywordIndex":
        """The index of `entries`, at most one for each path, in any order."""
        ordered = sorted(entries, key=lambda entry: entry.file_path)
        documents_by_keyword: dict[str, array[int]] = {}
        for place, entry in enumerate(ordered):
            for keyword in matchable(entry.keywords):
                documents_by_keyword.setdefault(keyword, array("I")).append(place)
        keywords = PackedTexts.of(documents_by_keyword)
        automaton = automaton_of(keywords)
        return cls(
            entries=PackedEntries.of(ordered),
            keywords=keywords,
            automaton=automaton,
            word_starts=WordStarts.of(keywords),
            documents=array("I", chain.from_iterable(documents_by_keyword.values())),
            ends=array("I", accumulate(map(len, documents_by_keyword.values()), initial=0)),
            inside_others=_count_inside_others(documents_by_keyword, automaton),
            longest=max(map(len, documents_by_keyword), default=0),
        )

    def documents_of(self, keywords: Iterable[int]) -> Iterator[int]:
        """The documents that declare any of the keywords, once for each of them."""
        documents, ends = self.documents, self.ends
        for keyword in keywords:
            start, end = ends[keyword], ends[keyword + 1]
            # Nearly every keyword is of one document only, for which a slice takes twice the time.
            if end - start == 1:
                yield documents[start]
            else:
                yield from documents[start:end]

    def inside(self, text: str) -> dict[str, int]:
        """The keywords inside `text`, on word boundaries where the keyword's edge is a word character."""
        return _inside(text, self.automaton)

    def containing(self, text: str) -> Iterator[tuple[bool, set[int]]]:
        """The longer keywords with `text` in them from a word's start, some at a time, each once.

        First those where it ends a word too, then, with True, those where it is cut off. Inside a keyword `_` parts
        words, so that `timeout` finds `ERR_TIMEOUT`.
        """
        by_end = self._runs(text)
        left_out = {self._equal_to(text)} if by_end[False] else set[int]()
        for is_cut, runs in by_end.items():
            for keywords in self.word_starts.owners_at(runs, left_out):
                yield is_cut, keywords

    def first_containing(self, text: str, *, is_cut: bool, hidden: Set[int]) -> int | None:
        """The first document that has such a keyword, or `text` itself, and is not `hidden`; None when there is none.

        Without looking at each of them, where few of the first are hidden.
        """
        first = len(self.entries)
        for least, piece in self.word_starts.by_least_owner(self._runs(text)[is_cut]):
            document = self.documents[self.ends[least]]
            if document >= first or document not in hidden:
                # Keywords with larger numbers have no earlier document, and what follows has no others.
                return min(first, document)
            keywords = set(self.word_starts.owners[piece.start : piece.stop])
            shown = (document for document in self.documents_of(keywords) if document not in hidden)
            first = min(chain([first], shown))
        return first if first < len(self.entries) else None

    def count_inside_others(self, keyword: str, hidden: Set[int], most: int) -> int:
        """`inside_others` of any strong keyword, without the `hidden` documents; counted no further than `most`."""
        equal = self._equal_to(keyword)
        if equal >= 0 and not (hidden and self.inside_others[equal]):
            return min(self.inside_others[equal], most)
        left_out = hidden | set(self.documents_of((equal,))) if equal >= 0 else hidden
        counted = set[int]()
        places, owners = self.word_starts.places, self.word_starts.owners
        for after, run in self.word_starts.followed_by(keyword):
            if is_word_character(keyword[-1]) and is_word_character(after):
                continue
            for place, owner in ((places[at], owners[at]) for at in run):
                if owner != equal and self._is_inside(keyword, place, owner):
                    counted.update(document for document in self.documents_of((owner,)) if document not in left_out)
                    if len(counted) >= most:
                        return most
        return len(counted)

    def _runs(self, text: str) -> dict[bool, list[range]]:
        """Where keywords have `text` from a word's start: the runs where it ends one too, and those where it is cut."""
        by_end: dict[bool, list[range]] = {False: [], True: []}
        if _MIN_PARTIAL_CHARS <= len(text) < self.longest:
            for after, run in self.word_starts.followed_by(text):
                by_end[joins(text[-1], after)].append(run)
        return by_end

    def _equal_to(self, text: str) -> int:
        """The keyword that is `text`, or -1."""
        found = self.automaton.find_overlapping(text) if self.automaton else ()
        return next((keyword for start, end, keyword in found if end - start == len(text)), -1)

    def _is_inside(self, text: str, place: int, keyword: int) -> bool:
        longer = self.keywords[keyword]
        start = len(self.keywords.block[self.keywords.start_of(keyword) : place].decode())
        return not _is_cut(longer, start, start + len(text))


def matchable(keywords: Iterable[str]) -> list[str]:
    """`keywords` as they are matched: normalised, each once, without those that no query can hold."""
    return [keyword for keyword in dict.fromkeys(map(normalise, keywords)) if keyword and is_encodable(keyword)]


def automaton_of(keywords: Iterable[str]) -> CharwiseDoubleArrayAhoCorasick | None:
    """The automaton that finds `keywords`, each by its place."""
    listed = list(keywords)
    return CharwiseDoubleArrayAhoCorasick(listed) if listed else None


def contains(keyword: str, text: str) -> bool:
    """True when `keyword` is longer than `text` and holds it from the start of a word, as `containing` finds it."""
    found = keyword.find(text) if _MIN_PARTIAL_CHARS <= len(text) < len(keyword) else -1
    while found > 0 and joins(keyword[found - 1], text[0]):
        found = keyword.find(text, found + 1)
    return found >= 0


def _inside(text: str, automaton: CharwiseDoubleArrayAhoCorasick | None) -> dict[str, int]:
    found = automaton.find_overlapping(text) if automaton else ()
    return {text[start:end]: keyword for start, end, keyword in found if not _is_cut(text, start, end)}


def _count_inside_others(
    documents_by_keyword: Mapping[str, "array[int]"], automaton: CharwiseDoubleArrayAhoCorasick | None
) -> bytes:
    documents = list(documents_by_keyword.values())
    others: dict[int, set[int]] = {}
    for longer, text in enumerate(documents_by_keyword):
        for keyword in _inside(text, automaton).values():
            if keyword != longer:
                others.setdefault(keyword, set()).update(documents[longer])
    counts = bytearray(WEAK if is_weak(keyword) else 0 for keyword in documents_by_keyword)
    for keyword, found in others.items():
        if counts[keyword] != WEAK:
            counts[keyword] = min(len(found.difference(documents[keyword])), _MAX_COUNTED)
    return bytes(counts)


def _is_cut(text: str, start: int, end: int) -> bool:
    """True when a word or number goes on before `start` or after `end`."""
    return _goes_on(text, start - 1, start) or _goes_on(text, end, end - 1)


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
