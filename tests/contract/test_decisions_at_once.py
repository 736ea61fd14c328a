"""Two reviewers who decide at once, with real threads, over every ItemStore. Source: specification K2."""

from functools import partial

import pytest

from knowledge.domain.access import Principal, Role
from knowledge.domain.item import Item, ItemStatus
from knowledge.domain.timeline import EventType
from knowledge.errors import Outdated
from knowledge.ports import ItemStore
from tests.contract.test_item_races import all_at_once
from tests.services.items_world import ItemsWorld

_, PENDING, PUBLISHED, ARCHIVED = ItemStatus
ANN, BOB = Principal("ann", Role.REVIEWER), Principal("bob", Role.REVIEWER)
ROUNDS = 25


@pytest.mark.parametrize("part", range(200 // ROUNDS))
def test_of_two_reviewers_one_wins_and_the_other_is_told_what_the_item_is_now_each_of_200_times_K2(
    items: ItemStore, part: int
) -> None:
    world = ItemsWorld(items=lambda: items)
    for number in range(ROUNDS):
        item = world.decided(world.proposed(tags=(f"ERR_{number}",)), PENDING)
        outcomes = all_at_once(
            partial(world.decided, item, PUBLISHED, by=ANN), partial(world.decided, item, ARCHIVED, by=BOB)
        )
        (winner,) = [outcome for outcome in outcomes if isinstance(outcome, Item)]
        (loser,) = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        assert isinstance(loser, Outdated)
        assert (loser.version, loser.status) == (winner.version, winner.status)
        assert items.read(item.item_id) == winner
        _, decided = [event for event in world.events(item) if event.type is EventType.STATUS_CHANGED]
        assert decided.actor == winner.updated_by == (ANN if winner.status is PUBLISHED else BOB).name
        assert world.is_settled_and_shows(winner) == (winner.status is PUBLISHED)


def test_one_decision_that_comes_many_times_at_once_is_one_and_each_is_answered_K2(items: ItemStore) -> None:
    world = ItemsWorld(items=lambda: items)
    for _ in range(10):
        item = world.decided(world.proposed(), PENDING)
        outcomes = all_at_once(*[partial(world.decided, item, PUBLISHED, by=ANN)] * 4)
        assert [outcome for outcome in outcomes if outcome != outcomes[0]] == []
        assert outcomes[0] == items.read(item.item_id)
        events = [event.type for event in world.events(item)]
        assert (events.count(EventType.STATUS_CHANGED), events.count(EventType.EMBEDDED)) == (2, 1)
