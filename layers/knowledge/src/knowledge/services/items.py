"""The commands on what knowledge items say: list, read, propose, edit, reuse. Source: specification K3.

Decisions, by which items come to be published, are in services/item_decisions.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from knowledge.domain import lifecycle
from knowledge.domain.access import Principal, Role
from knowledge.domain.item import Draft, Item, ItemId, ItemStatus, KnowledgeKind, new_item_id
from knowledge.domain.paging import checked_limit
from knowledge.domain.timeline import created, edited
from knowledge.errors import Conflict, InvalidInput, KnowledgeError, VersionConflict
from knowledge.ports import ItemPage, ItemStore, TimelinePage
from knowledge.services.item_access import refuse_unless, require_version, stored, visible
from knowledge.services.item_documents import ItemDocuments
from knowledge.services.similar_items import Similar, SimilarItems

_logger = logging.getLogger(__name__)

_FIELDS = tuple(field.name for field in fields(Draft))


@dataclass(frozen=True, slots=True)
class Reviewed:
    """An item, and the published ones that are closest to what it says."""

    item: Item
    similar: Sequence[Similar] = ()


class KnowledgeItems:
    """Reads and proposes. What no person has approved is shown to reviewers only, in every command."""

    def __init__(
        self,
        store: ItemStore,
        documents: ItemDocuments,
        similar: SimilarItems,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`documents` and `similar` are those of the items in `store`; `now` is aware UTC."""
        self._store = store
        self._documents = documents
        self._similar = similar
        self._now = now

    def knowledge_list(
        self,
        principal: Principal,
        *,
        status: ItemStatus | None = None,
        kind: KnowledgeKind | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> ItemPage:
        """Up to `limit` (1 to 100) items of a status, published ones when none is named, whoever asks.

        Raises:
            NotPermitted: the status is another one, and the caller no reviewer.
            InvalidInput: limit or cursor is unusable.
        """
        status = status or ItemStatus.PUBLISHED
        if status is not ItemStatus.PUBLISHED:
            principal.require(Role.REVIEWER, f"list items that are {status}")
        return self._store.list({status}, kind=kind, cursor=cursor, limit=checked_limit(limit))

    def knowledge_list_candidates(
        self,
        principal: Principal,
        *,
        kind: KnowledgeKind | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> ItemPage:
        """The inbox: candidates and what waits for review, the highest confidence first. Raises as `knowledge_list`."""
        principal.require(Role.REVIEWER, "see the inbox")
        statuses = {ItemStatus.CANDIDATE, ItemStatus.PENDING_REVIEW}
        return self._store.list(statuses, kind=kind, cursor=cursor, limit=checked_limit(limit))

    def knowledge_get(self, principal: Principal, item_id: ItemId) -> Reviewed:
        """The item; while it waits for a decision, with the published items that it may repeat or contradict.

        Raises NotFound when there is none that this caller may read.
        """
        item = visible(self._store, item_id, principal)
        is_open = item.status in (ItemStatus.CANDIDATE, ItemStatus.PENDING_REVIEW)
        return Reviewed(item, self._closest(item) if is_open else ())

    def timeline(
        self, principal: Principal, item_id: ItemId, *, cursor: str | None = None, limit: int = 50
    ) -> TimelinePage:
        """Up to `limit` (1 to 100) events of the item, the oldest first.

        Raises:
            NotPermitted: the caller is no reviewer.
            NotFound: there is no such item.
            InvalidInput: limit or cursor is unusable.
        """
        principal.require(Role.REVIEWER, "read timelines")
        stored(self._store, item_id)
        return self._store.timeline(item_id, cursor=cursor, limit=checked_limit(limit))

    def knowledge_create(self, principal: Principal, draft: Draft) -> Reviewed:
        """A new candidate, with the published items that are closest to it. Raises NotPermitted: it takes a writer."""
        principal.require(Role.WRITER, "propose items")
        at = self._now()
        item = Item(new_item_id(), draft, ItemStatus.CANDIDATE, principal.name, at, at, principal.name)
        self._store.create(item, created(item))
        _logger.info("item_created", extra={"item_id": item.item_id, "kind": draft.kind.value, "actor": principal.name})
        return Reviewed(item, self._closest(item))

    def knowledge_update(
        self, principal: Principal, item_id: ItemId, changes: Mapping[str, object], *, expected_version: int
    ) -> Item:
        """The item says what `changes`, values of fields of Draft, say; if it is published, so does the next lookup.

        The same edit sent again is answered as the first time. What changes nothing writes nothing.

        Raises:
            InvalidInput: a field or its value cannot be used; nothing was changed.
            NotPermitted: the caller's role is not enough.
            NotFound: there is no item that this caller may read, nor a candidate of its own.
            Outdated: it is not the expected version any more; names the current one.
            Conflict: an item of its status cannot be edited so.
            DependencyUnavailable: a store failed; the same command again finishes what is left.
        """
        principal.require(Role.WRITER, "edit items")
        if unknown := [name for name in changes if name not in _FIELDS]:
            raise InvalidInput(f"{unknown[0]}: not a field; known are {', '.join(_FIELDS)}", field=unknown[0])
        item = self._changeable(principal, item_id)
        values: dict[str, Any] = dict(changes)
        draft = replace(item.draft, **values)
        if not _is_repeated(item, draft, principal, expected_version):
            require_version(item, expected_version)
            item = self._edited(item, draft, principal)
        return self._documents.settle_one(item, by=principal.name)

    def knowledge_record_reuse(
        self, principal: Principal, item_id: ItemId, *, expected_version: int | None = None
    ) -> Item:
        """One more reuse of a published item is counted.

        Raises:
            NotFound: no published item has this id.
            Outdated: it is not the expected version, if there is one.
        """
        principal.require(Role.READER, "record a reuse")
        item = stored(self._store, item_id)
        refuse_unless(item.is_published)
        if expected_version is not None:
            require_version(item, expected_version)
        return self._store.record_reuse(item_id, actor=principal.name, at=self._now())

    def _edited(self, item: Item, draft: Draft, principal: Principal) -> Item:
        lifecycle.edit(item.status, principal)
        if draft == item.draft:
            return item
        if draft.kind is not item.draft.kind and (item.is_published or not item.is_settled):
            raise Conflict(f"the kind of an item that is {item.status} cannot be changed; archive and restore it first")
        after = item.next(by=principal.name, at=self._now(), draft=draft)
        try:
            self._store.write(item, after, edited(item, after))
        except VersionConflict:
            current = self._changeable(principal, item.item_id)
            if _is_repeated(current, draft, principal, item.version):
                return current
            require_version(current, item.version)
            raise
        _logger.info("item_edited", extra={"item_id": item.item_id, "actor": principal.name, "version": after.version})
        return after

    def _changeable(self, principal: Principal, item_id: ItemId) -> Item:
        item = stored(self._store, item_id)
        refuse_unless(lifecycle.may_change(item, principal))
        return item

    def _closest(self, item: Item) -> Sequence[Similar]:
        """An item is not kept from anybody because what is like it cannot be found."""
        try:
            return self._similar.closest(item.draft, item_id=item.item_id)
        except KnowledgeError as error:
            _logger.warning("similar_items_not_found", extra={"item_id": item.item_id, "reason": str(error)})
            return ()


def _is_repeated(item: Item, draft: Draft, principal: Principal, expected_version: int) -> bool:
    """True when this very edit is what made the current version."""
    is_next = item.version == expected_version + 1
    return is_next and item.updated_by == principal.name and item.draft == draft
