"""Faults of Amazon Bedrock, through the real client of the AWS SDK."""

import socket
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config

from knowledge.adapters.bedrock_embedder import BedrockEmbedder, bedrock_client_config
from knowledge.errors import ConfigError, DependencyUnavailable, InvalidInput
from tests.contract.embedding_server import COHERE, TITAN, Answer, StandIn, bedrock, bedrock_error, stand_in, vector
from tests.unit.adapters.network import FakeTime, dead_url

THROTTLED = bedrock_error("ThrottlingException", 429)


@pytest.fixture
def server() -> Iterator[StandIn]:
    with stand_in(bedrock) as running:
        yield running


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


def embedder(
    url: str, time: FakeTime, model: str = TITAN, *, timeout_s: float = 30, **settings: Any
) -> BedrockEmbedder:
    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        config=bedrock_client_config().merge(Config(read_timeout=timeout_s)),
    )
    return BedrockEmbedder(client, model, backoff=time.backoff(), **settings)


def test_titan_is_sent_one_text_a_call(server: StandIn, time: FakeTime) -> None:
    made = embedder(server.url, time, dimension=512).embed_passages(["支付网关", "", "b"])
    assert [len(vector) for vector in made] == [512] * 3
    assert sorted((call.body for call in server.calls), key=lambda body: body["inputText"]) == [
        {"inputText": text, "dimensions": 512, "normalize": True} for text in ("b", "支付网关")
    ]


def test_cohere_is_sent_96_texts_a_call_and_told_what_they_are(server: StandIn, time: FakeTime) -> None:
    cohere = embedder(server.url, time, COHERE)
    cohere.embed_passages([f"text {number}" for number in range(200)])
    cohere.embed_query("a query")
    assert [(len(call.body["texts"]), call.body["input_type"]) for call in server.calls] == [
        *((96, "search_document"), (96, "search_document"), (8, "search_document"), (1, "search_query"))
    ]
    assert {call.body["truncate"] for call in server.calls} == {"END"}


def test_nothing_to_embed_makes_no_call(server: StandIn, time: FakeTime) -> None:
    assert embedder(server.url, time).embed_passages([]) == []
    assert server.calls == []


@pytest.mark.parametrize("model", [TITAN, COHERE])
def test_a_text_of_60_kb_on_one_line_is_embedded(server: StandIn, time: FakeTime, model: str) -> None:
    made = embedder(server.url, time, model)
    assert len(made.embed_passages(["支付网关" * 5000, "x" * 60_000, "😀" * 15_000])) == 3


def test_throttled_twice_it_answers_all_the_same(server: StandIn, time: FakeTime) -> None:
    server.faults.extend([THROTTLED, THROTTLED])
    assert embedder(server.url, time).embed_query("a") == pytest.approx(vector("a", 1024))
    assert len(server.calls) == 3
    assert time.waits_s == pytest.approx([0.2, 0.4])


def test_a_part_of_the_calls_is_throttled_and_no_vector_is_lost(server: StandIn, time: FakeTime) -> None:
    server.faults.extend([THROTTLED] * 3)
    texts = [f"text {number}" for number in range(20)]
    made = embedder(server.url, time).embed_passages(texts)
    assert [list(one) for one in made] == [pytest.approx(vector(text, 1024)) for text in texts]
    assert len(server.calls) == 23


@pytest.mark.parametrize("model", [TITAN, COHERE])
def test_a_part_that_keeps_failing_fails_the_whole_in_bounded_time(time: FakeTime, model: str) -> None:
    def fail_on_the_last(call: Any) -> Answer:
        return THROTTLED if "text 99" in str(call.body) else bedrock(call)

    with stand_in(fail_on_the_last) as server, pytest.raises(DependencyUnavailable) as caught:
        embedder(server.url, time, model).embed_passages([f"text {number}" for number in range(100)])
    assert sum("text 99" in str(call.body) for call in server.calls) == 5
    assert str(caught.value) == "Amazon Bedrock: answered ThrottlingException"
    assert len(time.waits_s) == 4
    assert sum(time.waits_s) <= 3.0


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ModelTimeoutException", 408),
        ("ModelErrorException", 424),
        ("ModelNotReadyException", 429),
        ("ServiceUnavailableException", 503),
    ],
)
def test_what_may_pass_is_tried_again(server: StandIn, time: FakeTime, code: str, status: int) -> None:
    server.faults.append(bedrock_error(code, status))
    assert len(embedder(server.url, time).embed_query("a")) == 1024
    assert len(server.calls) == 2


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("AccessDeniedException", 403),
        ("ResourceNotFoundException", 404),
        ("ValidationException", 400),
    ],
)
def test_what_only_an_operator_can_mend_is_said_at_once(
    server: StandIn, time: FakeTime, code: str, status: int
) -> None:
    server.faults.append(bedrock_error(code, status))
    with pytest.raises(DependencyUnavailable) as caught:
        embedder(server.url, time).embed_query("a short text")
    assert type(caught.value) is DependencyUnavailable
    assert str(caught.value) == f"Amazon Bedrock: answered {code}"
    assert len(server.calls) == 1


