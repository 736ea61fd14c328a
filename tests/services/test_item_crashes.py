"""Killed before any of its calls to any store, a command is completed by the same command, the sweep, or reconcile."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from knowledge.domain.item import SETTLING, Item, ItemStatus
from knowledge.domain.timeline import EventType
from knowledge.errors import VersionConflict
from tests.services.items_world import REVIEWER, ItemsWorld
from tests.services.world import Died, MortalPort

CANDIDATE, PENDING, PUBLISHED, ARCHIVED = ItemStatus
# More than any command makes; a command that outlives it is one that goes round in circles.
MOST_CALLS = 200


@dataclass(frozen=True)
class Command:
    """A command on an item that `before` makes, and what has to be of the item after it."""

    before: Callable[[ItemsWorld], Item]
    run: Callable[[ItemsWorld, Item], object]
    status: ItemStatus
    title: str = "Pool"


def waiting(world: ItemsWorld) -> Item:
    return world.decided(world.proposed(title="Pool", tags=("ERR_POOL",)), PENDING)


def published(world: ItemsWorld) -> Item:
    return world.decided(waiting(world), PUBLISHED)


def archived(world: ItemsWorld) -> Item:
    return world.decided(published(world), ARCHIVED)


def restored(world: ItemsWorld) -> Item:
    return world.decided(archived(world), PENDING)


def edit(world: ItemsWorld, item: Item) -> object:
    changes = {"title": "Pools", "content": "Something else was learnt.", "tags": ("ERR_POOL", "ERR_OTHER")}
    return world.commands.knowledge_update(REVIEWER, item.item_id, changes, expected_version=item.version)


COMMANDS = {
    "publish": Command(waiting, lambda world, item: world.decided(item, PUBLISHED), PUBLISHED),
    "archive": Command(published, lambda world, item: world.decided(item, ARCHIVED), ARCHIVED),
    "archive unseen": Command(waiting, lambda world, item: world.decided(item, ARCHIVED), ARCHIVED),
    "edit": Command(published, edit, PUBLISHED, "Pools"),
    "restore": Command(archived, lambda world, item: world.decided(item, PENDING), PENDING),
    "publish again": Command(
        lambda world: world.decided(archived(world), PENDING),
        lambda world, item: world.decided(item, PUBLISHED),
        PUBLISHED,
    ),
}


def retry(world: ItemsWorld, command: Command, item: Item) -> None:
    command.run(world, item)


def sweep(world: ItemsWorld, command: Command, item: Item) -> None:
    now = world.now()
    world.now = lambda: now + SETTLING + timedelta(seconds=1)
    world.sweep.sweep(deadline=float("inf"))


def reconcile(world: ItemsWorld, command: Command, item: Item) -> None:
    *_, report = world.reconcile(settled_after=timedelta(0)).run(repair=True)
    assert report.unrepaired == 0


@pytest.mark.parametrize("completed_by", [retry, sweep, reconcile])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_was_killed_anywhere_is_completed(
    name: str, completed_by: Callable[[ItemsWorld, Command, Item], None]
) -> None:
    command = COMMANDS[name]
    for calls in range(MOST_CALLS):
        life: list[int | None] = [None]
        world = ItemsWorld(port=lambda adapter, life=life: MortalPort(adapter, life))
        item = command.before(world)
        events = world.events(item)
        life[0] = calls
        try:
            command.run(world, item)
        except Died:
            is_dead = True
        else:
            is_dead = False
        life[0] = None
        stored = world.items.read(item.item_id)
        if is_dead and stored.version > item.version:
            completed_by(world, command, item)
            stored = world.items.read(item.item_id)
        if stored.version > item.version:
            assert (stored.status, stored.draft.title) == (command.status, command.title)
            told = world.events(item)[len(events) :]
            moved = EventType.EDITED if name == "edit" else EventType.STATUS_CHANGED
            embedded = [EventType.EMBEDDED] if command.status is PUBLISHED else []
            assert [event.type for event in told] == [moved, *embedded]
        else:
            assert (stored, world.events(item)) == (item, events)
        world.assert_agreement()
        if not is_dead:
            return
    pytest.fail(f"{name} makes more than {MOST_CALLS} calls")


def test_a_decision_that_took_effect_and_was_not_answered_is_one_decision_when_it_is_sent_again() -> None:
    world = ItemsWorld()
    item = waiting(world)
    world.items.broken_after_effect.add("write")
    with pytest.raises(Exception, match="injected"):
        world.decided(item, PUBLISHED)
    world.items.broken_after_effect.clear()
    answer = world.decided(item, PUBLISHED)
    assert world.decided(item, PUBLISHED) == answer
    assert answer.version == item.version + 1
    assert [event.type for event in world.events(item)].count(EventType.STATUS_CHANGED) == 2
    world.assert_agreement()


def test_a_writer_that_is_told_of_its_own_write_as_a_conflict_is_answered_as_usual() -> None:
    """A store may try again after an answer was lost, and then meets what it wrote itself."""
    world = ItemsWorld()
    item = waiting(world)
    write = world.items.write

    def written_twice(before: Item, after: Item, event: object) -> None:
        write(before, after, event)
        raise VersionConflict(before.item_id)

    world.items._adapter.write = written_twice
    assert world.decided(item, PUBLISHED) == replace(
        world.items.read(item.item_id), version=item.version + 1, status=PUBLISHED
    )
