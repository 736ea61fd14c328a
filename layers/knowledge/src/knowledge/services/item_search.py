"""Search for knowledge items: by substring always, by meaning where the settings and the embedder allow it (K4)."""

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from knowledge.domain.access import Principal, Role
from knowledge.domain.document import KnowledgeBasePath
from knowledge.domain.item import Item, ItemId, ItemStatus, KnowledgeKind, item_named_by
from knowledge.domain.lookup import check_query
from knowledge.domain.text import normalise
from knowledge.errors import InvalidInput, KnowledgeError
from knowledge.ports import ConfigStore, ItemStore
from knowledge.services.item_index import ItemIndex, searchable
from knowledge.services.semantic import Ranking, SemanticHit, SemanticSearch

_logger = logging.getLogger(__name__)

# Source: specification K3.
DEFAULT_LIMIT: Final = 3
MAX_LIMIT: Final = 20
# Read again before they are answered, with those found by meaning in one call. Source: ports/items, a hundred a call.
_CANDIDATES = 100 - MAX_LIMIT


class Signal(StrEnum):
    """What an item can be found by."""

    SUBSTRING = "substring"
    VECTOR = "vector"


class Fallback(StrEnum):
    """Why nothing was searched for by meaning."""

    VECTORS_OFF = "vectors_off"
    """The settings say so."""
    EMBEDDING_FAILED = "embedding_failed"
    """The embedder, or the vectors, could not be asked in time."""


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


class ItemSearch:
    """Searches items; makes no difference between HTTP, MCP and tests."""

    def __init__(
        self,
        index: ItemIndex,
        store: ItemStore,
        semantic: SemanticSearch,
        configs: ConfigStore,
        base: KnowledgeBasePath,
        *,
        semantic_timeout_s: float,
        executor: Executor | None = None,
    ) -> None:
        """`executor` runs the search by meaning, so that a slow one is left behind after `semantic_timeout_s`."""
        self._index = index
        self._store = store
        self._semantic = semantic
        self._configs = configs
        self._base = base
        self._semantic_timeout_s = semantic_timeout_s
        self._executor = executor or ThreadPoolExecutor(max_workers=4, thread_name_prefix="items-semantic")

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

        The first two are ordered by reuse, most first, of equal ones the newest; the third by nearness. By meaning an
        item is found when it has, by itself, the evidence from which this base has an answer. Reviewers search every
        status, or the one they name; everybody else published items. Nothing that is answered is older than this call:
        a feed of the changes, the settings, and one read of every candidate; by meaning one embedding, one search, one
        read of the registry.

        Raises:
            InvalidQuery, InvalidInput: the query or the limit cannot be used.
            NotPermitted: the status is for reviewers.
            DependencyUnavailable: the table did not answer.
        """
        statuses = _statuses_for(principal, status)
        check_query(query)
        if not 1 <= limit <= MAX_LIMIT:
            raise InvalidInput(f"limit is {limit}; it must be from 1 to {MAX_LIMIT}", field="limit")
        asked = self._ask(query, kind) if self._configs.read().config.vector_enabled else None
        self._index.refresh()
        by_substring = self._index.matching(query, statuses=statuses, kind=kind, limit=_CANDIDATES)
        ranking = self._wait(asked) if asked else None
        near = self._items_of(ranking.answers if ranking else ())
        # Strongly consistent: a moment ago one of them may have been archived, edited or reused.
        found = self._store.read_all(list(dict.fromkeys([*by_substring, *near])))
        wanted = normalise(query)
        hits = [
            ItemHit(item, signals)
            for item in found.values()
            if item.status in statuses
            and kind in (None, item.draft.kind)
            and (signals := _signals(wanted in searchable(item.draft.title, item.draft.content), item.item_id in near))
        ]
        hits.sort(key=lambda hit: _place(hit, near))
        fallback = Fallback.VECTORS_OFF if asked is None else None if ranking else Fallback.EMBEDDING_FAILED
        extra = {"candidates": len(found), "hits": len(hits[:limit]), "fallback": fallback}
        _logger.info("items_searched", extra=extra)
        return ItemSearchResult(tuple(hits[:limit]), _signals(True, ranking is not None), fallback)

    def _ask(self, query: str, kind: KnowledgeKind | None) -> "Future[Ranking]":
        kinds = KnowledgeKind if kind is None else (kind,)
        folders = [f"{self._base.prefix}{one}/" for one in kinds]
        return self._executor.submit(self._semantic.rank, query, top_k=MAX_LIMIT, folders=folders)

    def _wait(self, asked: "Future[Ranking]") -> Ranking | None:
        """What was found by meaning, None when that failed."""
        try:
            return asked.result(timeout=self._semantic_timeout_s)
        except Exception as error:  # where another thread's work ends: what was found by substring is answered
            asked.cancel()
            # The text of an error that is not ours may hold the query.
            reason = str(error) if isinstance(error, KnowledgeError) else type(error).__name__
            is_unexpected = not isinstance(error, KnowledgeError | TimeoutError)
            _logger.warning("items_not_searched_by_meaning", extra={"reason": reason}, exc_info=is_unexpected)
            return None

    def _items_of(self, answers: Sequence[SemanticHit]) -> Mapping[ItemId, int]:
        """The place of each item whose document is among `answers`; other documents of the folders are left out."""
        named = (item_named_by(hit.chunk.file_path, self._base) for hit in answers)
        return {item_id: place for place, item_id in enumerate(named) if item_id is not None}


def _statuses_for(principal: Principal, status: ItemStatus | None) -> frozenset[ItemStatus]:
    if status is ItemStatus.PUBLISHED or (status is None and principal.role.rank < Role.REVIEWER.rank):
        principal.require(Role.READER, "search items")
        return frozenset({ItemStatus.PUBLISHED})
    principal.require(Role.REVIEWER, f"search items that are {status}")
    return frozenset(ItemStatus) if status is None else frozenset({status})


def _signals(by_substring: bool, by_meaning: bool) -> tuple[Signal, ...]:
    return (Signal.SUBSTRING,) * by_substring + (Signal.VECTOR,) * by_meaning


def _place(hit: ItemHit, near: Mapping[ItemId, int]) -> tuple[int, float, float, ItemId]:
    """Sorts as K4 says."""
    item = hit.item
    if hit.signals == (Signal.VECTOR,):
        return 2, near[item.item_id], 0.0, item.item_id
    return 2 - len(hit.signals), -item.reuse_count, -item.updated_at.timestamp(), item.item_id
