"""Nothing unpublished is on any read path, over the real functions. Source: specification N6."""

from collections.abc import Iterator

import pytest

from knowledge.domain.access import Principal
from tests.entrypoints.functions import Gateway, hashing_embedder, moto_stack
from tests.gate import WALK, leaks, marked_items
from tests.item_commands import READER, REVIEWER, WRITER, Commands
from tests.routes import routes


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with moto_stack(), hashing_embedder():
        yield Gateway()


def test_the_walk_has_a_step_for_every_route_N6() -> None:
    assert WALK.keys() == {str(route) for route in routes()}, "say in tests/gate.py what a new route may show"


@pytest.mark.parametrize("caller", [READER, WRITER, REVIEWER], ids=lambda caller: caller.role)
def test_nobody_reads_what_no_person_has_published_N6(gateway: Gateway, caller: Principal) -> None:
    marks = marked_items(Commands(gateway))
    assert leaks(gateway, marks, caller) == []
