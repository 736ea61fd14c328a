"""Many paths converged together: few transactions, and each path on its own."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from knowledge.domain.document import DocumentRecord, DocumentStatus, doc_id_for
from knowledge.errors import DependencyUnavailable, InvalidInput, TooLarge, VersionConflict
from knowledge.ports import DocumentChange
from knowledge.services.converge import Outcome
from tests.services.world import World, markdown


@pytest.fixture
def world() -> World:
    return World()


def dropped(world: World, count: int) -> list[str]:
    """The paths of that many new files, each with a keyword `ERR_<number>`."""
    keys = [f"knowledge_base/{number:02}.md" for number in range(count)]
    for number, key in enumerate(keys):
        world.drop(key, markdown(f"ERR_{number:02}", body=f"Text number {number}."))
    return keys


def indexed(world: World) -> list[str]:
    """The paths that are known, in order."""
    return [record.file_path for record in pages(world)]


def pages(world: World) -> Sequence[DocumentRecord]:
    page = world.registry.list(path_prefix="", status=None, cursor=None, limit=100)
    return [record for record in page.records if isinstance(record, DocumentRecord)]


def orphans(world: World) -> list[str]:
    """Paths of vectors that belong to no record."""
    live = {(record.doc_id, record.generation) for record in pages(world)}
    return [hit.file_path for hit in world.chunks("text") if (hit.doc_id, hit.generation) not in live]


def meanwhile(world: World, name: str, act: Callable[[Any], None]) -> None:
    """`act` gets the arguments of each call of the registry's method `name` before it is made."""
    method = getattr(world.registry._adapter, name)

    def call(argument: Any) -> Any:
        act(argument)
        return method(argument)

    setattr(world.registry._adapter, name, call)


def test_a_set_is_committed_in_as_few_transactions_as_possible(world: World) -> None:
    keys = dropped(world, 40)
    left = world.converger.converge_all([*keys, *keys])
    assert list(left) == keys, "each once"
    assert indexed(world) == keys
    assert [len(item.entries) for item in world.registry.changes_after(0)] == [32, 8]
    assert world.registry.calls["commit"] == 2
    assert world.objects.calls["read"] == 40
    assert world.ask("ERR_07").primary is not None


def test_removed_replaced_and_new_documents_share_a_transaction(world: World) -> None:
    gone, changed, new, same = dropped(world, 4)
    world.converger.converge_all([gone, changed, same])
    world.objects.delete(gone)
    world.drop(changed, markdown("ERR_NEW"))
    left = world.converger.converge_all([gone, changed, new, same, "knowledge_base/folder/"])
    assert left[gone] == left["knowledge_base/folder/"] == Outcome(None)
    (change,) = world.registry.changes_after(1)
    assert list(change.entries) == [gone, changed, new]
    assert orphans(world) == []
    assert all(world.registry.read(doc_id_for(path)).discarded == () for path in (gone, changed))


def test_a_path_that_fails_takes_no_other_with_it_N5(world: World) -> None:
    keys = dropped(world, 5)
    read, broken, bug = world.objects._adapter.read, keys[1], keys[3]

    def failing(key: str, **options: Any) -> Any:
        if key == broken:
            raise DependencyUnavailable("S3", "injected")
        return read(key, **options) if key != bug else 1 // 0

    world.objects._adapter.read = failing
    left = world.converger.converge_all(keys)
    assert isinstance(left[broken], DependencyUnavailable)
    assert isinstance(left[bug], ZeroDivisionError)
    assert indexed(world) == [keys[0], keys[2], keys[4]]


@pytest.mark.parametrize("error", [InvalidInput("refused"), ZeroDivisionError()])
def test_a_change_that_is_refused_is_found_and_the_others_are_committed_N5(world: World, error: Exception) -> None:
    keys = dropped(world, 8)

    def refuse(changes: Sequence[DocumentChange]) -> None:
        if keys[2] in [change.file_path for change in changes]:
            raise error

    meanwhile(world, "commit", refuse)
    left = world.converger.converge_all(keys)
    assert left[keys[2]] is error
    assert indexed(world) == [key for key in keys if key != keys[2]]
    assert world.registry.head().version == 3, "halves of 4, 2 and 1"
    assert orphans(world) == []


def test_a_set_that_is_too_large_is_cut_smaller_C01(world: World) -> None:
    keys = dropped(world, 8)

    def refuse(changes: Sequence[DocumentChange]) -> None:
        if len(changes) > 3:
            raise TooLarge("too much", size_bytes=2, max_bytes=1)

    meanwhile(world, "commit", refuse)
    world.converger.converge_all(keys)
    assert indexed(world) == keys
    assert world.registry.head().version == 4


