"""The decisions on knowledge items: every way from one status to another, and so the only way to being published."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from knowledge.domain import lifecycle
from knowledge.domain.access import Principal, Role
from knowledge.domain.item import Item, ItemId, ItemStatus
from knowledge.domain.timeline import status_changed
from knowledge.errors import Conflict, InvalidInput, KnowledgeError, Outdated, VersionConflict
from knowledge.ports import ItemStore
from knowledge.services.item_access import refuse_unless, require_version, stored
from knowledge.services.item_documents import ItemDocuments

_logger = logging.getLogger(__name__)

# Own choices. Fifty decisions are a long page of an inbox; a reason is a paragraph; what one lesson replaces fits on a
# screen.
MAX_DECISIONS = 50
MAX_NOTE_CHARS = 1000
MAX_SUPERSEDED = 10
# As in services/converge: an item that is archived because another one replaces it may be changed at the same time.
_MAX_RACES = 10


@dataclass(frozen=True, slots=True)
class Decision:
    """That an item is to have another status."""

    item_id: ItemId
    status: ItemStatus
    expected_version: int
    """The one that was decided on."""
    note: str | None = None
    """Why; for the timeline."""
    supersedes: Sequence[ItemId] = ()
    """With `published`: items that are archived because this one replaces them."""

    def __post_init__(self) -> None:
        """Raises InvalidInput, naming the field."""
        if self.note is not None and len(self.note) > MAX_NOTE_CHARS:
            raise InvalidInput(f"note is longer than {MAX_NOTE_CHARS} characters", field="note")
        if self.supersedes and self.status is not ItemStatus.PUBLISHED:
            raise InvalidInput("supersedes: only what is being published replaces others", field="supersedes")
        if len(self.supersedes) > MAX_SUPERSEDED or self.item_id in self.supersedes:
            message = f"supersedes: at most {MAX_SUPERSEDED} items, and not the item itself"
            raise InvalidInput(message, field="supersedes")


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of a decision: the item as it is stored now, or why it is not as decided."""

    item_id: ItemId
    item: Item | None
    error: Exception | None = None


