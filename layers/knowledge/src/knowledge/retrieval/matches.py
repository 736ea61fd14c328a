"""What a query hit. Documents are counted and ranked without being looked at; a Match is made when it is asked for."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from knowledge.domain.document import KnowledgeEntry
from knowledge.retrieval.codes import is_code
from knowledge.retrieval.keyword_index import contains, matchable
from knowledge.retrieval.layers import Layers
from knowledge.retrieval.made_sequence import MadeSequence
from knowledge.retrieval.weak_keywords import is_weak


@dataclass(frozen=True, slots=True)
class Match:
    """One document that the query hit."""

    entry: KnowledgeEntry
    weak: bool
    """True when nothing it was hit by could decide alone: function words, single characters, the front of a word, and
    keywords that many other documents have inside longer ones."""
    query: str
    """Normalised."""
    weak_by_keyword: Mapping[str, bool] = field(repr=False)
    """Every keyword inside the query, this document's or another one's, and whether it is weak."""

    @property
    def inside(self) -> list[str]:
        """Its keywords inside the query, normalised: those that can decide first, then codes, then the longest."""
        inside = [keyword for keyword in matchable(self.entry.keywords) if keyword in self.weak_by_keyword]
        return sorted(inside, key=lambda keyword: rank_inside(keyword, weak=self.weak_by_keyword[keyword]))

    @property
    def containing(self) -> list[str]:
        """Its keywords that contain the query, normalised."""
        return [keyword for keyword in matchable(self.entry.keywords) if contains(keyword, self.query)]


Rank = tuple[bool, bool, int]
"""Sorts the most specific first: weak or not, no code or one, the length below zero."""


def rank_inside(keyword: str, *, weak: bool) -> Rank:
    """Of a keyword inside the query: `error C2065: undeclared identifier` is about the code and not `identifier`."""
    return weak, not is_code(keyword), -len(keyword)


def rank_containing(*, weak: bool) -> Rank:
    """Of keywords that contain the query: after all that are inside it and as weak."""
    return weak, True, 0


class Hit(NamedTuple):
    """Keywords of one layer that the query hit in the same way."""

    rank: Rank
    layer: int
    keywords: Collection[int]


class Matches(MadeSequence[Match]):
    """The documents that a query hit, in key order. Immutable."""

    def __init__(self, layers: Layers, text: str, inside: Mapping[str, bool], hits: Sequence[Hit]) -> None:
        """`text` is the query, normalised; `inside` tells of each keyword inside it whether it is weak, `hits` where.

        Keywords that contain the query are looked for when the matches are first looked at.
        """
        self._layers = layers
        self._text = text
        self._inside = inside
        self._inside_hits = hits

    def __len__(self) -> int:
        return len(self._found)

    def made(self, place: int) -> Match:
        """See MadeSequence."""
        number = self._numbers[place]
        return self._match(number, number not in self._certain)

    def most_specific_first(self) -> Iterator[Match]:
        """The same matches by rank, each made when its turn comes.

        One equal to the query leads, then a code inside it, then the longest keyword inside it; then keywords that
        contain it; then the most keywords; weak ones last; ties in index order. Source: design section 5.
        """
        have_one_keyword = len(self._found) == sum(map(len, self._documents.values()))
        keyword_counts = None if have_one_keyword else Counter(chain.from_iterable(self._documents.values()))
        seen = set[int]()
        for (weak, *_), documents in self._documents.items():
            ordered = self._layers.in_key_order(set(documents) - seen)
            if keyword_counts:
                ordered.sort(key=keyword_counts.__getitem__, reverse=True)
            seen.update(ordered)
            yield from (self._match(number, weak) for number in ordered)

    @cached_property
    def _documents(self) -> dict[Rank, list[int]]:
        """By rank, the most specific first; a document is there once for each of its keywords."""
        documents: dict[Rank, list[int]] = {}
        for hit in sorted([*self._inside_hits, *self._containing_hits()], key=lambda hit: hit.rank):
            documents.setdefault(hit.rank, []).extend(self._layers.documents_of(hit.layer, hit.keywords))
        return documents

    def _containing_hits(self) -> Iterator[Hit]:
        for number, layer in enumerate(self._layers.all):
            whole, cut = layer.index.containing(self._text)
            if whole:
                yield Hit(rank_containing(weak=is_weak(self._text)), number, whole)
            if cut:
                yield Hit(rank_containing(weak=True), number, cut)

    @cached_property
    def _found(self) -> set[int]:
        return set(chain.from_iterable(self._documents.values()))

    @cached_property
    def _numbers(self) -> list[int]:
        return self._layers.in_key_order(self._found)

    @cached_property
    def _certain(self) -> set[int]:
        return set(chain.from_iterable(documents for (weak, *_), documents in self._documents.items() if not weak))

    def _match(self, number: int, weak: bool) -> Match:
        return Match(self._layers.entry(number), weak, self._text, self._inside)
