"""What the catalog's index is made of: one large layer, and smaller ones with what changed since."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, chain

from knowledge.domain.document import KnowledgeEntry
from knowledge.retrieval.keyword_index import KeywordIndex

# A layer is merged into the older one when it is larger than this share of it, so a million documents have at most
# seven layers. Source: own choice; the benchmark prints what a change and a match cost.
_MAX_SHARE = 1 / 8
# A layer of which more than this share is hidden is made anew without it. Source: own choice.
_MAX_HIDDEN_SHARE = 1 / 2


@dataclass(frozen=True, slots=True)
class Layer:
    """An index of which some documents are no longer in the catalog, or are in a newer layer."""

    index: KeywordIndex
    hidden: frozenset[int] = frozenset()
    """Places of documents in the index."""

    def __len__(self) -> int:
        return len(self.index.entries) - len(self.hidden)

    def entries(self) -> Iterator[KnowledgeEntry]:
        """Those that are not hidden, in key order."""
        return (entry for place, entry in enumerate(self.index.entries) if place not in self.hidden)

    def without(self, paths: Collection[str]) -> "Layer":
        """The layer in which the documents at `paths` are hidden too."""
        places = {place for path in paths if (place := self.index.entries.place_of(path)) is not None}
        if places <= self.hidden:
            return self
        layer = Layer(self.index, self.hidden | places)
        return merged(layer) if len(layer.hidden) > _MAX_HIDDEN_SHARE * len(self.index.entries) else layer


def merged(*layers: Layer) -> Layer:
    """One layer with what is not hidden in `layers`."""
    if len(layers) == 1 and not layers[0].hidden:
        return layers[0]
    return Layer(KeywordIndex.of(chain.from_iterable(layer.entries() for layer in layers)))


class Layers:
    """Layers of which no two show the same path, oldest first. Documents are numbered through all of them."""

    __slots__ = ("_starts", "all")

    def __init__(self, layers: Iterable[Layer] = ()) -> None:
        self.all = tuple(layers)
        self._starts = tuple(accumulate((len(layer.index.entries) for layer in self.all), initial=0))

    def __len__(self) -> int:
        """Number of documents that are not hidden."""
        return sum(map(len, self.all))

    @property
    def are_one(self) -> bool:
        """True when there is a single layer and nothing of it is hidden."""
        return len(self.all) == 1 and not self.all[0].hidden

    def changed(self, latest: Mapping[str, KnowledgeEntry | None]) -> "Layers":
        """The layers in which each path of `latest` has the entry given there, or none where that is None."""
        layers = [layer.without(latest) for layer in self.all]
        layers.append(Layer(KeywordIndex.of(entry for entry in latest.values() if entry is not None)))
        layers = [layer for layer in layers if len(layer)]
        while len(layers) > 1 and len(layers[-1]) > _MAX_SHARE * len(layers[-2]):
            layers[-2:] = [merged(*layers[-2:])]
        return Layers(layers)

    def entry(self, number: int) -> KnowledgeEntry:
        """The entry of a document."""
        layer = bisect_right(self._starts, number) - 1
        return self.all[layer].index.entries[number - self._starts[layer]]

    def numbers(self) -> list[int]:
        """Every document that is not hidden, in key order."""
        return self.in_key_order(
            start + place
            for start, layer in zip(self._starts, self.all, strict=False)
            for place in range(len(layer.index.entries))
            if place not in layer.hidden
        )

    def documents_of(self, layer: int, keywords: Iterable[int]) -> Iterable[int]:
        """The documents in that layer that declare any of the keywords; once for each of them."""
        index, hidden, start = self.all[layer].index, self.all[layer].hidden, self._starts[layer]
        documents: Iterable[int] = index.documents_of(keywords)
        if hidden:
            documents = (document for document in documents if document not in hidden)
        return (start + document for document in documents) if start else documents

    def first_containing(self, text: str, *, is_cut: bool) -> Iterator[int]:
        """In each layer the first document that has such a keyword; see KeywordIndex."""
        for start, layer in zip(self._starts, self.all, strict=False):
            first = layer.index.first_containing(text, is_cut=is_cut, hidden=layer.hidden)
            if first is not None:
                yield start + first

    def in_key_order(self, numbers: Iterable[int]) -> list[int]:
        """The same documents sorted by path. Inside a layer that is the order of their numbers."""
        ordered = sorted(numbers)
        if len(self.all) < 2 or len(ordered) < 2:
            return ordered
        end_of_oldest = bisect_left(ordered, self._starts[1])
        merged_order, taken = list[int](), 0
        for number in sorted(ordered[end_of_oldest:], key=self._path):
            place = bisect_left(ordered, self._path(number), taken, end_of_oldest, key=self._path)
            merged_order += ordered[taken:place]
            merged_order.append(number)
            taken = place
        return merged_order + ordered[taken:end_of_oldest]

    def count_inside_others(self, keyword: str, most: int) -> int:
        """In how many other documents' longer keywords `keyword` is, counted no further than `most`, at most 255."""
        count = 0
        for layer in self.all:
            count += layer.index.count_inside_others(keyword, layer.hidden, most - count)
            if count >= most:
                break
        return count

    def _path(self, number: int) -> bytes:
        layer = bisect_right(self._starts, number) - 1
        return self.all[layer].index.entries.paths.bytes_at(number - self._starts[layer])
