"""Search for knowledge items: by substring always, by meaning where settings and embedder allow it. Source: K4."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from knowledge.domain.access import Principal, Role
from knowledge.domain.item import Item, ItemId, ItemStatus, KnowledgeKind
from knowledge.domain.lookup import check_query
from knowledge.domain.paging import checked_limit
from knowledge.domain.text import normalise
from knowledge.ports import ItemStore
from knowledge.services.item_index import ItemIndex, searchable
from knowledge.services.near_items import Fallback, NearItems

_logger = logging.getLogger(__name__)

# Source: specification K3.
DEFAULT_LIMIT: Final = 3
MAX_LIMIT: Final = 20
# So many more than asked for are read again before they are answered, in place of what changed a moment ago; with those
# found by meaning they are at most 60, one call. Source: own choice; ports/items, a hundred a call.
_SPARE = 20


class Signal(StrEnum):
    """What an item can be found by."""

    SUBSTRING = "substring"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class ItemHit:
    """An item found."""

    item: Item
    signals: tuple[Signal, ...]
    """What found it, one or both."""


@dataclass(frozen=True, slots=True)
class ItemSearchResult:
    """What a search found, and how it searched."""

    hits: tuple[ItemHit, ...]
    signals: tuple[Signal, ...]
    """What was searched by, whether it found anything or not."""
    fallback: Fallback | None
    """Why nothing was searched for by meaning; None where it was."""


class ItemSearch:
    """Searches items; makes no difference between HTTP, MCP and tests."""

    def __init__(self, index: ItemIndex, store: ItemStore, near: NearItems) -> None:
        """`index` is of the items in `store`, and `near` of their documents."""
        self._index = index
        self._store = store
        self._near = near

    def knowledge_search(
        self,
        principal: Principal,
        query: str,
        *,
        kind: KnowledgeKind | None = None,
        status: ItemStatus | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> ItemSearchResult:
        """At most `limit` (1 to 20) items: those found by both signals, then by substring, then by meaning alone.

        The first two are ordered by reuse, most first, of equal ones the newest; the third by nearness. Reviewers
        search every status, or the one they name; everybody else published items. Nothing that is answered is older
        than this call: it costs the settings, the feed of changes and one read of every candidate; by meaning one
        embedding, one search and one read of the registry.

        Raises:
            InvalidQuery, InvalidInput: the query or the limit cannot be used.
            NotPermitted: the status is for reviewers.
            DependencyUnavailable: the table did not answer.
        """
        statuses = _statuses_for(principal, status)
        check_query(query)
        checked_limit(limit, most=MAX_LIMIT)
        wait = self._near.ask(query, kind=kind)
        self._index.refresh()
        by_substring = self._index.matching(query, statuses=statuses, kind=kind, limit=limit + _SPARE)
        near = wait()
        # Strongly consistent: a moment ago one of them may have been archived, edited or reused.
        found = self._store.read_all(list(dict.fromkeys([*by_substring, *near.similarities])))
        places = {item_id: place for place, item_id in enumerate(near.similarities)}
        wanted = normalise(query)
        hits = [
            ItemHit(item, signals)
            for item in found.values()
            if item.status in statuses
            and kind in (None, item.draft.kind)
            and (signals := _signals(wanted in searchable(item.draft), item.item_id in places))
        ]
        hits.sort(key=lambda hit: _place(hit, places))
        extra = {"candidates": len(found), "hits": len(hits[:limit]), "fallback": near.fallback}
        _logger.info("items_searched", extra=extra)
        return ItemSearchResult(tuple(hits[:limit]), _signals(True, near.fallback is None), near.fallback)


def _statuses_for(principal: Principal, status: ItemStatus | None) -> frozenset[ItemStatus]:
    if status is ItemStatus.PUBLISHED or (status is None and principal.role.rank < Role.REVIEWER.rank):
        principal.require(Role.READER, "search items")
        return frozenset({ItemStatus.PUBLISHED})
    principal.require(Role.REVIEWER, f"search items that are {status}")
    return frozenset(ItemStatus) if status is None else frozenset({status})


def _signals(by_substring: bool, by_meaning: bool) -> tuple[Signal, ...]:
    return (Signal.SUBSTRING,) * by_substring + (Signal.VECTOR,) * by_meaning


def _place(hit: ItemHit, places: Mapping[ItemId, int]) -> tuple[int, float, float, ItemId]:
    """Sorts as K4 says."""
    item = hit.item
    if hit.signals == (Signal.VECTOR,):
        return 2, places[item.item_id], 0.0, item.item_id
    return 2 - len(hit.signals), -item.reuse_count, -item.updated_at.timestamp(), item.item_id
