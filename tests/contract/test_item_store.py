"""What every ItemStore does."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest

from knowledge.domain.document import Json
from knowledge.domain.item import Embedding, EmbeddingState, Item, ItemStatus, KnowledgeKind, failed, new_item_id
from knowledge.domain.timeline import Event, EventType, created, edited
from knowledge.errors import InvalidInput, NotFound, VersionConflict
from knowledge.ports import ItemPage, ItemStore, TimelinePage
from tests.contract.item_builders import (
    READY,
    T0,
    add,
    draft,
    edit,
    events,
    later,
    listed,
    move,
    new_item,
    published,
    settle,
)

CANDIDATE, PENDING, PUBLISHED, ARCHIVED = ItemStatus
INBOX = (CANDIDATE, PENDING)


class TestOneItem:
    @pytest.mark.parametrize(
        "item",
        [
            new_item(),
            new_item(tags=(), confidence=0.0, source_ref="manual", content="x" * 20_000, title="字" * 200),
            new_item(
                confidence=5e-324, content="\u0001" * 20_000, tags=tuple(f"{n:02}" + "标" * 62 for n in range(20))
            ),
            new_item(confidence=0.1 + 0.2, content="---\na: 1\n---\r\n\ttext \U0001f600"),
            new_item(PUBLISHED, kind=KnowledgeKind.WORKFLOW_OPTIMIZATION),
            replace(new_item(PUBLISHED), embedding=failed(None, "模型 is away", at=T0), reuse_count=7),
            replace(new_item(ARCHIVED), version=12, settled_version=11),
        ],
    )
    def test_an_item_comes_back_as_it_was_K1(self, items: ItemStore, item: Item) -> None:
        add(items, item)
        assert items.read(item.item_id) == item
        assert events(items, item) == [created(item)]

    def test_times_come_back_in_utc(self, items: ItemStore) -> None:
        item = add(items, new_item(at=T0.astimezone(timezone(timedelta(hours=8)))))
        found = items.read(item.item_id)
        assert found is not None
        assert (found.created_at, found.created_at.utcoffset()) in ((T0, timedelta(0)), (T0, timedelta(hours=8)))
        assert found == item
        assert items.settle(item, replace(item, settled_version=1), None)

    def test_there_is_no_item_with_an_unknown_id(self, items: ItemStore) -> None:
        assert items.read(new_item_id()) is None
        assert items.read_all([new_item_id()]) == {}
        assert items.read_all([]) == {}
        assert items.timeline(new_item_id(), cursor=None, limit=1) == TimelinePage((), None)

    def test_an_id_is_taken_once(self, items: ItemStore) -> None:
        item = add(items, new_item())
        with pytest.raises(VersionConflict):
            add(items, replace(item, draft=draft(title="another")))
        assert items.read(item.item_id) == item
        assert len(events(items, item)) == 1

    def test_more_than_a_hundred_are_read_at_once(
        self, items: ItemStore, fill: Callable[[Iterable[Item]], None]
    ) -> None:
        added = [new_item(title=str(number)) for number in range(103)]
        fill(added)
        asked = [*(item.item_id for item in added), added[0].item_id, new_item_id()]
        assert items.read_all(asked) == {item.item_id: item for item in added}


class TestVersions:
    def test_a_version_replaces_the_one_before_with_its_event_K6(self, items: ItemStore) -> None:
        first = add(items, new_item())
        second = edit(items, first, title="Another title", confidence=0.9, at=later(5))
        assert items.read(first.item_id) == second
        assert events(items, first) == [created(first), edited(first, second)]
        assert second.version == 2

    def test_a_version_for_an_outdated_one_conflicts_and_changes_nothing_K2(self, items: ItemStore) -> None:
        first = add(items, new_item())
        second = edit(items, first, title="won")
        for stale in (first, replace(first, version=3)):
            with pytest.raises(VersionConflict):
                edit(items, stale, title="lost")
            with pytest.raises(VersionConflict):
                move(items, stale, ARCHIVED)
        assert items.read(first.item_id) == second
        assert len(events(items, first)) == 2
        assert listed(items, ARCHIVED) == []

    def test_what_was_never_created_cannot_be_written(self, items: ItemStore) -> None:
        item = new_item()
        with pytest.raises(VersionConflict):
            edit(items, item, title="x")
        assert items.read(item.item_id) is None
        assert listed(items, CANDIDATE) == []
        assert events(items, item) == []

    def test_reuse_that_was_counted_meanwhile_is_kept(self, items: ItemStore) -> None:
        item = published(items)
        items.record_reuse(item.item_id, actor="agent", at=T0)
        after = edit(items, item, title="Better")
        assert items.read(item.item_id) == replace(after, reuse_count=1)

    @pytest.mark.parametrize("embedding", [READY, failed(None, "down", at=T0)])
    def test_a_version_is_written_although_the_one_before_was_settled_meanwhile(
        self, items: ItemStore, embedding: Embedding
    ) -> None:
        unsettled = move(items, move(items, add(items, new_item()), PENDING), PUBLISHED)
        settle(items, unsettled, embedding)
        after = move(items, unsettled, ARCHIVED)
        assert items.read(after.item_id) == after
        assert not after.is_settled
        assert items.due(until=datetime.max.replace(tzinfo=UTC), limit=100) == [after]
        assert items.count_without_embedding() == 0
        assert listed(items, PUBLISHED) == []

    def test_the_times_of_versions_ascend_whatever_the_clocks_say_K6(self, items: ItemStore) -> None:
        item = add(items, new_item(at=later(100)))
        for seconds in (50, 100, 0, 100):
            item = edit(items, item, title=f"at {seconds}", at=later(seconds))
        times = [event.at for event in events(items, item)]
        assert all(earlier < next_one for earlier, next_one in pairwise(times))
        assert [event.version for event in events(items, item)] == [1, 2, 3, 4, 5]


class TestSettling:
    def test_only_settled_version_and_embedding_are_stored(self, items: ItemStore) -> None:
        before = move(items, move(items, add(items, new_item()), PENDING), PUBLISHED)
        items.record_reuse(before.item_id, actor="agent", at=T0)
        wanted = replace(before, settled_version=3, embedding=READY, draft=draft(title="ignored"), updated_by="ignored")
        assert items.settle(before, wanted, None)
        assert items.read(before.item_id) == replace(before, settled_version=3, embedding=READY, reuse_count=1)
        assert EventType.EMBEDDED not in {event.type for event in events(items, before)}

    def test_its_event_is_in_the_timeline_after_the_version_whatever_the_clocks_say_K5(self, items: ItemStore) -> None:
        before = move(items, move(items, add(items, new_item()), PENDING, at=later(10)), PUBLISHED, at=later(20))
        after = replace(before, settled_version=3, embedding=failed(before.embedding, "down", at=T0))
        event = Event(before.item_id, EventType.EMBEDDING_FAILED, "system", T0, 3, {"reason": "down"})
        assert items.settle(before, after, event)
        last = events(items, before)[-1]
        assert last == replace(event, at=before.updated_at + timedelta(microseconds=1))

    def test_nothing_is_stored_for_an_outdated_state(self, items: ItemStore) -> None:
        before = move(items, move(items, add(items, new_item()), PENDING), PUBLISHED)
        after = settle(items, before, failed(None, "down", at=T0))
        event = Event(before.item_id, EventType.EMBEDDED, "system", T0, 3)
        states = [
            before,
            replace(after, version=2),
            replace(after, settled_version=2),
            replace(after, embedding=None),
            replace(after, embedding=READY),
            replace(after, embedding=failed(None, "other", at=T0)),
            replace(new_item(), draft=draft()),
        ]
        for stale in states:
            assert not items.settle(stale, replace(stale, settled_version=3, embedding=READY), event)
        assert items.read(before.item_id) == after
        assert [event.type for event in events(items, before)].count(EventType.EMBEDDED) == 1

    def test_an_embedding_goes_when_the_item_is_no_longer_published(self, items: ItemStore) -> None:
        archived = move(items, published(items), ARCHIVED)
        assert settle(items, archived, None) == items.read(archived.item_id)


class TestReuse:
    def test_reuse_is_counted_with_an_event_and_no_new_version_K3(self, items: ItemStore) -> None:
        item = published(items)
        first = items.record_reuse(item.item_id, actor="ci-agent", at=later(60))
        second = items.record_reuse(item.item_id, actor="ann", at=later(61))
        assert (first, second) == (replace(item, reuse_count=1), replace(item, reuse_count=2))
        assert items.read(item.item_id) == second
        assert events(items, item)[-2:] == [
            Event(item.item_id, EventType.REUSED, "ci-agent", later(60), item.version),
            Event(item.item_id, EventType.REUSED, "ann", later(61), item.version),
        ]

    def test_it_comes_after_the_version_that_was_reused_whatever_the_clocks_say(self, items: ItemStore) -> None:
        item = published(items)
        items.record_reuse(item.item_id, actor="agent", at=later(-60))
        archived = move(items, item, ARCHIVED, at=later(-30))
        types = [event.type for event in events(items, archived)]
        assert types.index(EventType.REUSED) > 2
        assert types[-1] is EventType.STATUS_CHANGED

    @pytest.mark.parametrize("status", [CANDIDATE, PENDING, ARCHIVED])
    def test_what_is_not_published_cannot_be_reused_N6(self, items: ItemStore, status: ItemStatus) -> None:
        item = add(items, new_item(status))
        for item_id in (item.item_id, new_item_id()):
            with pytest.raises(NotFound):
                items.record_reuse(item_id, actor="agent", at=T0)
        assert items.read(item.item_id) == item
        assert len(events(items, item)) == 1


class TestLists:
    def test_the_highest_confidence_comes_first_then_the_newest_K3(self, items: ItemStore) -> None:
        wanted = [
            new_item(confidence=1.0, at=later(-(10**9))),
            new_item(confidence=0.7500000000000001),
            new_item(confidence=0.75, at=later(0.000001)),
            new_item(confidence=0.75, at=T0),
            new_item(confidence=0.5, at=datetime(2039, 1, 1, tzinfo=UTC)),
            new_item(confidence=5e-324),
            new_item(confidence=0.0),
        ]
        for item in sorted(wanted, key=lambda item: item.item_id):
            add(items, item)
        assert listed(items, CANDIDATE, limit=2) == wanted

    def test_a_status_and_a_kind_are_listed_alone_and_the_inbox_together(self, items: ItemStore) -> None:
        rule = KnowledgeKind.REVIEW_RULE
        all_items = {
            (status, kind): add(items, new_item(status, kind=kind, confidence=number / 10))
            for number, (status, kind) in enumerate((s, k) for s in ItemStatus for k in (KnowledgeKind.PITFALL, rule))
        }
        for (status, kind), item in all_items.items():
            assert listed(items, status, kind=kind) == [item]
            assert set(listed(items, status)) == {found for (of, _), found in all_items.items() if of is status}
        assert listed(items, *INBOX, kind=rule) == [all_items[PENDING, rule], all_items[CANDIDATE, rule]]
        assert len(listed(items, *INBOX)) == 4
        assert listed(items, *reversed(INBOX)) == listed(items, *INBOX)
        assert listed(items, PUBLISHED, kind=KnowledgeKind.DIAGNOSIS) == []

    def test_an_item_is_in_the_lists_of_its_state_and_in_no_other_all_its_life(self, items: ItemStore) -> None:
        item = add(items, new_item(kind=KnowledgeKind.DIAGNOSIS))
        steps: list[Item] = [item]
        steps.append(edit(items, steps[-1], kind=KnowledgeKind.PITFALL, confidence=0.1))
        assert listed(items, CANDIDATE, kind=KnowledgeKind.DIAGNOSIS) == []
        for status in (PENDING, PUBLISHED, ARCHIVED, PENDING, PUBLISHED):
            steps.append(move(items, steps[-1], status))
            for one in ItemStatus:
                expected = [steps[-1]] if one is status else []
                assert listed(items, one) == listed(items, one, kind=KnowledgeKind.PITFALL) == expected
            assert listed(items, *INBOX) == ([steps[-1]] if status is PENDING else [])

    @pytest.mark.parametrize(("limit", "sizes"), [(1, [1] * 7), (3, [3, 3, 1]), (7, [7]), (100, [7])])
    def test_pages_are_full_and_the_last_one_says_so(self, items: ItemStore, limit: int, sizes: list[int]) -> None:
        added = {add(items, new_item(confidence=number % 3 / 10, at=later(number))) for number in range(7)}
        pages, cursor = list[ItemPage](), None
        while not pages or cursor is not None:
            pages.append(items.list([CANDIDATE], kind=None, cursor=cursor, limit=limit))
            cursor = pages[-1].next_cursor
        assert [len(page.items) for page in pages] == sizes
        assert {item for page in pages for item in page.items} == added

    def test_going_on_neither_skips_nor_repeats_what_did_not_change_among_250(
        self, items: ItemStore, fill: Callable[[Iterable[Item]], None]
    ) -> None:
        added = [new_item(CANDIDATE if n % 2 else PENDING, confidence=n % 10 / 10, at=later(n)) for n in range(250)]
        fill(added)
        changing, still = added[::5], {item.item_id for n, item in enumerate(added) if n % 5}
        found, cursor, turn = list[Item](), None, 0
        while True:
            page = items.list(INBOX, kind=None, cursor=cursor, limit=20)
            found.extend(page.items)
            cursor = page.next_cursor
            if cursor is None:
                break
            # Between two pages the item at their border leaves, others go up and down, and new ones come.
            if page.items[-1] in changing:
                move(items, page.items[-1], ARCHIVED)
                changing.remove(page.items[-1])
            for _ in range(3):
                edit(items, changing.pop(), confidence=turn % 2 * 1.0)
            add(items, new_item(confidence=turn % 3 / 2))
            turn += 1
        seen = [item.item_id for item in found if item.item_id in still]
        assert len(seen) == len(set(seen))
        assert set(seen) == still

    def test_a_page_goes_on_after_its_last_item_has_left(self, items: ItemStore) -> None:
        added = [add(items, new_item(at=later(-number))) for number in range(4)]
        page = items.list([CANDIDATE], kind=None, cursor=None, limit=2)
        move(items, added[1], ARCHIVED)
        rest = items.list([CANDIDATE], kind=None, cursor=page.next_cursor, limit=2)
        assert (rest.items, rest.next_cursor) == (tuple(added[2:]), None)

    @pytest.mark.parametrize(
        "cursor", ["", "x", "????", "AAAA", "a" * 5000, "中文", "eyJwayI6MX0", "YS8", "L2E", "WzFd"]
    )
    def test_a_foreign_cursor_is_refused(self, items: ItemStore, cursor: str) -> None:
        item = add(items, new_item())
        with pytest.raises(InvalidInput) as of_list:
            items.list([CANDIDATE], kind=None, cursor=cursor, limit=10)
        with pytest.raises(InvalidInput) as of_timeline:
            items.timeline(item.item_id, cursor=cursor, limit=10)
        assert of_list.value.field == of_timeline.value.field == "cursor"

    def test_the_cursor_of_a_list_is_none_of_a_timeline(self, items: ItemStore) -> None:
        item = add(items, new_item())
        add(items, new_item())
        edit(items, item, title="x")
        of_list = items.list([CANDIDATE], kind=None, cursor=None, limit=1).next_cursor
        of_timeline = items.timeline(item.item_id, cursor=None, limit=1).next_cursor
        assert of_list
        assert of_timeline
        with pytest.raises(InvalidInput):
            items.list([CANDIDATE], kind=None, cursor=of_timeline, limit=1)
        with pytest.raises(InvalidInput):
            items.timeline(item.item_id, cursor=of_list, limit=1)


class TestTimeline:
    def test_pages_of_a_timeline_are_all_of_it_while_it_grows_K6(self, items: ItemStore) -> None:
        item = published(items)
        for number in range(20):
            items.record_reuse(item.item_id, actor="agent", at=later(60 + number))
        page = items.timeline(item.item_id, cursor=None, limit=15)
        items.record_reuse(item.item_id, actor="late", at=later(600))
        rest = items.timeline(item.item_id, cursor=page.next_cursor, limit=100)
        assert [len(page.events), len(rest.events), rest.next_cursor] == [15, 10, None]
        assert (*page.events, *rest.events) == tuple(events(items, item, limit=1))
        assert rest.events[-1].actor == "late"

    def test_the_largest_events_are_all_there_whatever_a_page_holds(self, items: ItemStore) -> None:
        item = add(items, new_item())
        for number in range(12):
            item = edit(items, item, content=f"{number % 10}" * 3 + "\U0001f600" * 19_997)
        assert [event.version for event in events(items, item, limit=100)] == list(range(1, 14))

    def test_details_keep_every_value(self, items: ItemStore) -> None:
        item = new_item()
        details: dict[str, Json] = {"note": "见 \U0001f600", "x": {"before": 0.1, "after": [1, None, True, 1e-300]}}
        items.create(item, replace(created(item), details=details))
        assert events(items, item)[0].details == details


class TestDue:
    def test_what_is_due_longest_comes_first_and_what_is_not_yet_due_stays_K5(self, items: ItemStore) -> None:
        def failing(seconds: float) -> Item:
            return settle(
                items, published_unsettled(items), Embedding(EmbeddingState.FAILED, 1, "down", later(seconds))
            )

        late, early, soon = failing(500), failing(100), failing(300)
        unsettled = published_unsettled(items)  # a minute after it was written
        published(items)
        add(items, new_item())
        assert items.due(until=later(59), limit=100) == []
        assert items.due(until=later(300), limit=100) == [unsettled, early, soon]
        assert items.due(until=later(1000), limit=100) == [unsettled, early, soon, late]
        assert items.due(until=later(1000), limit=2) == [unsettled, early]

    def test_what_is_due_at_that_very_microsecond_is_due(self, items: ItemStore) -> None:
        item = published_unsettled(items)
        assert item.due_at is not None
        assert items.due(until=item.due_at - timedelta(microseconds=1), limit=1) == []
        assert items.due(until=item.due_at, limit=1) == [item]

    def test_published_items_without_an_embedding_are_counted_K5(self, items: ItemStore) -> None:
        assert items.count_without_embedding() == 0
        published(items)
        add(items, new_item())
        pending, failing = published_unsettled(items), published_unsettled(items)
        failing = settle(items, failing, failed(None, "down", at=T0))
        assert items.count_without_embedding() == 2
        settle(items, failing, READY)
        assert items.count_without_embedding() == 1
        move(items, pending, ARCHIVED)
        assert items.count_without_embedding() == 0


class TestFeed:
    def test_every_event_is_told_in_the_order_of_time(self, items: ItemStore) -> None:
        first, second = add(items, new_item(at=later(1))), add(items, new_item(at=later(2)))
        second = move(items, second, PENDING, at=later(4))
        first = edit(items, first, title="x", at=later(3))
        assert list(items.changed_since(T0)) == [
            (later(1), first.item_id),
            (later(2), second.item_id),
            (later(3), first.item_id),
            (later(4), second.item_id),
        ]
        assert [at for at, _ in items.changed_since(later(3))] == [later(3), later(4)]
        assert list(items.changed_since(later(4.000001))) == []

    def test_reuse_and_embedding_are_told_and_settling_in_silence_is_not(self, items: ItemStore) -> None:
        item = published(items)
        items.record_reuse(item.item_id, actor="agent", at=later(60))
        archived = settle(items, move(items, item, ARCHIVED, at=later(70)), None)
        times = [at for at, item_id in items.changed_since(T0) if item_id == archived.item_id]
        assert times == [event.at for event in events(items, item)]
        assert len(times) == 6


def published_unsettled(store: ItemStore) -> Item:
    return move(store, move(store, add(store, new_item()), PENDING), PUBLISHED)
