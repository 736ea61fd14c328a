"""The index of items follows its store in few calls, from nothing, from a snapshot and while it is warm."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from knowledge.domain.item import Item, ItemId, ItemStatus, KnowledgeKind
from knowledge.domain.timeline import created
from knowledge.errors import DependencyUnavailable
from knowledge.services.item_index import OVERLAP, ItemIndex
from knowledge.services.item_snapshots import KEY, ItemSnapshots
from tests.services.items_world import ItemsWorld, draft

START = datetime(2026, 4, 14, 8, 30, tzinfo=UTC)


@pytest.fixture
def world() -> ItemsWorld:
    world = ItemsWorld()
    world.now = lambda: START
    return world


def fresh(world: ItemsWorld) -> ItemIndex:
    index, _ = world.item_instance()
    return index


def found(index: ItemIndex, query: str = "lesson") -> set[ItemId]:
    return set(index.matching(query, statuses=set(ItemStatus), kind=None, limit=100_000))


def fill(world: ItemsWorld, count: int) -> list[Item]:
    items = [
        Item(ItemId(f"{n:032x}"), draft(f"Lesson {n}", "x" * 200), ItemStatus.PUBLISHED, "w", START, START, "w")
        for n in range(count)
    ]
    for item in items:
        world.items.create(item, created(item))
    return items


@pytest.fixture(scope="module")
def many() -> ItemsWorld:
    """10,000 items that are there since a day, and the snapshot of them."""
    world = ItemsWorld()
    world.now = lambda: START
    fill(world, 10_000)
    world.now = lambda: START + timedelta(days=1)
    fresh(world).save()
    return world


def test_a_warm_search_of_10000_items_is_one_look_at_the_feed_and_one_read_of_the_best(many: ItemsWorld) -> None:
    many.configure(vector_enabled=False)
    many.find("lesson", limit=20)
    many.reset_counts()
    assert len(many.find("lesson", limit=20).hits) == 20
    assert many.items.calls == {"changed_since": 1, "read_all": 1}
    assert many.configs.calls == {"read": 1}
    assert many.objects.calls == {}


def test_a_cold_start_at_10000_items_is_one_object_and_what_changed_since(many: ItemsWorld) -> None:
    many.reset_counts()
    index = fresh(many)
    index.refresh()
    assert len(found(index)) == 10_000
    assert many.objects.calls == {"read": 1}
    assert many.items.calls == {"changed_since": 1}


def test_without_a_snapshot_each_hundred_items_are_a_call_once(many: ItemsWorld) -> None:
    many.reset_counts()
    many.objects.broken = set()
    index = ItemIndex(many.items, ItemSnapshots(ItemsWorld().objects), now=many.now)
    index.refresh()
    assert len(found(index)) == 10_000
    assert many.items.calls == {"changed_since": 1, "list": 100 + 3}
    many.reset_counts()
    index.refresh()
    assert many.items.calls == {"changed_since": 1}


def test_what_was_seen_in_the_feed_is_read_once_although_it_is_told_of_again(world: ItemsWorld) -> None:
    index = fresh(world)
    index.refresh()
    fill(world, 3)
    world.reset_counts()
    for _ in range(3):
        index.refresh()
    assert len(found(index)) == 3
    assert world.items.calls == {"changed_since": 3, "read_all": 1}


def test_a_change_that_is_committed_late_is_seen(world: ItemsWorld) -> None:
    """Its time was taken before the last look, and it was committed after it."""
    index = fresh(world)
    index.refresh()
    late = Item(ItemId("f" * 32), draft("A late lesson"), ItemStatus.CANDIDATE, "w", START, START, "w")
    world.now = lambda: START + OVERLAP - timedelta(seconds=1)
    index.refresh()
    world.items.create(late, created(late))
    index.refresh()
    assert found(index) == {late.item_id}


def test_an_item_that_moves_while_the_lists_are_read_is_in_the_index(world: ItemsWorld) -> None:
    """From a list that is still to be read to one that was read already."""
    item = world.add("A lesson", status=ItemStatus.ARCHIVED)
    lists = world.items.list

    def moved() -> None:
        if world.items.read(item.item_id).status is ItemStatus.ARCHIVED:
            world.move(world.items.read(item.item_id), ItemStatus.PENDING_REVIEW)

    calls: list[object] = []

    def listed(statuses: list[ItemStatus], **options: object) -> object:
        page = lists(statuses, **options)
        calls.append(statuses)
        if statuses == [ItemStatus.PENDING_REVIEW]:
            moved()
        return page

    world.items.list = listed
    index = fresh(world)
    index.refresh()
    assert len(calls) == 4
    assert found(index) == {item.item_id}
    assert index.matching("lesson", statuses={ItemStatus.PENDING_REVIEW}, kind=None, limit=9) == [item.item_id]


def test_a_process_that_was_frozen_for_longer_than_the_feed_is_kept_reads_everything_anew(world: ItemsWorld) -> None:
    (item,) = fill(world, 1)
    index = fresh(world)
    index.refresh()
    world.now = lambda: START + timedelta(days=8)
    world.items.changed_since = lambda at: iter(())
    world.edit(item, title="Another lesson, said anew", content="x")
    index.refresh()
    assert found(index, "said anew") == {item.item_id}


def test_a_snapshot_is_written_when_there_is_none_when_it_is_old_and_when_much_has_changed(world: ItemsWorld) -> None:
    fill(world, 5)
    assert [fresh(world).save().is_written for _ in range(2)] == [True, False]
    world.now = lambda: START + timedelta(days=1, seconds=1)
    assert [fresh(world).save().is_written for _ in range(2)] == [True, False]
    for number in range(1000):
        at = world.now()
        item = Item(ItemId(f"{number + 9:032x}"), draft(), ItemStatus.CANDIDATE, "w", at, at, "w")
        world.items.create(item, created(item))
    saved = fresh(world).save()
    assert (saved.item_count, saved.change_count, saved.is_written) == (1005, 1000, True)
    assert not fresh(world).save().is_written


def test_an_index_from_a_snapshot_is_the_one_from_the_lists(world: ItemsWorld) -> None:
    for kind in KnowledgeKind:
        for status in ItemStatus:
            world.add(f"支付 Lesson 😀 {kind} {status}", "Zeile\r\nzwei\u2028", kind=kind, status=status)
    fresh(world).save()
    world.now = lambda: START + 2 * OVERLAP
    listed = ItemIndex(world.items, ItemSnapshots(ItemsWorld().objects), now=world.now)
    listed.refresh()
    world.items.list = None
    stored = fresh(world)
    stored.refresh()
    for status in ItemStatus:
        for kind in (None, *KnowledgeKind):
            options = {"statuses": {status}, "kind": kind, "limit": 100}
            assert stored.matching("支付lesson 😀", **options) == listed.matching("支付lesson 😀", **options) != []


@pytest.mark.parametrize("damage", ["torn", "changed", "empty", "another format", "no JSON", "not compressed"])
def test_a_damaged_snapshot_is_not_used_and_replaced_by_the_next_one(world: ItemsWorld, damage: str) -> None:
    fill(world, 5)
    fresh(world).save()
    body = world.objects.read(KEY, max_bytes=10**9).body
    header, _, rows = body.partition(b"\n")
    damaged = {
        "torn": body[:-10],
        "changed": body[:-1] + bytes([body[-1] ^ 1]),
        "empty": b"",
        "another format": header.replace(b"item index 1", b"item index 0") + b"\n" + rows,
        "no JSON": b"{" + b"\n" + rows,
        "not compressed": header + b"\n[]",
    }[damage]
    world.objects.put(KEY, damaged, content_type="x")
    index = fresh(world)
    index.refresh()
    assert len(found(index)) == 5
    assert fresh(world).save().is_written
    assert not fresh(world).save().is_written


def test_a_snapshot_older_than_the_feed_is_kept_is_not_used(world: ItemsWorld) -> None:
    fill(world, 2)
    fresh(world).save()
    world.now = lambda: START + timedelta(days=6, seconds=1)
    world.reset_counts()
    index = fresh(world)
    index.refresh()
    assert len(found(index)) == 2
    assert world.items.calls["list"] == 4


def test_a_store_that_does_not_answer_leaves_the_index_as_it_was(world: ItemsWorld) -> None:
    index = fresh(world)
    fill(world, 2)
    index.refresh()
    world.items.broken = {"changed_since"}
    with pytest.raises(DependencyUnavailable):
        index.refresh()
    assert len(found(index)) == 2
    world.items.broken = set()
    index.refresh()
    assert len(found(index)) == 2


def test_threads_that_search_while_items_change_see_what_was_committed_before(world: ItemsWorld) -> None:
    world.now = lambda: datetime.now(UTC)
    index, errors, written = fresh(world), list[str](), set[ItemId]()

    def write(number: int) -> None:
        for _ in range(20):
            written.add(world.add(f"A lesson {number}", status=ItemStatus.CANDIDATE).item_id)

    def read() -> None:
        for _ in range(30):
            before = set(written)
            index.refresh()
            errors.extend(before - found(index))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    threads += [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    index.refresh()
    assert len(found(index)) == 60
