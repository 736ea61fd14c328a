"""Any commands by any roles in any order, writers at once, deaths, sweeps, people in the bucket: the gate holds.

The model of an item is what its timeline says: nothing is ever published that no reviewer has published, nothing told
is ever lost, and once everything is settled lookups find exactly what is published.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from knowledge.domain.access import Principal, Role
from knowledge.domain.item import Item, ItemId, ItemStatus, KnowledgeKind
from knowledge.domain.timeline import Event, EventType
from knowledge.errors import KnowledgeError
from knowledge.services.item_decisions import Decision
from tests.services.items_world import ItemsWorld, draft
from tests.services.world import Died, MortalPort

CANDIDATE, PENDING, PUBLISHED, ARCHIVED = ItemStatus
CALLERS = [
    Principal("agent", Role.READER),
    Principal("ann", Role.WRITER),
    Principal("bob", Role.WRITER),
    Principal("curator", Role.REVIEWER),
    Principal("second", Role.REVIEWER),
    Principal("root", Role.ADMIN),
]
REVIEWERS = {"curator", "second", "root"}
# Who may decide comes more often, and few items are there at once, so that many of them come to be published.
callers = st.sampled_from([*CALLERS, *CALLERS[3:]])
MOST_ITEMS = 3
ONWARDS = {CANDIDATE: PENDING, PENDING: PUBLISHED, PUBLISHED: ARCHIVED, ARCHIVED: PENDING}
statuses = st.sampled_from(ItemStatus)
kinds = st.sampled_from(list(KnowledgeKind)[:2])
# How many calls to any store succeed before the process dies; None: it lives.
lifetimes = st.one_of(st.none(), st.integers(0, 25))
# How far the version that a caller knows is behind.
behind = st.sampled_from([0, 0, 0, 0, 1, -1])
START = datetime(2026, 12, 1, tzinfo=UTC)


class Items(RuleBasedStateMachine):
    """Some items, their callers, the bucket's events, and a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.life: list[int | None] = [None]
        self.world = ItemsWorld(port=lambda adapter: MortalPort(adapter, self.life))
        self.at = START
        self.world.now = lambda: self.at
        self.ids: list[ItemId] = []
        self.told: dict[ItemId, list[Event]] = {}
        self.files: list[str] = []
        """Paths of which the bucket has sent events that nobody has followed yet."""
        self.reader = self.world.instance()[1]

    def while_alive(self, calls: int | None, work: Callable[[], object]) -> None:
        self.at += timedelta(seconds=1)
        before = {info.key: info.etag for info in self.world.objects.list("knowledge_base/")}
        self.life[0] = calls
        try:
            work()
        except (Died, KnowledgeError):
            pass
        finally:
            self.life[0] = None
        after = {info.key: info.etag for info in self.world.objects.list("knowledge_base/")}
        self.files += sorted(key for key in before | after if before.get(key) != after.get(key))

    def item(self, data: st.DataObject) -> Item:
        item: Item = self.world.items.read(data.draw(st.sampled_from(self.ids)))
        return item

    @precondition(lambda self: len(self.ids) < MOST_ITEMS)
    @rule(caller=callers, kind=kinds)
    def propose(self, caller: Principal, kind: KnowledgeKind) -> None:
        number = len(self.ids)
        proposed = draft(f"Lesson {number}", f"Lesson {number}.", kind=kind, tags=(f"ERR_{number}",))
        created: list[ItemId] = []
        self.while_alive(
            None, lambda: created.append(self.world.commands.knowledge_create(caller, proposed).item.item_id)
        )
        assert len(created) == (caller.role is not Role.READER)
        self.ids += created

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), calls=lifetimes)
    def go_on(self, data: st.DataObject, calls: int | None) -> None:
        item = self.item(data)
        self.while_alive(calls, lambda: self.world.decided(item, ONWARDS[item.status]))

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), caller=callers, status=statuses, lag=behind, calls=lifetimes)
    def decide(self, data: st.DataObject, caller: Principal, status: ItemStatus, lag: int, calls: int | None) -> None:
        item = self.item(data)
        self.while_alive(
            calls,
            lambda: self.world.decisions.knowledge_update_status(
                caller, item.item_id, status, expected_version=item.version - lag
            ),
        )

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), caller=callers, count=st.integers(1, 4), calls=lifetimes)
    def decide_on_many(self, data: st.DataObject, caller: Principal, count: int, calls: int | None) -> None:
        decisions = [
            Decision(item.item_id, data.draw(statuses), item.version)
            for item in [self.item(data) for _ in range(count)]
        ]
        self.while_alive(calls, lambda: self.world.decisions.decide(caller, decisions))

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), first=callers, second=callers, status=statuses, other=statuses)
    def decide_at_once(
        self, data: st.DataObject, first: Principal, second: Principal, status: ItemStatus, other: ItemStatus
    ) -> None:
        """While one has read the item, another one decides; each later step of the first meets what that left."""
        item = self.item(data)

        def meanwhile() -> None:
            with suppress(KnowledgeError):
                self.world.decisions.knowledge_update_status(second, item.item_id, other, expected_version=item.version)

        port, step = data.draw(
            st.sampled_from([(self.world.items, "write"), (self.world.items, "settle"), (self.world.objects, "put")])
        )
        port.before[step] = meanwhile
        self.while_alive(
            None,
            lambda: self.world.decisions.knowledge_update_status(
                first, item.item_id, status, expected_version=item.version
            ),
        )
        port.before.clear()

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), caller=callers, lag=behind, kind=kinds, calls=lifetimes)
    def edit(self, data: st.DataObject, caller: Principal, lag: int, kind: KnowledgeKind, calls: int | None) -> None:
        item = self.item(data)
        changes = {"content": f"{item.draft.title}, version {item.version + 1}.", "kind": kind}
        self.while_alive(
            calls,
            lambda: self.world.commands.knowledge_update(
                caller, item.item_id, changes, expected_version=item.version - lag
            ),
        )

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), caller=callers, calls=lifetimes)
    def reuse(self, data: st.DataObject, caller: Principal, calls: int | None) -> None:
        item = self.item(data)
        self.while_alive(calls, lambda: self.world.commands.knowledge_record_reuse(caller, item.item_id))

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), kind=kinds, is_removed=st.booleans())
    def meddle(self, data: st.DataObject, kind: KnowledgeKind, is_removed: bool) -> None:
        """Somebody with an S3 client."""
        path = f"knowledge_base/{kind}/{self.item(data).item_id}.md"
        if is_removed:
            self.while_alive(None, lambda: self.world.objects.delete(path))
        else:
            self.while_alive(None, lambda: self.world.drop(path, "---\ntitle: Mine\nkeywords: [ERR_MINE]\n---\nMine."))

    @precondition(lambda self: self.files)
    @rule(data=st.data(), calls=lifetimes)
    def deliver(self, data: st.DataObject, calls: int | None) -> None:
        path = data.draw(st.sampled_from(self.files))
        if calls is None:
            self.files.remove(path)
        self.while_alive(calls, lambda: self.follow(path))

    def follow(self, path: str) -> None:
        """As the indexer does."""
        if path not in self.world.item_documents.put_right([path]):
            self.world.converger.converge(path)

    @rule(calls=lifetimes)
    def sweep(self, calls: int | None) -> None:
        self.at += timedelta(minutes=5)
        self.while_alive(calls, lambda: self.world.sweep.sweep(deadline=float("inf")))

    @rule(calls=lifetimes)
    def reconcile(self, calls: int | None) -> None:
        self.while_alive(calls, lambda: list(self.world.reconcile().run(repair=True)))

    @rule(is_broken=st.booleans())
    def embedder(self, is_broken: bool) -> None:
        self.world.embedder.broken = {"embed_passages"} if is_broken else set()

    @invariant()
    def the_gate_holds(self) -> None:
        self.nothing_told_is_lost_or_changed()
        self.every_version_is_told_and_only_reviewers_published()
        self.nobody_finds_what_no_reviewer_ever_published()

    def nothing_told_is_lost_or_changed(self) -> None:
        for item_id in self.ids:
            events = list(self.world.items.timeline(item_id, cursor=None, limit=100).events)
            before = self.told.get(item_id, [])
            assert events[: len(before)] == before
            assert events[0].type is EventType.CREATED
            self.told[item_id] = events

    def every_version_is_told_and_only_reviewers_published(self) -> None:
        for item_id in self.ids:
            item, events = self.world.items.read(item_id), self.told[item_id]
            versions = [e for e in events if e.type in (EventType.CREATED, EventType.EDITED, EventType.STATUS_CHANGED)]
            assert [event.version for event in versions] == list(range(1, item.version + 1))
            status = CANDIDATE
            for event in versions:
                moved = event.details.get("status")
                if event.type is EventType.STATUS_CHANGED and isinstance(moved, dict):
                    assert moved["before"] == status
                    status = ItemStatus(str(moved["after"]))
                    assert status is not PUBLISHED or event.actor in REVIEWERS
            assert item.status is status
            assert sum(event.type is EventType.REUSED for event in events) == item.reuse_count

    def nobody_finds_what_no_reviewer_ever_published(self) -> None:
        for number, item_id in enumerate(self.ids):
            was_published = any(
                event.type is EventType.STATUS_CHANGED and "published" in str(event.details)
                for event in self.told[item_id]
            )
            if not was_published:
                assert self.reader.lookup_knowledge(CALLERS[0], f"ERR_{number}").primary is None

    def teardown(self) -> None:
        """Events that were not delivered are lost: after one reconcile, items, files and answers agree."""
        self.world.embedder.broken = set()
        reports = list(self.world.reconcile(settled_after=timedelta(0)).run(repair=True))
        self.at += timedelta(hours=7)
        self.world.sweep.sweep(deadline=float("inf"))
        assert reports[-1].unrepaired == 0
        self.world.assert_agreement()
        self.nothing_told_is_lost_or_changed()
        self.every_version_is_told_and_only_reviewers_published()


TestItems = Items.TestCase
TestItems.settings = settings(
    max_examples=100,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
