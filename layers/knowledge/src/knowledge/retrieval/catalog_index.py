"""The exact tier's index of a whole catalog, and how it changes. Pure: no store, no clock."""

from collections.abc import Iterable, Mapping, Sequence

from knowledge.domain.document import KnowledgeEntry
from knowledge.domain.text import normalise
from knowledge.retrieval.index_dump import dump, load
from knowledge.retrieval.keyword_index import WEAK
from knowledge.retrieval.layers import Layer, Layers, merged
from knowledge.retrieval.made_sequence import MadeSequence
from knowledge.retrieval.matches import Hit, Matches, rank_inside

# A keyword that is, as whole words, inside longer keywords of this many other documents is a common word of this base:
# it tells no document apart. Source: measured; good keywords are in 0 to 2: ADR 17.
_COMMON_FROM = 5


class CatalogIndex:
    """Every entry of the catalog, matched by keyword. Immutable: a change makes another one."""

    __slots__ = ("_layers",)

    def __init__(self, entries: Iterable[KnowledgeEntry] = ()) -> None:
        """Index `entries`; at most one for each path, in any order."""
        self._layers = Layers().changed({entry.file_path: entry for entry in entries})

    def __len__(self) -> int:
        """Number of documents."""
        return len(self._layers)

    @property
    def entries(self) -> Sequence[KnowledgeEntry]:
        """Every entry, in key order."""
        return _Entries(self._layers, self._layers.numbers())

    def match(self, query: str) -> Matches:
        """Every document whose keyword the query contains, or that has a keyword containing the query, in key order."""
        text = normalise(query)
        inside: dict[str, bool] = {}
        hits: list[Hit] = []
        for number, layer in enumerate(self._layers.all):
            for keyword, place in layer.index.inside(text).items():
                if keyword not in inside:
                    others = layer.index.inside_others[place]
                    inside[keyword] = others == WEAK or (keyword != text and self._is_common(keyword, others))
                hits.append(Hit(rank_inside(keyword, weak=inside[keyword]), number, (place,)))
        return Matches(self._layers, text, inside, hits)

    def changed(self, latest: Mapping[str, KnowledgeEntry | None]) -> "CatalogIndex":
        """The index in which each path of `latest` has the entry given there, or none where that is None."""
        return CatalogIndex._of(self._layers.changed(latest))

    def dump(self) -> bytes:
        """The index as bytes that `load` reads in any process."""
        return dump(merged(*self._layers.all).index)

    @classmethod
    def load(cls, data: bytes) -> "CatalogIndex":
        """The index that `dump` wrote. Raises CorruptState when `data` was not written by it, or by another format."""
        return cls._of(Layers([Layer(load(data))]))

    @classmethod
    def _of(cls, layers: Layers) -> "CatalogIndex":
        index = cls.__new__(cls)
        index._layers = layers
        return index

    def _is_common(self, keyword: str, others: int) -> bool:
        """`others` is the count in a layer that has the keyword."""
        if not self._layers.are_one:
            others = self._layers.count_inside_others(keyword, _COMMON_FROM)
        return others >= _COMMON_FROM


class _Entries(MadeSequence[KnowledgeEntry]):
    """A list of entries, each made when it is asked for."""

    __slots__ = ("_layers", "_numbers")

    def __init__(self, layers: Layers, numbers: Sequence[int]) -> None:
        self._layers = layers
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def made(self, place: int) -> KnowledgeEntry:
        """See MadeSequence."""
        return self._layers.entry(self._numbers[place])
