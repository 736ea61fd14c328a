"""Every documented route for every role, and none, over the real functions. Source: specification A4, K2."""

from collections.abc import Iterator

import pytest

from tests.access import CASES, Case, assert_answers_every_role, assert_the_table_says_so
from tests.entrypoints.functions import Gateway, hashing_embedder, moto_stack
from tests.item_commands import Commands
from tests.routes import Route, routes


@pytest.fixture
def commands() -> Iterator[Commands]:
    """Over stores of its own: a transaction in moto takes as long as the table is large."""
    with moto_stack(), hashing_embedder():
        yield Commands(Gateway())


@pytest.mark.parametrize("route", routes(), ids=str)
def test_the_cases_are_those_that_the_table_of_the_api_says_A4(route: Route) -> None:
    assert_the_table_says_so(route)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_route_answers_every_role_and_none_as_documented_A4(commands: Commands, case: Case) -> None:
    assert_answers_every_role(commands, case)
