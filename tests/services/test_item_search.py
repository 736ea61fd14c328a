"""Searching knowledge items. Source of the order and the fallbacks: specification K4."""

import threading

import pytest

from knowledge.domain.access import Principal
from knowledge.domain.item import ItemStatus, KnowledgeKind
from knowledge.errors import InvalidInput, InvalidQuery, NotPermitted
from knowledge.services.item_search import Signal
from knowledge.services.near_items import Fallback
from tests.services.items_world import REVIEWER, WRITER, ItemsWorld, ids, ids_of
from tests.services.world import ADMIN, READER, markdown

BOTH = (Signal.SUBSTRING, Signal.VECTOR)


@pytest.fixture
def world() -> ItemsWorld:
    return ItemsWorld()


def test_the_most_reused_come_first_and_of_equal_ones_the_newest_K4(world: ItemsWorld) -> None:
    world.configure(vector_enabled=False)
    old = world.add("About retries", "one")
    often = world.add("two", "Retries, thrice.", reused=3)
    new = world.add("three", "And RETRIES again")
    world.add("four", "nothing")
    assert ids(world.find("retries")) == ids_of(often, new, old)


def test_found_by_both_is_before_by_substring_is_before_by_meaning_alone_K4(world: ItemsWorld) -> None:
    meaning = world.add("Gateway timeout retry", "Gateway timeouts retry a payment.", reused=5)
    substring = world.add("Calendar", "x " * 200 + "gateway timeout retry of a payment " + "y " * 200, reused=9)
    both = world.add("gateway timeout retry of a payment", "gateway timeout retry of a payment")
    result = world.find("gateway timeout retry of a payment")
    assert [(hit.item.item_id, hit.signals) for hit in result.hits] == [
        (both.item_id, BOTH),
        (substring.item_id, (Signal.SUBSTRING,)),
        (meaning.item_id, (Signal.VECTOR,)),
    ]


def test_reuse_orders_those_that_both_signals_found_K4(world: ItemsWorld) -> None:
    nearest = world.add("gateway timeout retry", "gateway timeout retry")
    often = world.add("gateway timeout retry", "gateway timeout retry, and again", reused=1)
    result = world.find("gateway timeout retry")
    assert [hit.signals for hit in result.hits] == [BOTH, BOTH]
    assert ids(result) == ids_of(often, nearest)


def test_a_mere_neighbour_is_not_found_K4(world: ItemsWorld) -> None:
    world.add("Gateway timeout retry", "Gateway timeouts retry a payment.")
    result = world.find("holiday calendar of the office")
    assert result.hits == ()
    assert (result.signals, result.fallback) == (BOTH, None)


def test_with_vectors_off_nothing_is_embedded_and_the_answer_says_so_K4(world: ItemsWorld) -> None:
    world.configure(vector_enabled=False)
    item = world.add("Gateway timeout", "x")
    world.reset_counts()
    result = world.find("gateway timeout")
    assert ids(result) == ids_of(item)
    assert (result.signals, result.fallback) == ((Signal.SUBSTRING,), Fallback.VECTORS_OFF)
    assert world.embedder.calls == {}


@pytest.mark.parametrize("broken", ["embedder", "vectors", "registry"])
def test_when_embedding_fails_the_substring_answers_and_the_answer_says_so_K4(world: ItemsWorld, broken: str) -> None:
    item = world.add("Gateway timeout", "x")
    getattr(world, broken).broken = {"embed_query", "search", "generations"}
    result = world.find("gateway timeout")
    assert ids(result) == ids_of(item)
    assert (result.signals, result.fallback) == ((Signal.SUBSTRING,), Fallback.EMBEDDING_FAILED)


def test_a_slow_embedder_is_left_behind_K4(world: ItemsWorld) -> None:
    item = world.add("Gateway timeout", "x")
    _, search = world.item_instance(semantic_timeout_s=0.05)
    released = threading.Event()
    world.embedder.before["embed_query"] = lambda: released.wait(10)
    result = search.knowledge_search(READER, "gateway timeout")
    released.set()
    assert (ids(result), result.fallback) == (list(ids_of(item)), Fallback.EMBEDDING_FAILED)


@pytest.mark.parametrize("principal", [READER, WRITER])
def test_who_does_not_review_finds_published_items_only_N6(world: ItemsWorld, principal: Principal) -> None:
    items = {status: world.add("Gateway timeout", f"It is {status}", status=status) for status in ItemStatus}
    world.move(world.add("Gateway timeout", "It was published"), ItemStatus.ARCHIVED)
    assert ids(world.find("gateway timeout", principal, limit=20)) == [items[ItemStatus.PUBLISHED].item_id]
    assert ids(world.find("gateway timeout", principal, status=ItemStatus.PUBLISHED)) == [
        items[ItemStatus.PUBLISHED].item_id
    ]
    for status in set(ItemStatus) - {ItemStatus.PUBLISHED}:
        with pytest.raises(NotPermitted, match="reviewer"):
            world.find("gateway timeout", principal, status=status)