class ItemDecisions:
    """Decides. Of two at once one wins; the other is told what the item is now."""

    def __init__(
        self,
        store: ItemStore,
        documents: ItemDocuments,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`documents` are those of the items in `store`; `now` is aware UTC."""
        self._store = store
        self._documents = documents
        self._now = now

    def knowledge_update_status(
        self,
        principal: Principal,
        item_id: ItemId,
        status: ItemStatus,
        *,
        expected_version: int,
        note: str | None = None,
        supersedes: Sequence[ItemId] = (),
    ) -> Item:
        """The item has this status, and the next lookup anywhere finds it, or does not find it any more.

        The same decision sent again by the same caller is answered as the first time, and finishes what that left.

        Raises:
            InvalidInput: note or `supersedes` cannot be used.
            NotPermitted: the caller's role is not enough.
            NotFound: there is no item that this caller may read, nor a candidate of its own; or none to supersede.
            Outdated: it is not the expected version any more; names the current one and its status.
            Conflict: no item moves so; names the statuses that it can move to.
            DependencyUnavailable: a store failed; the same command again finishes what is left.
        """
        decision = Decision(item_id, status, expected_version, note, supersedes)
        (decided,) = self._decide(principal, [decision])
        if decided.item is None:
            raise decided.error or Conflict("nothing was decided")
        return decided.item

    def knowledge_archive(
        self, principal: Principal, item_id: ItemId, *, expected_version: int, note: str | None = None
    ) -> Item:
        """The item is archived, and in no answer any more. Raises as `knowledge_update_status`."""
        return self.knowledge_update_status(
            principal, item_id, ItemStatus.ARCHIVED, expected_version=expected_version, note=note
        )

    def restore(self, principal: Principal, item_id: ItemId, *, expected_version: int, note: str | None = None) -> Item:
        """An archived item waits for review again. Raises as `knowledge_update_status`."""
        principal.require(Role.REVIEWER, "restore items")
        item = stored(self._store, item_id)
        if item.version == expected_version and item.status is not ItemStatus.ARCHIVED:
            raise Conflict(f"the item is {item.status}; only archived ones are restored")
        return self.knowledge_update_status(
            principal, item_id, ItemStatus.PENDING_REVIEW, expected_version=expected_version, note=note
        )

    def decide(self, principal: Principal, decisions: Sequence[Decision]) -> Sequence[Decided]:
        """What became of each decision, in order; each is on its own, and their documents are seen to together.

        Raises:
            NotPermitted: the caller is no reviewer.
            InvalidInput: there are more than 50.
        """
        principal.require(Role.REVIEWER, "decide on items")
        if len(decisions) > MAX_DECISIONS:
            message = f"there are {len(decisions)} decisions; at most {MAX_DECISIONS} are possible at once"
            raise InvalidInput(message, field="decisions")
        return self._decide(principal, decisions)

    def _decide(self, principal: Principal, decisions: Sequence[Decision]) -> Sequence[Decided]:
        written = [self._tried(principal, decision) for decision in decisions]
        touched = [item.item_id for items in written if not isinstance(items, Exception) for item in items]
        ends = self._documents.settle(dict.fromkeys(touched), by=principal.name)
        return [_decided(decision, items, ends) for decision, items in zip(decisions, written, strict=True)]

    def _tried(self, principal: Principal, decision: Decision) -> Sequence[Item] | KnowledgeError:
        try:
            return self._written(principal, decision)
        except KnowledgeError as error:
            return error

    def retry_embedding(self, principal: Principal, item_id: ItemId, *, expected_version: int | None = None) -> Item:
        """A published item whose embedding failed is embedded now, or says why it still is not.

        Raises:
            NotPermitted: the caller is no reviewer.
            NotFound: there is no such item.
            Outdated: it is not the expected version, if there is one.
            Conflict: it is not published.
            DependencyUnavailable: a store failed.
        """
        principal.require(Role.REVIEWER, "embed an item again")
        item = stored(self._store, item_id)
        if expected_version is not None:
            require_version(item, expected_version)
        if not item.is_published:
            raise Conflict(f"the item is {item.status}; only what is published is embedded")
        return self._documents.settle_one(item, by=principal.name)

    def _written(self, principal: Principal, decision: Decision) -> Sequence[Item]:
        """The decided item as it is stored now, and after it those that it replaces; their documents are to follow."""
        lifecycle.require_a_move_to(decision.status, principal)
        for item_id in decision.supersedes:
            stored(self._store, item_id)
        item = self._moved(principal, decision)
        note = f"superseded by {item.item_id}"
        return item, *(self._superseded(principal, item_id, note) for item_id in decision.supersedes)

    def _moved(self, principal: Principal, decision: Decision) -> Item:
        before = stored(self._store, decision.item_id)
        if _is_repeated(before, decision, principal):
            return before
        refuse_unless(lifecycle.may_change(before, principal))
        require_version(before, decision.expected_version)
        lifecycle.move(before.status, decision.status, principal)
        after = before.next(by=principal.name, at=self._now(), status=decision.status)
        try:
            self._store.write(before, after, status_changed(before, after, decision.note))
        except VersionConflict:
            current = stored(self._store, decision.item_id)
            if _is_repeated(current, decision, principal):
                return current
            refuse_unless(lifecycle.may_change(current, principal))
            require_version(current, decision.expected_version)
            raise
        shown = {"item_id": after.item_id, "actor": principal.name, "before": before.status, "after": after.status}
        _logger.info("item_moved", extra=shown)
        return after

    def _superseded(self, principal: Principal, item_id: ItemId, note: str) -> Item:
        for _ in range(_MAX_RACES):
            item = stored(self._store, item_id)
            if item.status is ItemStatus.ARCHIVED:
                return item
            try:
                return self._moved(principal, Decision(item_id, ItemStatus.ARCHIVED, item.version, note))
            except (VersionConflict, Outdated):
                continue
        raise Conflict(f"the item {item_id} kept changing while it was being superseded")


def _is_repeated(item: Item, decision: Decision, principal: Principal) -> bool:
    """True when this very decision, by this caller, is what made the current version."""
    is_next = item.version == decision.expected_version + 1
    return is_next and item.status is decision.status and item.updated_by == principal.name


def _decided(
    decision: Decision, written: Sequence[Item] | Exception, ends: Mapping[ItemId, Item | Exception]
) -> Decided:
    if isinstance(written, Exception):
        return Decided(decision.item_id, None, written)
    failures = [end for item in written if isinstance(end := ends[item.item_id], Exception)]
    item = ends[decision.item_id]
    if failures or isinstance(item, Exception):
        return Decided(decision.item_id, None, failures[0])
    return Decided(decision.item_id, item)
