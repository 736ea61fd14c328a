"""Published items are found, all others are not; and the item wins over whoever writes into the bucket."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count

import pytest

from knowledge.domain.document import doc_id_for
from knowledge.domain.item import Embedding, EmbeddingState, Item, ItemId, ItemStatus, KnowledgeKind
from knowledge.domain.timeline import SYSTEM, EventType, status_changed
from knowledge.errors import Conflict, DependencyUnavailable, InvalidInput, NotFound, NotPermitted, Outdated
from knowledge.services.item_decisions import MAX_DECISIONS, Decision
from knowledge.services.item_documents import ItemDocuments
from tests.services.items_world import REVIEWER, WRITER, ItemsWorld
from tests.services.world import ADMIN, READER

CANDIDATE, PENDING, PUBLISHED, ARCHIVED = ItemStatus


@pytest.fixture
def world() -> ItemsWorld:
    return ItemsWorld()


def set_clock(world: ItemsWorld, at: datetime) -> None:
    world.now = lambda: at


def source(world: ItemsWorld, query: str) -> str | None:
    primary = world.ask(query).primary
    return primary.source if primary else None


def test_each_command_is_seen_by_the_very_next_lookup_of_every_instance_K5(world: ItemsWorld) -> None:
    item = world.decided(world.proposed(title="Pool", content="Close the pool first.", tags=("ERR_POOL",)), PENDING)
    lookups = [world.instance()[1] for _ in range(3)]

    def found(query: str) -> set[bool]:
        return {lookup.lookup_knowledge(READER, query).found for lookup in lookups}

    assert found("ERR_POOL") == found("Close the pool first.") == {False}
    assert world.embedder.calls["embed_passages"] == 0
    item = world.decided(item, PUBLISHED)
    assert found("ERR_POOL") == found("Close the pool first.") == {True}
    changes = {"content": "Restart the broker.", "tags": ("ERR_BROKER",)}
    item = world.commands.knowledge_update(REVIEWER, item.item_id, changes, expected_version=item.version)
    assert found("ERR_POOL") == {False}
    assert found("ERR_BROKER") == found("Restart the broker.") == {True}
    item = world.decisions.knowledge_archive(REVIEWER, item.item_id, expected_version=item.version)
    assert found("ERR_BROKER") == found("Restart the broker.") == {False}
    item = world.decisions.restore(REVIEWER, item.item_id, expected_version=item.version)
    assert item.status is PENDING
    assert found("ERR_BROKER") == {False}
    world.decided(item, PUBLISHED)
    assert found("ERR_BROKER") == {True}
    world.assert_agreement()


def test_the_timeline_tells_all_of_it_with_actor_and_note_K6(world: ItemsWorld) -> None:
    item = world.decided(world.proposed(), PENDING, by=WRITER)
    item = world.decided(item, PUBLISHED)
    world.commands.knowledge_record_reuse(READER, item.item_id)
    changes = {"title": "Another title", "tags": ("a",)}
    item = world.commands.knowledge_update(REVIEWER, item.item_id, changes, expected_version=item.version)
    world.decisions.knowledge_archive(REVIEWER, item.item_id, expected_version=item.version, note="outdated")
    told = [(event.type, event.actor, event.version) for event in world.events(item)]
    assert told == [
        (EventType.CREATED, WRITER.name, 1),
        (EventType.STATUS_CHANGED, WRITER.name, 2),
        (EventType.STATUS_CHANGED, REVIEWER.name, 3),
        (EventType.EMBEDDED, REVIEWER.name, 3),
        (EventType.REUSED, READER.name, 3),
        (EventType.EDITED, REVIEWER.name, 4),
        (EventType.EMBEDDED, REVIEWER.name, 4),
        (EventType.STATUS_CHANGED, REVIEWER.name, 5),
    ]
    *_, edited, _, archived = world.events(item)
    assert edited.details == {
        "title": {"before": "A lesson", "after": "Another title"},
        "tags": {"before": [], "after": ["a"]},
    }
    assert archived.details == {"status": {"before": "published", "after": "archived"}, "note": "outdated"}


def test_a_stale_command_is_told_version_and_status_and_changes_nothing(world: ItemsWorld) -> None:
    item = world.published()
    commands: list[Callable[[int], object]] = [
        lambda version: world.decisions.knowledge_archive(REVIEWER, item.item_id, expected_version=version),
        lambda version: world.commands.knowledge_update(
            REVIEWER, item.item_id, {"title": "x"}, expected_version=version
        ),
        lambda version: world.commands.knowledge_record_reuse(READER, item.item_id, expected_version=version),
        lambda version: world.decisions.retry_embedding(REVIEWER, item.item_id, expected_version=version),
    ]
    for command in commands:
        for version in (item.version - 1, item.version + 1):
            with pytest.raises(Outdated) as refused:
                command(version)
            assert (refused.value.version, refused.value.status) == (item.version, PUBLISHED)
    assert world.items.read(item.item_id) == item


def test_an_edit_that_is_sent_again_or_changes_nothing_is_answered_and_writes_nothing(world: ItemsWorld) -> None:
    item = world.published()

    def edit(version: int) -> Item:
        return world.commands.knowledge_update(REVIEWER, item.item_id, {"title": "New"}, expected_version=version)

    edited = edit(item.version)
    events = world.events(item)
    assert edit(item.version) == edit(edited.version) == edited
    assert world.events(item) == events


def test_the_kind_is_fixed_while_there_is_or_may_be_a_document(world: ItemsWorld) -> None:
    kind = {"kind": KnowledgeKind.DIAGNOSIS}
    item = world.published()
    with pytest.raises(Conflict, match="published cannot be changed"):
        world.commands.knowledge_update(REVIEWER, item.item_id, kind, expected_version=item.version)
    item = world.decided(item, ARCHIVED, PENDING)
    item = world.commands.knowledge_update(REVIEWER, item.item_id, kind, expected_version=item.version)
    item = world.decided(item, PUBLISHED)
    assert [info.key for info in world.objects.list("knowledge_base/")] == [
        f"knowledge_base/diagnosis/{item.item_id}.md"
    ]


def test_a_field_that_does_not_exist_or_does_not_fit_is_named(world: ItemsWorld) -> None:
    item = world.proposed()
    for changes, field in (({"status": "published"}, "status"), ({"confidence": 2.0}, "confidence")):
        with pytest.raises(InvalidInput) as refused:
            world.commands.knowledge_update(WRITER, item.item_id, changes, expected_version=1)
        assert refused.value.field == field


def test_what_a_published_item_supersedes_is_archived_with_it_K10(world: ItemsWorld) -> None:
    old, gone, new = world.published(tags=("old",)), world.decided(world.published(), ARCHIVED), world.proposed()
    new = world.decided(new, PENDING)

    def publish(*ids: ItemId) -> Item:
        return world.decisions.knowledge_update_status(
            REVIEWER, new.item_id, PUBLISHED, expected_version=new.version, supersedes=ids
        )

    for ids, error in (([ItemId("0" * 32)], NotFound), ([new.item_id], InvalidInput)):
        with pytest.raises(error):
            publish(*ids)
        assert world.items.read(new.item_id) == new
    for _ in range(2):
        assert publish(old.item_id, gone.item_id).status is PUBLISHED
    archived = world.items.read(old.item_id)
    assert (archived.status, archived.version) == (ARCHIVED, old.version + 1)
    assert world.events(old)[-1].details["note"] == f"superseded by {new.item_id}"
    assert world.items.read(gone.item_id) == gone
    assert source(world, "old") is None
    world.assert_agreement()
    with pytest.raises(InvalidInput, match="supersedes"):
        Decision(old.item_id, ARCHIVED, 1, supersedes=[new.item_id])


def test_only_what_is_archived_is_restored_and_a_candidate_is_not_submitted_by_it(world: ItemsWorld) -> None:
    item = world.proposed()
    with pytest.raises(Conflict, match="only archived ones"):
        world.decisions.restore(REVIEWER, item.item_id, expected_version=1)
    assert world.items.read(item.item_id) == item


def test_fifty_decisions_are_made_together_and_each_is_on_its_own(world: ItemsWorld) -> None:
    items = [world.decided(world.proposed(tags=(f"ERR_{n}",)), PENDING) for n in range(MAX_DECISIONS - 2)]
    world.reset_counts()
    decisions = [
        *(Decision(item.item_id, PUBLISHED, item.version, note="yes") for item in items),
        Decision(items[0].item_id, ARCHIVED, items[0].version),
        Decision(ItemId("0" * 32), ARCHIVED, 1),
    ]
    decided = world.decisions.decide(REVIEWER, decisions)
    assert [one.item_id for one in decided] == [decision.item_id for decision in decisions]
    assert [one.item and one.item.status for one in decided] == [PUBLISHED] * len(items) + [None, None]
    assert [type(one.error) for one in decided[-2:]] == [Outdated, NotFound]
    # Two sets of changes at most 32 documents, not one for each.
    assert world.registry.calls["commit"] == 2
    world.assert_agreement()
    with pytest.raises(InvalidInput, match="at most 50"):
        world.decisions.decide(REVIEWER, [decisions[0]] * (MAX_DECISIONS + 1))


def test_when_there_is_no_time_archived_ones_go_first_and_the_others_are_told_and_swept(world: ItemsWorld) -> None:
    old, new = world.published(tags=("ERR_OLD",)), world.decided(world.proposed(tags=("ERR_NEW",)), PENDING)
    world.item_documents._clock = lambda: -1000.0
    decided = world.decisions.decide(
        REVIEWER, [Decision(new.item_id, PUBLISHED, new.version), Decision(old.item_id, ARCHIVED, old.version)]
    )
    assert decided[1].item is not None
    assert source(world, "ERR_OLD") is None
    # The first of each set is looked at however late it is, but nothing is embedded any more.
    assert decided[0].item is not None
    assert decided[0].item.embedding is not None
    assert decided[0].item.embedding.state is EmbeddingState.FAILED
    set_clock(world, world.now() + timedelta(minutes=2))
    assert world.sweep.sweep(deadline=float("inf")).published_without_embedding == 0
    world.assert_agreement()


def test_an_embedding_that_fails_is_noted_with_its_next_try_and_swept_with_growing_pauses_K5(world: ItemsWorld) -> None:
    item = world.decided(world.proposed(tags=("ERR_POOL",)), PENDING)
    world.embedder.broken.add("embed_passages")
    set_clock(world, world.now())
    item = world.decided(item, PUBLISHED)
    assert item.is_settled
    assert source(world, "ERR_POOL") == item.file_path(world.base)
    for attempt, wait in enumerate((1, 2, 4, 8), start=1):
        embedding = item.embedding
        assert embedding is not None
        assert (embedding.state, embedding.attempts) == (EmbeddingState.FAILED, attempt)
        assert "injected" in str(embedding.reason)
        assert embedding.next_try_at == world.now() + timedelta(minutes=wait)
        assert embedding.next_try_at is not None
        set_clock(world, embedding.next_try_at - timedelta(seconds=1))
        assert world.sweep.sweep(deadline=float("inf")).failed == 0
        set_clock(world, embedding.next_try_at)
        swept = world.sweep.sweep(deadline=float("inf"))
        assert (swept.settled, swept.failed, swept.published_without_embedding) == (0, 1, 1)
        item = world.items.read(item.item_id)
    world.embedder.broken.clear()
    set_clock(world, world.now() + timedelta(hours=1))
    swept = world.sweep.sweep(deadline=float("inf"))
    assert (swept.settled, swept.failed, swept.published_without_embedding) == (1, 0, 0)
    failures = [event for event in world.events(item) if event.type is EventType.EMBEDDING_FAILED]
    assert [event.details["attempt"] for event in failures] == [1, 2, 3, 4, 5]
    assert [event.actor for event in failures] == [REVIEWER.name, *[SYSTEM] * 4]
    assert world.events(item)[-1].type is EventType.EMBEDDED
    world.assert_agreement()


def test_an_embedding_is_tried_again_by_hand_K5(world: ItemsWorld) -> None:
    world.embedder.broken.add("embed_passages")
    item = world.published()
    assert world.decisions.retry_embedding(REVIEWER, item.item_id).embedding != item.embedding
    world.embedder.broken.clear()
    ready = world.decisions.retry_embedding(REVIEWER, item.item_id, expected_version=item.version)
    assert ready.embedding == Embedding(EmbeddingState.READY)
    assert world.decisions.retry_embedding(REVIEWER, item.item_id) == ready
    with pytest.raises(Conflict, match="only what is published"):
        world.decisions.retry_embedding(REVIEWER, world.proposed().item_id)


def test_a_store_that_fails_fails_the_command_and_the_same_command_finishes_it(world: ItemsWorld) -> None:
    item = world.published(tags=("ERR_POOL",))
    world.objects.broken.add("delete")
    with pytest.raises(DependencyUnavailable):
        world.decided(item, ARCHIVED)
    world.objects.broken.clear()
    assert world.decided(item, ARCHIVED).is_settled
    world.assert_agreement()


def test_one_item_whose_file_cannot_be_written_keeps_no_other_from_being_swept(world: ItemsWorld) -> None:
    items = [world.decided(world.proposed(), PENDING) for _ in range(3)]
    for item in items:
        after = item.next(by="x", at=world.now(), status=PUBLISHED)
        world.items.write(item, after, status_changed(item, after))
    set_clock(world, world.now() + timedelta(minutes=2))
    put = world.objects._adapter.put

    def refuse_one(key: str, body: bytes, *, content_type: str) -> str:
        if key == items[0].file_path(world.base):
            raise DependencyUnavailable("S3", "refused")
        return str(put(key, body, content_type=content_type))

    world.objects._adapter.put = refuse_one
    swept = world.sweep.sweep(deadline=float("inf"))
    assert (swept.settled, swept.failed) == (2, 1)
    world.objects._adapter.put = put
    assert world.sweep.sweep(deadline=float("inf")).settled == 1
    world.assert_agreement()


def test_a_sweep_without_time_does_nothing_and_one_without_work_makes_two_calls(world: ItemsWorld) -> None:
    world.published()
    world.reset_counts()
    world.sweep.sweep(deadline=float("inf"))
    assert world.items.calls == {"due": 1, "count_without_embedding": 1}
    world.reset_counts()
    world.sweep.sweep(deadline=float("-inf"))
    assert world.items.calls == {"count_without_embedding": 1}


def follow(world: ItemsWorld, path: str) -> None:
    """As the indexer does with the bucket's event."""
    assert world.item_documents.put_right([path]) == {}
    world.converger.converge(path)