def test_who_lost_a_race_starts_over_and_the_others_are_committed_without_it_C05(world: World) -> None:
    keys = dropped(world, 6)
    others = iter([keys[1], keys[4]])

    def overtake(changes: Sequence[DocumentChange]) -> None:
        if key := next(others, None):
            world.drop(key, markdown("ERR_NEWER"))
            assert world.converger.converge(key) is not None
            world.drop(key, markdown("ERR_NEWEST"))

    meanwhile(world, "commit", overtake)
    left = world.converger.converge_all(keys)
    assert all(isinstance(outcome, Outcome) for outcome in left.values())
    sets = [sorted(item.entries) for item in world.registry.changes_after(0)]
    assert sets == [[keys[4]], [keys[1]], [keys[0], keys[2], keys[3], keys[5]], [keys[1], keys[4]]]
    world.index.load()
    assert [entry.file_path for entry in world.index.exact_match("ERR_NEWEST")] == [keys[1], keys[4]]
    assert world.index.exact_match("ERR_NEWER") == []
    assert orphans(world) == []


def test_an_answer_that_was_lost_after_it_took_effect_loses_nothing(world: World) -> None:
    keys = dropped(world, 3)
    world.registry.broken_after_effect.add("commit")
    left = world.converger.converge_all(keys)
    assert all(isinstance(error, DependencyUnavailable) for error in left.values())
    world.registry.broken_after_effect.clear()
    assert len(world.chunks("text")) == 3
    world.reset_counts()
    assert list(world.converger.converge_all(keys)) == keys
    assert (world.registry.calls["commit"], world.embedder.calls["embed_passages"]) == (0, 0)


def test_a_registry_that_does_not_answer_is_asked_once_more_for_the_whole_set(world: World) -> None:
    keys = dropped(world, 20)
    meanwhile(world, "commit", lambda _: world.registry.broken.update(("commit", "read")))
    world.registry.broken_after_effect.add("commit")
    left = world.converger.converge_all(keys)
    assert all(isinstance(error, DependencyUnavailable) for error in left.values())
    assert world.registry.calls["read"] == 21


class Slow:
    """Time that passes only while texts are embedded."""

    def __init__(self, world: World, seconds_a_text: float) -> None:
        self.now, embed = 0.0, world.embedder._adapter.embed_passages
        world.converger._clock = lambda: self.now
        world.preparation.vectors._clock = lambda: self.now

        def slowly(texts: Sequence[str]) -> Any:
            self.now += seconds_a_text * len(texts)
            return embed(texts)

        world.embedder._adapter.embed_passages = slowly


def test_a_prepared_change_waits_two_seconds_for_others_and_no_longer(world: World) -> None:
    Slow(world, seconds_a_text=0.5)
    world.converger.converge_all(dropped(world, 12))
    assert [len(item.entries) for item in world.registry.changes_after(0)] == [5, 5, 2]


def test_what_is_prepared_by_the_deadline_is_committed_and_the_rest_is_found_by_keywords(world: World) -> None:
    keys = dropped(world, 6)
    Slow(world, seconds_a_text=1.0)
    left = world.converger.converge_all(keys, deadline=3.5)
    states = [(one.record.status, one.out_of_time) for one in left.values() if isinstance(one, Outcome) and one.record]
    assert states == [(DocumentStatus.INDEXED, False)] * 4 + [(DocumentStatus.PENDING, True)] * 2
    assert world.ask("ERR_05").primary is not None
    again = world.converger.converge_all(keys[4:], deadline=0.0)
    assert all(isinstance(outcome, Outcome) and outcome.out_of_time for outcome in again.values()), "still no turn"
    assert world.registry.head().version == 2


def test_paths_whose_turn_does_not_come_are_left_for_later(world: World) -> None:
    keys = dropped(world, 4)
    Slow(world, seconds_a_text=4.0)
    left = world.converger.converge_all(keys, deadline=1.0)
    assert [left[key] for key in keys[1:]] == [Outcome(None, out_of_time=True)] * 3
    assert indexed(world) == keys[:1]


def test_a_document_that_only_has_no_success_is_not_out_of_time(world: World) -> None:
    keys = dropped(world, 2)
    time = Slow(world, seconds_a_text=1.0)
    world.embedder.broken.add("embed_passages")
    for _ in range(2):
        left = world.converger.converge_all(keys, deadline=time.now + 10)
        assert [isinstance(one, Outcome) and not one.out_of_time for one in left.values()] == [True, True]
        assert [record.status for record in pages(world)] == [DocumentStatus.PENDING] * 2


def test_a_lone_path_is_tried_again_after_the_deadline_when_it_lost(world: World) -> None:
    (key,) = dropped(world, 1)
    Slow(world, seconds_a_text=10.0)
    lost = iter([key])

    def lose(changes: Sequence[DocumentChange]) -> None:
        if path := next(lost, None):
            raise VersionConflict(path)

    meanwhile(world, "commit", lose)
    record = world.converger.converge(key, deadline=1.0)
    assert record is not None
    assert record.status is DocumentStatus.INDEXED
