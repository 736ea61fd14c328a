"""Two at one item: whatever one does between any two calls of the other, what nobody published is never found."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from knowledge.domain.access import Principal, Role
from knowledge.domain.item import Item, ItemStatus, KnowledgeKind
from knowledge.errors import Conflict
from tests.services.items_world import REVIEWER, ItemsWorld
from tests.services.world import Died, Port

CANDIDATE, PENDING, PUBLISHED, ARCHIVED = ItemStatus
OTHER = Principal("second", Role.REVIEWER)
TAG = "ERR_POOL"
MOST_CALLS = 200


class Between:
    """What is done before the call with a number, and after each later one; the process may die at another call."""

    def __init__(self) -> None:
        self.is_counting = False
        self.calls_left = 0
        self.action: Callable[[], object] = lambda: None
        self.check: Callable[[], object] | None = None
        self.calls_to_live: int | None = None
        self._is_inside = False

    def begin(self, calls: int, action: Callable[[], object]) -> None:
        """From now on calls are counted."""
        self.is_counting, self.calls_left, self.action = True, calls, action

    def end(self) -> bool:
        """True when there were too few calls for anything to happen."""
        self.is_counting = False
        return self.calls_left >= 0

    def at_a_call(self) -> None:
        if self._is_inside or not self.is_counting:
            return
        self._is_inside = True
        try:
            if self.calls_left == 0:
                with suppress(Conflict):  # it may come too late
                    self.action()
            elif self.calls_left < 0 and self.check:
                self.check()
        finally:
            self._is_inside = False
        self.calls_left -= 1
        if self.calls_left < 0 and self.calls_to_live is not None:
            if self.calls_to_live == 0:
                raise Died
            self.calls_to_live -= 1


class SharedPort(Port):
    """A port whose calls are counted together with those of all others."""

    def __init__(self, adapter: object, between: Between) -> None:
        super().__init__(adapter)
        self._between = between

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        if not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            self._between.at_a_call()
            return value(*args, **kwargs)

        return call


def current(world: ItemsWorld, item: Item) -> Item:
    found: Item = world.items.read(item.item_id)
    return found


def publish(world: ItemsWorld, item: Item) -> object:
    return world.decided(item, PUBLISHED)


def archive(world: ItemsWorld, item: Item) -> object:
    return world.decided(item, ARCHIVED)


def edit(world: ItemsWorld, item: Item) -> object:
    changes = {"content": "Something else was learnt."}
    return world.commands.knowledge_update(REVIEWER, item.item_id, changes, expected_version=item.version)


def others_archive(world: ItemsWorld, item: Item) -> None:
    world.decided(current(world, item), ARCHIVED, by=OTHER)


def others_edit(world: ItemsWorld, item: Item) -> None:
    now = current(world, item)
    world.commands.knowledge_update(OTHER, item.item_id, {"title": "Others"}, expected_version=now.version)


def others_restore(world: ItemsWorld, item: Item) -> None:
    """Archived, restored, and of another kind: its file would be elsewhere."""
    now = world.decided(current(world, item), ARCHIVED, PENDING, by=OTHER)
    kind = {"kind": KnowledgeKind.DIAGNOSIS}
    world.commands.knowledge_update(OTHER, item.item_id, kind, expected_version=now.version)


def others_publish_elsewhere(world: ItemsWorld, item: Item) -> None:
    others_restore(world, item)
    world.decided(current(world, item), PUBLISHED, by=OTHER)


def somebody_drops_a_file(world: ItemsWorld, item: Item) -> None:
    world.drop(item.file_path(world.base), "---\ntitle: Mine\nkeywords: [ERR_MINE]\n---\nMine.")
    follow(world, item)


def somebody_removes_the_file(world: ItemsWorld, item: Item) -> None:
    world.objects.delete(item.file_path(world.base))
    follow(world, item)


def the_sweep_comes(world: ItemsWorld, item: Item) -> None:
    world.item_documents.settle([item.item_id])


def follow(world: ItemsWorld, *items: Item) -> None:
    """As the indexer does with the bucket's event."""
    paths = [item.file_path(world.base) for item in items]
    failed = world.item_documents.put_right(paths)
    assert failed == {}
    world.converger.converge_all(paths)