@pytest.mark.parametrize("principal", [REVIEWER, ADMIN])
def test_reviewers_find_every_status_or_the_one_they_name_K4(world: ItemsWorld, principal: Principal) -> None:
    items = {status: world.add("Gateway timeout", "x", status=status) for status in ItemStatus}
    assert set(ids(world.find("gateway timeout", principal, limit=20))) == {item.item_id for item in items.values()}
    for status, item in items.items():
        assert ids(world.find("gateway timeout", principal, status=status)) == [item.item_id]


def test_only_items_of_the_kind_are_found(world: ItemsWorld) -> None:
    rule = world.add("gateway timeout retry", "gateway timeout retry", kind=KnowledgeKind.REVIEW_RULE)
    world.add("gateway timeout retry", "gateway timeout retry", kind=KnowledgeKind.PITFALL)
    result = world.find("gateway timeout retry", kind=KnowledgeKind.REVIEW_RULE)
    assert [(hit.item.item_id, hit.signals) for hit in result.hits] == [(rule.item_id, BOTH)]


def test_a_limit_up_to_twenty_is_kept_and_three_is_what_nobody_asked_otherwise_K3(world: ItemsWorld) -> None:
    for number in range(25):
        world.add(f"Gateway timeout {number}", "x")
    assert len(world.find("gateway timeout").hits) == 3
    assert len(world.find("gateway timeout", limit=20).hits) == 20
    for refused in (0, 21):
        with pytest.raises(InvalidInput) as refusal:
            world.find("gateway timeout", limit=refused)
        assert refusal.value.field == "limit"


@pytest.mark.parametrize("query", ["", " \u200b", "x" * 4001])
def test_a_query_that_cannot_be_used_is_refused(world: ItemsWorld, query: str) -> None:
    with pytest.raises(InvalidQuery):
        world.find(query)


def test_many_nearer_documents_take_no_items_place(world: ItemsWorld) -> None:
    """Documents of the base, and one in the folder of a kind that names no item."""
    item = world.add("Gateway timeout retry", "Gateway timeouts retry a payment, sometimes.")
    for number in range(40):
        world.upload(f"docs/{number}.md", markdown(body=f"gateway timeout retry payment {number}"))
    world.upload("pitfall/ours.md", markdown(body="gateway timeout retry payment"))
    result = world.find("retry a payment gateway timeout")
    assert [(hit.item.item_id, hit.signals) for hit in result.hits] == [(item.item_id, (Signal.VECTOR,))]


@pytest.mark.parametrize(
    ("title", "query"), [("ＥＲＲ＿７７ 是什么", "err_77"), ("支付 API 超时", "支付api"), ("Ärger\u200b", "ÄRGER")]
)
def test_what_a_reader_takes_for_the_same_is_found(world: ItemsWorld, title: str, query: str) -> None:
    world.configure(vector_enabled=False)
    item = world.add(title, "x")
    assert ids(world.find(query)) == ids_of(item)


def test_title_and_content_are_searched_each_by_itself(world: ItemsWorld) -> None:
    world.configure(vector_enabled=False)
    world.add("one two", "three four")
    assert ids(world.find("two three")) == []


def test_an_edit_is_found_by_what_it_says_now_and_no_more_by_what_it_said(world: ItemsWorld) -> None:
    world.configure(vector_enabled=False)
    item = world.add("Before", "x")
    assert ids(world.find("before")) == ids_of(item)
    world.edit(item, title="After", content="x")
    assert ids(world.find("before")) == []
    assert ids(world.find("after")) == ids_of(item)


def test_an_item_that_is_archived_while_it_is_searched_for_is_not_answered_N6(world: ItemsWorld) -> None:
    """Between the look at the feed and the read of the candidates."""
    item = world.add("gateway timeout retry", "gateway timeout retry")
    world.find("gateway timeout retry")
    world.items.before["read_all"] = lambda: world.move(item, ItemStatus.ARCHIVED)
    assert ids(world.find("gateway timeout retry")) == []


def test_reuse_of_another_process_orders_the_very_next_search(world: ItemsWorld) -> None:
    world.configure(vector_enabled=False)
    first, second = world.add("Gateway timeout one", "x"), world.add("Gateway timeout two", "x")
    assert ids(world.find("gateway timeout")) == ids_of(second, first)
    world.items.record_reuse(first.item_id, actor="agent", at=world.now())
    result = world.find("gateway timeout")
    assert ids(result) == ids_of(first, second)
    assert result.hits[0].item.reuse_count == 1
