from collections.abc import Iterator
from typing import Any

import pytest

from knowledge.adapters.openai_embedder import OpenAIEmbedder
from knowledge.errors import ConfigError
from tests.contract.embedding_server import StandIn, stand_in, vector
from tests.unit.adapters.endpoint import DIMENSION, KEY, answer, embedder
from tests.unit.adapters.network import FakeTime, dead_url


@pytest.fixture
def server() -> Iterator[StandIn]:
    with stand_in(answer) as running:
        yield running


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


def test_vectors_come_in_the_order_of_the_texts(server: StandIn, time: FakeTime) -> None:
    texts = [f"text {number}" for number in range(70)]
    made = embedder(server.url, time).embed_passages(texts)
    assert [list(one) for one in made] == [pytest.approx(vector(text, DIMENSION)) for text in texts]
    assert [len(call.body["input"]) for call in server.calls] == [32, 32, 6]


def test_large_texts_make_smaller_batches(server: StandIn, time: FakeTime) -> None:
    texts = ["支付网关" * 2000] * 20
    embedder(server.url, time, max_tokens=8192).embed_passages(texts)
    assert [len(call.body["input"]) for call in server.calls] == [10, 10]


def test_a_request_holds_what_was_configured_and_no_more(server: StandIn, time: FakeTime) -> None:
    plain = embedder(server.url, time)
    plain.embed_passages(["a"])
    assert server.calls[0].body == {"model": "model", "input": ["a"]}
    assert server.calls[0].path == "/v1/embeddings"
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"
    other = embedder(
        *(server.url + "/v1/..", time),
        query_model="query",
        query_prefix="query: ",
        passage_prefix="passage: ",
        ask_for_dimension=True,
        api_key=None,
    )
    other.embed_query("a")
    other.embed_passages(["a"])
    assert [call.body for call in server.calls[1:]] == [
        {"model": "query", "input": ["query: a"], "dimensions": DIMENSION},
        {"model": "model", "input": ["passage: a"], "dimensions": DIMENSION},
    ]
    assert "authorization" not in server.calls[1].headers


def test_nothing_to_embed_makes_no_call(server: StandIn, time: FakeTime) -> None:
    made = embedder(server.url, time, passage_prefix="passage: ")
    assert made.embed_passages([]) == []
    assert len(made.embed_passages(["", " \0"])) == 2
    assert server.calls == []


def test_a_text_is_cut_to_what_the_prefix_leaves(server: StandIn, time: FakeTime) -> None:
    embedder(server.url, time, max_tokens=64, query_prefix="query: ").embed_query("支" * 100)
    assert server.calls[0].body["input"] == ["query: " + "支" * 59]


@pytest.mark.parametrize(
    "url", ["", "host/v1", "ftp://host/v1", "https://", "https://user:secret@host/v1", "https://host/v1?key=secret"]
)
def test_a_url_that_cannot_be_used_stops_the_start(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIEmbedder(url, "model", api_key=None, dimension=2, max_tokens=64)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["secret\nX-Header: 1", "secret\u200b"])
def test_a_key_that_no_header_can_carry_stops_the_start_without_being_shown(time: FakeTime, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        embedder(dead_url(), time, api_key=key)
    assert "secret" not in str(caught.value)


def test_a_prefix_that_leaves_no_room_stops_the_start(time: FakeTime) -> None:
    with pytest.raises(ConfigError):
        embedder(dead_url(), time, max_tokens=64, query_prefix="words " * 64)


def test_the_name_tells_vectors_apart_that_do_not_compare(time: FakeTime) -> None:
    url = dead_url()
    plain = embedder(url, time)
    assert plain.name == f"openai/model/{DIMENSION}"
    assert embedder(dead_url(), time).name == plain.name
    others: list[dict[str, Any]] = [
        {"query_model": "query"},
        {"query_prefix": "a"},
        {"passage_prefix": "a"},
        {"dimension": 512},
    ]
    assert len({plain.name, *(embedder(url, time, **settings).name for settings in others)}) == 5
