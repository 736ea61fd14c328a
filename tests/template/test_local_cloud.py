"""The parts of the local cloud that can be wrong without anybody starting it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.template.evaluation import evaluated, refused
from tools.local_cloud import places, vectors
from tools.local_cloud.ministack import Request, parse_access_line

ROOT = Path(__file__).resolve().parents[2]


def test_a_request_of_the_api_is_shown_without_the_gateway_around_it() -> None:
    line = (
        "[2026-11-30 16:05:23 +0000] [10065] [INFO] 200 10901 PUT /_aws/execute-api/103309ef/v1/documents/a b.md?x=1\n"
    )
    assert parse_access_line(line) == Request("PUT", "/documents/a b.md", 200, 10.901)


@pytest.mark.parametrize("path", ["/bucket/_aws/execute-api/x/v1/lookup", "/", "/_ministack/health"])
def test_calls_between_functions_and_their_stores_are_not_shown(path: str) -> None:
    assert parse_access_line(f"[2026-11-30 16:05:23 +0000] [1] [INFO] 200 100 GET {path}\n") is None


def test_a_path_with_brackets_is_shown_whole() -> None:
    line = "[2026-11-30 16:05:23 +0000] [1] [INFO] 404 100 GET /_aws/execute-api/a/v1/documents/x] y\n"
    assert parse_access_line(line) == Request("GET", "/documents/x] y", 404, 0.1)


def test_the_local_cloud_never_uses_the_account_of_the_person_who_starts_it() -> None:
    own = {"AWS_PROFILE": "production", "AWS_ACCESS_KEY_ID": "AKIA", "AWS_SESSION_TOKEN": "secret", "PATH": "/bin"}
    environment = places.process_environment(4566, own)
    assert environment["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4566"
    assert environment["AWS_ACCESS_KEY_ID"] == "local"
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN"} & set(environment)
    assert environment["PATH"] == "/bin"


def test_a_proxy_is_not_asked_for_this_machine() -> None:
    environment = places.process_environment(4566, {"NO_PROXY": "example.org", "HTTPS_PROXY": "http://proxy:3128"})
    assert environment["HTTPS_PROXY"] == "http://proxy:3128"
    assert environment["NO_PROXY"] == "example.org,127.0.0.1,localhost"


def test_every_function_has_an_event_to_try_it_with(functions: dict[str, object]) -> None:
    events = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "events").glob("*.json")}
    assert set(events) == set(functions)
    assert all(events.values())


@pytest.mark.parametrize("store", vectors.STORES)
def test_the_local_cloud_deploys_the_template_with_parameters_that_it_takes(
    template: dict[str, Any], store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENSEARCH_URL", "http://127.0.0.1:9200")
    with vectors.chosen(store) as parameters:
        assert refused(template, parameters) == []
        told = evaluated(template, parameters)["LookupFunction"]["Properties"]["Environment"]["Variables"]
    assert told["VECTOR_STORE"] == store
    assert told["OPENSEARCH_URL"] == ("http://127.0.0.1:9200" if store == "opensearch" else "")
    assert told["OPENSEARCH_SERVICE"] == ("none" if store == "opensearch" else "es")


def test_both_stores_are_deployed_with_the_same_parameters_so_that_none_keeps_an_old_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENSEARCH_URL", "http://127.0.0.1:9200")
    with vectors.chosen("embedded") as embedded, vectors.chosen("opensearch") as opensearch:
        assert embedded.keys() == opensearch.keys()
