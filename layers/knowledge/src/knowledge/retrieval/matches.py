"""What a query hit. Documents are counted and ranked without being looked at; a Match is made when it is asked for."""

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

from knowledge.domain.document import KnowledgeEntry
from knowledge.retrieval.codes import is_code
from knowledge.retrieval.keyword_index import contains, matchable
from knowledge.retrieval.layers import Layers
from knowledge.retrieval.made_sequence import MadeSequence
from knowledge.retrieval.weak_keywords import is_weak

# A query that documents have in more of their keywords than this, each counted as often as it is declared, tells none
# of them apart, so the one with the most of them does not lead. Source: own choice; counting so many takes 0.2 ms.
MOST_COUNTED = 500


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
        self._weak_by_keyword = inside
        self._inside_hits = hits

    def __len__(self) -> int:
        return len(self._found)

    def count(self, most: int) -> int:
        """How many there are, counted no further than `most`.

        Where more than 500 keywords contain the query, normally without finding all of them.
        """
        is_enough = len(self._some_found) >= most or not self._are_too_many
        return min(len(self._some_found) if is_enough else len(self), most)

    def made(self, place: int) -> Match:
        """See MadeSequence."""
        number = self._numbers[place]
        return self._match(number, number not in self._certain)

    def most_specific_first(self) -> Iterator[Match]:
        """The same matches by rank, each made when its turn comes.

        One equal to the query leads, then a code inside it, then the longest keyword inside it; then keywords that
        contain it; then the most keywords; weak ones last; ties in index order. Source: design section 5. Keywords are
        not counted where more than 500 contain the query; then the first match is found without the others.
        """
        keyword_counts = self._keyword_counts()
        seen = set[int]()
        containing = self._containing_ranks.values() if self._some_containing else ()
        for rank in sorted({*self._inside, *containing}):
            if self._are_too_many and not seen and rank not in self._inside:
                first = self._first_containing(rank)
                if first is None:
                    continue
                seen.add(first)
                yield self._match(first, rank[0])
            documents = self._inside[rank] if rank in self._inside else self._containing.get(rank, [])
            ordered = self._layers.in_key_order(set(documents) - seen)
            if keyword_counts:
                ordered.sort(key=keyword_counts.__getitem__, reverse=True)
            seen.update(ordered)
            yield from (self._match(number, rank[0]) for number in ordered)

    def _keyword_counts(self) -> Counter[int] | None:
        """By document; None where no document has two, or there are too many to be counted."""
        if self._are_too_many:
            return None
        documents = list(chain(*self._inside.values(), *self._some_containing.values()))
        return None if len(documents) == len(self._some_found) else Counter(documents)

    def _first_containing(self, wanted: Rank) -> int | None:
        """The first document of that rank that has a keyword containing the query."""
        firsts = (
            self._layers.first_containing(self._text, is_cut=is_cut)
            for is_cut, rank in self._containing_ranks.items()
            if rank == wanted
        )
        return next(iter(self._layers.in_key_order(chain.from_iterable(firsts))), None)

    @cached_property
    def _inside(self) -> dict[Rank, list[int]]:
        """By rank, the documents that have keywords inside the query, once for each of them."""
        return self._documents_of(self._inside_hits, sys.maxsize)

    @cached_property
    def _some_containing(self) -> dict[Rank, list[int]]:
        """By rank, those that have keywords containing the query, once for each; all of them or one too many."""
        return self._documents_of(self._containing_hits(), MOST_COUNTED + 1)

    @cached_property
    def _containing(self) -> dict[Rank, list[int]]:
        """All of them."""
        if self._are_too_many:
            return self._documents_of(self._containing_hits(), sys.maxsize)
        return self._some_containing

    @property
    def _are_too_many(self) -> bool:
        return sum(map(len, self._some_containing.values())) > MOST_COUNTED

    def _documents_of(self, hits: Iterable[Hit], most: int) -> dict[Rank, list[int]]:
        documents_by_rank: dict[Rank, list[int]] = {}
        for rank, layer, keywords in hits:
            documents = list(islice(self._layers.documents_of(layer, keywords), most))
            documents_by_rank.setdefault(rank, []).extend(documents)
            most -= len(documents)
            if not most:
                break
        return documents_by_rank

    def _containing_hits(self) -> Iterator[Hit]:
        for number, layer in enumerate(self._layers.all):
            for is_cut, keywords in layer.index.containing(self._text):
                yield Hit(self._containing_ranks[is_cut], number, keywords)

    @property
    def _containing_ranks(self) -> Mapping[bool, Rank]:
        """By whether the query is cut off."""
        return {False: rank_containing(weak=is_weak(self._text)), True: rank_containing(weak=True)}

    @cached_property
    def _some_found(self) -> set[int]:
        return set(chain(*self._inside.values(), *self._some_containing.values()))

    @cached_property
    def _found(self) -> set[int]:
        return self._some_found.union(*self._containing.values()) if self._are_too_many else self._some_found

    @cached_property
    def _numbers(self) -> list[int]:
        return self._layers.in_key_order(self._found)

    @cached_property
    def _certain(self) -> set[int]:
        by_rank = chain(self._inside.items(), self._containing.items())
        return set(chain.from_iterable(documents for (weak, *_), documents in by_rank if not weak))

    def _match(self, number: int, weak: bool) -> Match:
        return Match(self._layers.entry(number), weak, self._text, self._weak_by_keyword)
