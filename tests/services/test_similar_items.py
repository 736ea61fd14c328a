"""The published items that a proposal is close to. Source: specification K10."""

import pytest

from knowledge.domain.item import ItemStatus, KnowledgeKind
from knowledge.services.similar_items import MAX_DIFF_CHARS, Measure
from tests.services.items_world import ItemsWorld, draft

LESSON = "When the bank does not answer within three seconds the gateway retries.\nSet an idempotency key.\nThen retry."


@pytest.fixture
def world() -> ItemsWorld:
    return ItemsWorld()


def test_a_close_item_is_shown_with_its_similarity_and_what_differs_K10(world: ItemsWorld) -> None:
    published = world.add("Gateway timeouts", LESSON, kind=KnowledgeKind.DIAGNOSIS)
    world.add("Holiday calendar", "The office is closed in August.")
    proposal = draft("Gateway timeouts", LESSON.replace("Set an", "Never set an"))
    (similar,) = world.similar_items().closest(proposal, item_id=None)
    assert similar.item == world.items.read(published.item_id)
    assert similar.measure is Measure.COSINE
    assert 0.8 < similar.similarity <= 1.0
    assert similar.diff.splitlines()[:2] == ["--- published", "+++ proposed"]
    changed = [line for line in similar.diff.splitlines()[2:] if line[0] in "+-"]
    assert changed == ["-Set an idempotency key.", "+Never set an idempotency key."]


def test_the_closest_come_first_and_three_at_the_most_K10(world: ItemsWorld) -> None:
    for number in range(5):
        world.add(f"Gateway timeouts {number}", LESSON + " again" * number)
    similar = world.similar_items().closest(draft("Gateway timeouts 0", LESSON), item_id=None)
    assert similar[0].item.draft.title == "Gateway timeouts 0"
    assert len(similar) == 3
    assert [one.similarity for one in similar] == sorted((one.similarity for one in similar), reverse=True)


@pytest.mark.parametrize("vector_enabled", [True, False])
def test_nothing_unpublished_and_not_the_item_itself_is_shown_N6(world: ItemsWorld, vector_enabled: bool) -> None:
    world.configure(vector_enabled=vector_enabled)
    for status in set(ItemStatus) - {ItemStatus.PUBLISHED}:
        world.add("Gateway timeouts", LESSON, status=status)
    world.move(world.add("Gateway timeouts", LESSON), ItemStatus.ARCHIVED)
    own = world.add("Gateway timeouts", LESSON)
    assert world.similar_items().closest(own.draft, item_id=own.item_id) == []
    assert [one.item.item_id for one in world.similar_items().closest(own.draft, item_id=None)] == [own.item_id]


def test_without_vectors_the_pieces_that_both_hold_are_compared_and_the_answer_says_so_K10(world: ItemsWorld) -> None:
    world.configure(vector_enabled=False)
    same = world.add("Gateway timeouts", LESSON)
    chinese = world.add("支付网关超时", "银行三秒内没有响应时，网关会重试。请设置幂等键。")
    world.add("Holiday calendar", "The office is closed in August.")
    (similar,) = world.similar_items().closest(draft("Gateway timeouts", LESSON), item_id=None)
    assert (similar.item.item_id, similar.similarity) == (same.item_id, 1.0)
    assert similar.measure is Measure.COMMON_PIECES
    assert similar.diff == ""
    (similar,) = world.similar_items().closest(
        draft("支付网关超时", "银行三秒内没有响应，网关会再重试。请先设置幂等键。"), item_id=None
    )
    assert similar.item.item_id == chinese.item_id
    assert 0.5 < similar.similarity < 1.0


@pytest.mark.parametrize("broken", ["embedder", "vectors"])
def test_an_embedder_that_fails_keeps_nobody_from_comparing_K10(world: ItemsWorld, broken: str) -> None:
    world.add("Gateway timeouts", LESSON)
    getattr(world, broken).broken = {"embed_query", "search"}
    (similar,) = world.similar_items().closest(draft("Gateway timeouts", LESSON), item_id=None)
    assert similar.measure is Measure.COMMON_PIECES


def test_a_published_item_that_has_no_vector_yet_is_shown_too_K10(world: ItemsWorld) -> None:
    world.embedder.broken = {"embed_passages"}
    item = world.add("Gateway timeouts", LESSON)
    (similar,) = world.similar_items().closest(draft("Gateway timeouts", LESSON), item_id=None)
    assert (similar.item.item_id, similar.measure) == (item.item_id, Measure.COMMON_PIECES)


@pytest.mark.parametrize(
    "content", ["x\ny\n" * 5000, "\n".join(str(n % 90) for n in range(6900)), "长" * 20_000, "\u200b"]
)
def test_the_longest_items_are_compared_in_bounded_room(world: ItemsWorld, content: str) -> None:
    world.configure(vector_enabled=False)
    world.add("Title of it", content)
    proposal = draft("Title of that", content[::-1].strip() or content)
    for similar in world.similar_items().closest(proposal, item_id=None):
        assert len(similar.diff) <= MAX_DIFF_CHARS + len("...")
