"""What functions say to browsers; the gateway's own part is in tests/template and tests/e2e."""

import json

import pytest

from tests.entrypoints.events import api_event
from tests.entrypoints.functions import load
from tests.routes import Route, routes

each_route = pytest.mark.parametrize("route", routes(), ids=str)


@pytest.fixture(autouse=True)
def without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is set but whose pages may read the answers, so that no service can be made."""
    monkeypatch.delenv("TABLE_NAME", raising=False)
    monkeypatch.setenv("ALLOWED_ORIGIN", "https://console.example.com")


def is_readable_in_a_browser(answer: dict[str, object]) -> bool:
    headers = answer["multiValueHeaders"]
    assert isinstance(headers, dict)
    assert headers["Access-Control-Expose-Headers"] == ["Retry-After, WWW-Authenticate"]
    return bool(headers["Access-Control-Allow-Origin"] == ["https://console.example.com"])


@each_route
def test_an_answer_can_be_read_in_a_browser_even_when_nothing_works_F03(route: Route) -> None:
    answer = load(route.function)(api_event(route.method, route.url))
    assert json.loads(answer["body"])
    assert is_readable_in_a_browser(answer)


@each_route
def test_so_can_the_answer_to_a_path_that_does_not_exist_F03(route: Route) -> None:
    answer = load(route.function)(api_event(route.method, "/nowhere"))
    assert (answer["statusCode"], json.loads(answer["body"])["error"]["code"]) == (404, "no_such_route")
    assert is_readable_in_a_browser(answer)