@pytest.mark.parametrize("status", ItemStatus)
def test_a_file_that_somebody_drops_in_the_place_of_an_item_is_put_right_and_told(
    world: ItemsWorld, status: ItemStatus
) -> None:
    ways = {CANDIDATE: (), PENDING: (PENDING,), PUBLISHED: (PENDING, PUBLISHED), ARCHIVED: (ARCHIVED,)}
    item = world.decided(world.proposed(tags=("ERR_POOL",)), *ways[status])
    path = item.file_path(world.base)
    world.drop(path, "---\ntitle: Mine\nkeywords: [ERR_MINE]\n---\nMine.")
    version_id = world.objects.stat(path).version_id
    follow(world, path)
    assert world.items.read(item.item_id) == item
    told = [event for event in world.events(item) if event.type is EventType.DOCUMENT_PUT_BACK]
    assert [(event.actor, event.details) for event in told] == [(SYSTEM, {"overruled_versions": {path: version_id}})]
    assert version_id in world.objects.version_ids(path)
    assert source(world, "ERR_MINE") is None
    follow(world, path)
    assert len([event for event in world.events(item) if event.type is EventType.DOCUMENT_PUT_BACK]) == 1
    world.assert_agreement()


def test_a_file_that_somebody_removes_is_put_back_and_told(world: ItemsWorld) -> None:
    item = world.published(tags=("ERR_POOL",))
    path = item.file_path(world.base)
    world.objects.delete(path)
    follow(world, path)
    put_back = world.events(item)[-2]
    assert (put_back.type, put_back.details) == (
        EventType.DOCUMENT_PUT_BACK,
        {"overruled_versions": {path: None}},
    )
    world.assert_agreement()