COMMANDS = {"publish": publish, "archive": archive, "edit": edit}
MEANWHILE = (
    others_archive,
    others_edit,
    others_restore,
    others_publish_elsewhere,
    somebody_drops_a_file,
    somebody_removes_the_file,
    the_sweep_comes,
)


def made(name: str, between: Between) -> tuple[ItemsWorld, Item]:
    world = ItemsWorld(port=lambda adapter: SharedPort(adapter, between))
    item = world.decided(world.proposed(title="Pool", tags=(TAG,)), PENDING)
    return world, item if name == "publish" else world.decided(item, PUBLISHED)


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("name", COMMANDS)
def test_whatever_happens_between_two_calls_of_a_command_item_file_and_index_agree(
    name: str, meanwhile: Callable[[ItemsWorld, Item], None]
) -> None:
    for calls in range(MOST_CALLS):
        between = Between()
        world, item = made(name, between)
        between.begin(calls, partial(meanwhile, world, item))
        try:
            COMMANDS[name](world, item)
        except Conflict:
            # The other one came before this one had written anything.
            assert current(world, item).updated_by == OTHER.name
        is_through = between.end()
        if meanwhile in (somebody_drops_a_file, somebody_removes_the_file):
            # What the command did not see, the event tells.
            follow(world, item, current(world, item))
        world.assert_agreement()
        if is_through:
            return
    pytest.fail(f"{name} makes more than {MOST_CALLS} calls")


def retry(world: ItemsWorld, item: Item) -> object:
    return world.decisions.retry_embedding(REVIEWER, item.item_id)


@pytest.mark.parametrize("command", [publish, archive, edit, retry])
def test_a_file_that_somebody_drops_between_two_calls_is_not_indexed_when_the_command_is_answered(
    command: Callable[[ItemsWorld, Item], object],
) -> None:
    for calls in range(MOST_CALLS):
        between = Between()
        world = ItemsWorld(port=lambda adapter, between=between: SharedPort(adapter, between))
        item = world.decided(world.proposed(title="Pool", tags=(TAG,)), PENDING)
        world.embedder.broken = {"embed_passages"} if command is retry else set()
        item = item if command is publish else world.decided(item, PUBLISHED)
        world.embedder.broken = set()
        mine = "---\ntitle: Mine\nkeywords: [ERR_MINE]\n---\nMine."
        between.begin(calls, partial(world.drop, item.file_path(world.base), mine))
        command(world, item)
        is_through = between.end()
        assert world.ask("ERR_MINE").primary is None
        follow(world, item)
        world.assert_agreement()
        if is_through:
            return
    pytest.fail(f"{command.__name__} makes more than {MOST_CALLS} calls")


@pytest.mark.parametrize("name", ["publish", "edit"])
def test_once_an_item_is_archived_no_other_process_brings_it_back_into_an_answer_not_even_one_that_dies(
    name: str,
) -> None:
    deaths = 0
    for calls in range(MOST_CALLS):
        for calls_to_live in [None, *range(MOST_CALLS)]:
            between = Between()
            world, item = made(name, between)
            reader = world.instance()[1]
            reader.lookup_knowledge(REVIEWER, TAG)

            def nothing_is_found(reader: Any = reader) -> None:
                assert reader.lookup_knowledge(REVIEWER, TAG).primary is None
                assert reader.lookup_knowledge(REVIEWER, "What was learnt?").supplement is None

            between.check, between.calls_to_live = nothing_is_found, calls_to_live
            between.begin(calls, partial(others_archive, world, item))
            try:
                COMMANDS[name](world, item)
            except Conflict:
                pass
            except Died:
                deaths += 1
            is_alive = between.calls_to_live != 0
            is_through = between.end()
            if is_through:
                assert deaths > 20
                return
            nothing_is_found()
            follow(world, item)
            world.assert_agreement()
            if calls_to_live is not None and is_alive:
                break
    pytest.fail(f"{name} makes more than {MOST_CALLS} calls")
