"""The life of a knowledge item, as a table: who may move one from where to where. Source: specification K2."""

from collections.abc import Mapping
from typing import Final

from knowledge.domain.access import Principal, Role
from knowledge.domain.item import Item, ItemStatus
from knowledge.errors import Conflict

_CANDIDATE, _PENDING, _PUBLISHED, _ARCHIVED = ItemStatus

MOVES: Final[Mapping[tuple[ItemStatus, ItemStatus], Role]] = {
    (_CANDIDATE, _PENDING): Role.WRITER,
    (_PENDING, _PUBLISHED): Role.REVIEWER,
    (_CANDIDATE, _ARCHIVED): Role.REVIEWER,
    (_PENDING, _ARCHIVED): Role.REVIEWER,
    (_PUBLISHED, _ARCHIVED): Role.REVIEWER,
    (_ARCHIVED, _PENDING): Role.REVIEWER,
}
# Whoever may change what an item of a status says; what is archived is restored first.
EDITORS: Final[Mapping[ItemStatus, Role]] = {
    _CANDIDATE: Role.WRITER,
    _PENDING: Role.REVIEWER,
    _PUBLISHED: Role.REVIEWER,
}


def require_a_move_to(status: ItemStatus, principal: Principal) -> None:
    """Raises NotPermitted when no item, whatever its status, may be moved to `status` by this caller.

    No state is told to whom it does not concern. Nothing moves to `candidate`: that is for `move` to say.
    """
    roles = [role for (_, to), role in MOVES.items() if to is status]
    principal.require(min(roles, key=lambda role: role.rank, default=Role.WRITER), f"move an item to {status}")


def move(before: ItemStatus, after: ItemStatus, principal: Principal) -> None:
    """Nothing, if this caller may move an item so.

    Raises:
        Conflict: no item moves so; names the statuses that it can move to.
        NotPermitted: the caller's role is not enough.
    """
    needed = MOVES.get((before, after))
    if needed is None:
        allowed = ", ".join(to for at, to in MOVES if at is before)
        raise Conflict(f"the item is {before} and cannot become {after}; it can become {allowed}")
    principal.require(needed, f"move an item from {before} to {after}")


def edit(status: ItemStatus, principal: Principal) -> None:
    """Nothing, if this caller may edit an item of that status. Raises Conflict, NotPermitted."""
    needed = EDITORS.get(status)
    if needed is None:
        raise Conflict(f"the item is {status} and cannot be edited; restore it first")
    principal.require(needed, f"edit an item that is {status}")


def may_see(item: Item, principal: Principal) -> bool:
    """True when this caller may read the item: what no person has approved is for reviewers only."""
    return item.is_published or principal.role.rank >= Role.REVIEWER.rank


def may_change(item: Item, principal: Principal) -> bool:
    """True when this caller may be told what is wrong with a change: it may see the item, or proposed the candidate."""
    is_own_candidate = item.status is _CANDIDATE and item.created_by == principal.name
    return may_see(item, principal) or is_own_candidate