def test_a_file_of_an_item_under_another_kind_is_removed(world: ItemsWorld) -> None:
    item = world.published()
    path = f"knowledge_base/diagnosis/{item.item_id}.md"
    world.drop(path, "Mine.")
    follow(world, path)
    assert world.objects.stat(path) is None
    world.assert_agreement()


def test_a_file_whose_name_is_no_items_is_a_document_as_any_other(world: ItemsWorld) -> None:
    for name in (f"pitfall/{'0' * 32}.md", "pitfall/notes.md"):
        world.upload(name, "---\ntitle: A\nkeywords: [ERR_DOC]\n---\n")
        follow(world, f"knowledge_base/{name}")
        assert source(world, "ERR_DOC") == f"knowledge_base/{name}"
        world.documents.delete_document(ADMIN, doc_id_for(f"knowledge_base/{name}"))


def test_paths_that_name_no_item_cost_no_call(world: ItemsWorld) -> None:
    world.upload("kb/a.md", "text")
    world.reset_counts()
    world.item_documents.put_right(["knowledge_base/kb/a.md", "knowledge_base/pitfall/notes.md"])
    assert not world.items.calls
    assert not world.objects.calls


def test_a_right_file_costs_one_read_and_writes_nothing(world: ItemsWorld) -> None:
    item = world.published()
    world.reset_counts()
    world.item_documents.put_right([item.file_path(world.base)])
    assert (world.items.calls, world.objects.calls) == ({"read_all": 1}, {"read": 1})


