"""The published items that a proposal is close to, with what differs, for the person who decides on it. Source: K10."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from enum import StrEnum
from typing import Final

from knowledge.domain.item import Draft, Item, ItemId
from knowledge.domain.lookup import MAX_QUERY_CHARS, excerpt
from knowledge.ports import ItemStore
from knowledge.retrieval.terms import terms
from knowledge.services.item_index import ItemIndex, searchable
from knowledge.services.near_items import NearItems

# Own choices: what a person reads beside one proposal; what one screen shows of a difference; lines that are compared,
# so that it takes milliseconds whatever the texts are.
MAX_SIMILAR: Final = 3
MAX_DIFF_CHARS: Final = 8000
_MAX_LINES = 400
# Words by which texts that may be alike are looked for, and how many of the texts are compared in full. Source: own
# choice; a copy holds all of them, and 40 in 10,000 texts take half a second.
_PROBES = 40
_COMPARED = 20
# From half of their pieces in common on two texts are shown beside each other. Source: own choice; unrelated texts of
# one language share a fifth.
_LEAST_SHARE = 0.5
# Characters of a piece: the shortest that tells English texts apart.
_PIECE = 3


class Measure(StrEnum):
    """What a similarity is."""

    COSINE = "cosine"
    """Of the meanings, by the embedder; unrelated texts are far above 0 with most models."""
    COMMON_PIECES = "common_pieces"
    """The share of pieces of three characters that both texts hold (Dice)."""


@dataclass(frozen=True, slots=True)
class Similar:
    """A published item that a proposal is close to."""

    item: Item
    similarity: float
    """0 to 1."""
    measure: Measure
    diff: str
    """From the item's title and content to the proposal's, as a unified diff of at most 8,000 characters."""


class SimilarItems:
    """Compares with the published items."""

    def __init__(self, index: ItemIndex, store: ItemStore, near: NearItems) -> None:
        """`index` is of the items in `store`, and `near` of their documents."""
        self._index = index
        self._store = store
        self._near = near

    def closest(self, draft: Draft, *, item_id: ItemId | None) -> Sequence[Similar]:
        """At most three published items close to `draft`, the closest first; never `item_id`, whose draft it is.

        By meaning, as far as that is searched for, and by common words, for what has no vector (yet): the calls of a
        search. That the embedder fails is no error here.

        Raises:
            DependencyUnavailable: the table did not answer.
        """
        wait = self._near.ask(f"{draft.title}\n\n{draft.content}"[:MAX_QUERY_CHARS])
        self._index.refresh()
        own = searchable(draft)
        probes = sorted(dict.fromkeys(terms(own)), key=len, reverse=True)[:_PROBES]
        alike = self._index.holding_most(probes, limit=_COMPARED)
        near = wait().similarities
        found = self._store.read_all({*alike, *near} - {item_id})
        similar = [
            Similar(item, max(0.0, near[item.item_id]), Measure.COSINE, "")
            if item.item_id in near
            else Similar(item, _common_pieces(own, searchable(item.draft)), Measure.COMMON_PIECES, "")
            for item in found.values()
            if item.is_published
        ]
        close = [one for one in similar if one.measure is Measure.COSINE or one.similarity >= _LEAST_SHARE]
        close.sort(key=lambda one: (-one.similarity, one.item.item_id))
        return [
            Similar(one.item, one.similarity, one.measure, _diff(one.item.draft, draft)) for one in close[:MAX_SIMILAR]
        ]


def _common_pieces(one: str, other: str) -> float:
    first, second = ({text[at : at + _PIECE] for at in range(len(text) - _PIECE + 1)} for text in (one, other))
    # Either is empty where the text is of invisible characters.
    return 2 * len(first & second) / max(1, len(first) + len(second))


def _diff(before: Draft, after: Draft) -> str:
    old, new = ([draft.title, "", *draft.content.splitlines()][:_MAX_LINES] for draft in (before, after))
    return excerpt("\n".join(unified_diff(old, new, "published", "proposed", lineterm="")), MAX_DIFF_CHARS)