def test_a_text_that_is_refused_as_too_long_is_the_callers(server: StandIn, time: FakeTime) -> None:
    server.faults.append(bedrock_error("ValidationException", 400))
    with pytest.raises(InvalidInput, match="longer than 8192 tokens"):
        embedder(server.url, time).embed_query("0x3f" * 2500)
    assert len(server.calls) == 1


@pytest.mark.parametrize("raw", [b"", b"{", b"{}", b'{"embedding": null}', b'{"embedding": ["x"]}', b"[]"])
@pytest.mark.parametrize("model", [TITAN, COHERE])
def test_an_answer_that_cannot_be_read_is_an_unavailable_dependency(
    server: StandIn, time: FakeTime, model: str, raw: bytes
) -> None:
    server.faults.append(Answer(raw=raw))
    with pytest.raises(DependencyUnavailable, match="cannot be read"):
        embedder(server.url, time, model).embed_query("a")


def test_too_few_vectors_are_an_unavailable_dependency(server: StandIn, time: FakeTime) -> None:
    server.faults.append(Answer(body={"embeddings": [[1.0] * 1024]}))
    with pytest.raises(DependencyUnavailable, match="1 vectors for 2 texts"):
        embedder(server.url, time, COHERE).embed_passages(["a", "b"])


def test_another_dimension_is_named_beside_the_expected_one(server: StandIn, time: FakeTime) -> None:
    server.faults.append(Answer(body={"embedding": [1.0, 0.0, 0.0]}))
    with pytest.raises(DependencyUnavailable, match="dimension 3 where 1024 is expected"):
        embedder(server.url, time).embed_query("a")


def test_a_service_that_cannot_be_reached_is_an_unavailable_dependency(time: FakeTime) -> None:
    with pytest.raises(DependencyUnavailable):
        embedder(dead_url(), time).embed_query("a")
    assert len(time.waits_s) == 4


def test_a_service_that_is_silent_once_is_asked_again(server: StandIn, time: FakeTime) -> None:
    server.faults.append(Answer(is_late=True))
    assert len(embedder(server.url, time, timeout_s=0.5).embed_query("a")) == 1024


def test_an_answer_that_breaks_off_is_asked_for_again(server: StandIn, time: FakeTime) -> None:
    server.faults.append(Answer(raw=b"{", headers={"Content-Length": "100"}))
    assert len(embedder(server.url, time).embed_query("a")) == 1024
    assert len(server.calls) == 2


def test_a_silent_service_is_an_unavailable_dependency(time: FakeTime) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(DependencyUnavailable, match="did not answer in time"):
            embedder(url, time, timeout_s=0.1).embed_query("a")


@pytest.mark.parametrize(("model", "dimension"), [("amazon.nova", None), (TITAN, 384), (COHERE, 512)])
def test_a_model_or_dimension_that_does_not_exist_stops_the_start(
    time: FakeTime, model: str, dimension: int | None
) -> None:
    with pytest.raises(ConfigError):
        embedder(dead_url(), time, model, dimension=dimension)


def test_the_name_tells_vectors_apart_that_do_not_compare(time: FakeTime) -> None:
    url = dead_url()
    made = [embedder(url, time), embedder(url, time, dimension=256), embedder(url, time, COHERE)]
    assert [one.name for one in made] == [f"{TITAN}/1024", f"{TITAN}/256", f"{COHERE}/1024"]