def test_paths_that_cannot_be_put_right_are_named_and_no_others(world: ItemsWorld) -> None:
    item, path = world.published(), ""
    path = item.file_path(world.base)
    world.drop(path, "Mine.")
    for port, method in ((world.items, "read_all"), (world.objects, "put"), (world.items, "settle")):
        port.broken.add(method)
        assert set(world.item_documents.put_right([path, "knowledge_base/kb/a.md"])) == {path}
        port.broken.clear()
    set_clock(world, world.now() + timedelta(minutes=2))
    world.sweep.sweep(deadline=float("inf"))
    world.assert_agreement()


@pytest.mark.parametrize("status", [CANDIDATE, PUBLISHED, ARCHIVED])
def test_uploads_and_deletes_of_an_items_document_are_refused_and_name_the_command(
    world: ItemsWorld, status: ItemStatus
) -> None:
    ways = {CANDIDATE: (), PUBLISHED: (PENDING, PUBLISHED), ARCHIVED: (ARCHIVED,)}
    item = world.decided(world.proposed(), *ways[status])
    with pytest.raises(Conflict, match=f"PATCH /items/{item.item_id}"):
        world.upload(f"pitfall/{item.item_id}.md", "Mine.")
    if status is PUBLISHED:
        with pytest.raises(Conflict, match=f"POST /items/{item.item_id}/archive"):
            world.documents.delete_document(ADMIN, doc_id_for(item.file_path(world.base)))
    world.assert_agreement()


