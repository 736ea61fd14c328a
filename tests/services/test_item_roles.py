"""Every move between two statuses, and every other command, by every role. Source: specification K2, N6."""

import itertools
from collections.abc import Callable

import pytest

from knowledge.domain.access import Principal, Role
from knowledge.domain.item import Item, ItemStatus
from knowledge.errors import Conflict, KnowledgeError, NotFound, NotPermitted
from tests.services.items_world import REVIEWER, WRITER, ItemsWorld

CANDIDATE, PENDING, PUBLISHED, ARCHIVED = ItemStatus
WAYS = {
    CANDIDATE: (),
    PENDING: (PENDING,),
    PUBLISHED: (PENDING, PUBLISHED),
    ARCHIVED: (ARCHIVED,),
}
ALLOWED = {
    (CANDIDATE, PENDING),
    (PENDING, PUBLISHED),
    (CANDIDATE, ARCHIVED),
    (PENDING, ARCHIVED),
    (PUBLISHED, ARCHIVED),
    (ARCHIVED, PENDING),
}
READER = Principal("agent", Role.READER)
OTHER_WRITER = Principal("another", Role.WRITER)
ADMIN = Principal("root", Role.ADMIN)
EVERYBODY = (READER, WRITER, OTHER_WRITER, REVIEWER, ADMIN)
DECIDERS = (REVIEWER, ADMIN)

each_status = pytest.mark.parametrize("status", ItemStatus)
each_caller = pytest.mark.parametrize("caller", EVERYBODY, ids=lambda caller: caller.name)


def item_in(world: ItemsWorld, status: ItemStatus) -> Item:
    """One that WRITER proposed."""
    return world.decided(world.proposed(), *WAYS[status])


def expected_of_a_move(before: ItemStatus, after: ItemStatus, caller: Principal) -> type[KnowledgeError] | None:
    if caller in DECIDERS:
        return None if (before, after) in ALLOWED else Conflict
    # Whoever may never move anything there is told so, and nothing else.
    if caller is READER or after in (PUBLISHED, ARCHIVED):
        return NotPermitted
    if before is PUBLISHED:
        return Conflict
    if before is CANDIDATE and caller is WRITER:
        return None if after is PENDING else Conflict
    return NotFound


@each_caller
@pytest.mark.parametrize(("before", "after"), list(itertools.product(ItemStatus, ItemStatus)))
def test_every_move_by_every_role_is_made_or_refused_as_the_table_says_K2(
    before: ItemStatus, after: ItemStatus, caller: Principal
) -> None:
    world = ItemsWorld()
    item = item_in(world, before)
    events = world.events(item)
    error = expected_of_a_move(before, after, caller)
    if error is None:
        moved = world.decided(item, after, by=caller)
        assert (moved.status, moved.version, moved.updated_by) == (after, item.version + 1, caller.name)
        assert world.items.read(item.item_id) == moved
        return
    with pytest.raises(error) as refused:
        world.decided(item, after, by=caller)
    assert type(refused.value) is error
    assert world.items.read(item.item_id) == item
    assert world.events(item) == events


@pytest.mark.parametrize("before", ItemStatus)
def test_a_move_that_no_item_makes_is_refused_with_those_it_can_make_K2(before: ItemStatus) -> None:
    world = ItemsWorld()
    item = item_in(world, before)
    for after in ItemStatus:
        if (before, after) not in ALLOWED:
            with pytest.raises(Conflict) as refused:
                world.decided(item, after)
            named = str(refused.value).rpartition("it can become ")[2].split(", ")
            assert set(named) == {to for at, to in ALLOWED if at is before}


@each_caller
@each_status
def test_only_reviewers_read_what_nobody_has_approved_N6(status: ItemStatus, caller: Principal) -> None:
    world = ItemsWorld()
    item = item_in(world, status)
    if status is PUBLISHED or caller in DECIDERS:
        assert world.commands.knowledge_get(caller, item.item_id).item == item
        listed = world.commands.knowledge_list(caller, status=status).items
        assert listed == (item,)
    else:
        with pytest.raises(NotFound):
            world.commands.knowledge_get(caller, item.item_id)
        with pytest.raises(NotPermitted, match="reviewer"):
            world.commands.knowledge_list(caller, status=status)
    assert world.commands.knowledge_list(caller).items == ((item,) if status is PUBLISHED else ())


@each_caller
@each_status
def test_an_edit_by_every_role_is_made_or_refused(status: ItemStatus, caller: Principal) -> None:
    world = ItemsWorld()
    item = item_in(world, status)

    def edit() -> Item:
        return world.commands.knowledge_update(
            caller, item.item_id, {"title": "Another title"}, expected_version=item.version
        )

    may = (status is not ARCHIVED and caller in DECIDERS) or (status is CANDIDATE and caller is WRITER)
    if may:
        edited = edit()
        assert (edited.draft.title, edited.version, edited.status) == ("Another title", item.version + 1, status)
        return
    if caller is READER or (status is PUBLISHED and caller not in DECIDERS):
        error: type[KnowledgeError] = NotPermitted
    else:
        error = Conflict if caller in DECIDERS else NotFound
    with pytest.raises(error):
        edit()
    assert world.items.read(item.item_id) == item


@each_caller
@each_status
def test_reuse_is_counted_of_published_items_whoever_asks(status: ItemStatus, caller: Principal) -> None:
    world = ItemsWorld()
    item = item_in(world, status)
    if status is PUBLISHED:
        assert world.commands.knowledge_record_reuse(caller, item.item_id).reuse_count == 1
    else:
        with pytest.raises(NotFound):
            world.commands.knowledge_record_reuse(caller, item.item_id)
        assert world.items.read(item.item_id) == item


COMMANDS_OF_REVIEWERS: dict[str, Callable[[ItemsWorld, Principal, Item], object]] = {
    "inbox": lambda world, caller, _: world.commands.knowledge_list_candidates(caller),
    "timeline": lambda world, caller, item: world.commands.timeline(caller, item.item_id),
    "archive": lambda world, caller, item: world.decisions.knowledge_archive(
        caller, item.item_id, expected_version=item.version
    ),
    "restore": lambda world, caller, item: world.decisions.restore(caller, item.item_id, expected_version=item.version),
    "decide": lambda world, caller, _: world.decisions.decide(caller, []),
    "retry": lambda world, caller, item: world.decisions.retry_embedding(caller, item.item_id),
}


@pytest.mark.parametrize("command", COMMANDS_OF_REVIEWERS)
@pytest.mark.parametrize("caller", [READER, WRITER], ids=lambda caller: caller.name)
def test_what_is_for_reviewers_is_refused_to_everybody_else_whatever_the_item_is(
    command: str, caller: Principal
) -> None:
    world = ItemsWorld()
    for status in ItemStatus:
        item = item_in(world, status)
        with pytest.raises(NotPermitted, match="reviewer"):
            COMMANDS_OF_REVIEWERS[command](world, caller, item)
        assert world.items.read(item.item_id) == item


def test_a_reader_may_not_propose_A4() -> None:
    world = ItemsWorld()
    item = world.published()
    with pytest.raises(NotPermitted, match="writer"):
        world.commands.knowledge_create(READER, item.draft)


def test_a_proposal_is_a_candidate_whoever_makes_it_A4() -> None:
    world = ItemsWorld()
    for caller in (WRITER, REVIEWER, ADMIN):
        item = world.commands.knowledge_create(caller, world.proposed().draft).item
        assert (item.status, item.version, item.created_by) == (CANDIDATE, 1, caller.name)