def test_a_document_of_an_item_is_refused_to_whom_may_not_upload_without_a_word_about_the_item(
    world: ItemsWorld,
) -> None:
    item = world.proposed()
    with pytest.raises(NotPermitted):
        world.documents.upload_document(READER, category="pitfall", file_name=f"{item.item_id}.md", content=b"x")


def test_reconcile_finds_dropped_changed_and_missing_files_of_items_tells_and_repairs_them(world: ItemsWorld) -> None:
    changed, missing, lost = world.published(tags=("a",)), world.published(tags=("b",)), world.published(tags=("c",))
    archived = world.decided(world.published(tags=("d",)), ARCHIVED)
    world.drop(changed.file_path(world.base), "Mine.")
    world.drop(archived.file_path(world.base), "Mine.")
    world.objects.delete(missing.file_path(world.base))
    # Nobody remembers this one: neither file nor record.
    world.objects.delete(lost.file_path(world.base))
    world.converger.converge(lost.file_path(world.base))
    paths = {item.file_path(world.base) for item in (changed, missing, lost, archived)}
    for repair, repaired in ((False, 0), (True, 4)):
        *_, report = world.reconcile().run(repair=repair)
        assert {one.path for one in report.told if one.kind.value == "item"} == paths
        assert (sum(report.differences.values()), report.repaired) == (4, repaired)
    *_, report = world.reconcile().run(repair=True)
    assert report.differences == {}
    world.assert_agreement()


def test_reconcile_reads_no_file_of_an_item_that_the_listing_shows_to_be_right(world: ItemsWorld) -> None:
    for _ in range(30):
        world.published()
    world.reset_counts()
    *_, report = world.reconcile().run(repair=True)
    assert report.differences == {}
    # The notes of the pass itself.
    assert world.objects.calls["read"] == 1
    assert world.items.calls["read_all"] == 2


def test_reconcile_goes_on_with_items_where_it_stopped(world: ItemsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knowledge.services.reconcile_items._PAGE", 2)
    missing = [world.published() for _ in range(5)]
    for item in missing:
        world.objects.delete(item.file_path(world.base))
        world.converger.converge(item.file_path(world.base))
    # Ahead of the clock by which embedding is given up.
    ticks = count(time.monotonic() + 1000)
    reconcile, stops = world.reconcile(clock=lambda: next(ticks)), 0
    while (report := reconcile.resume(deadline=next(ticks) + 1.5)).finished_at is None:
        stops += 1
    assert stops > 2
    assert report.repaired == len(missing)
    world.assert_agreement()


def test_two_sweeps_at_once_count_one_failure(world: ItemsWorld) -> None:
    world.embedder.broken.add("embed_passages")
    item = world.published()
    other = ItemDocuments(world.items, world.objects, world.converger, world.base, embed_budget_s=60.0)
    world.items.before["settle"] = lambda: other.settle([item.item_id])
    world.item_documents.settle([item.item_id])
    assert world.items.read(item.item_id).embedding.attempts == 2
