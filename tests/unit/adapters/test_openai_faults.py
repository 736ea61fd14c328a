import logging
import socket
from collections.abc import Iterator

import pytest

from knowledge.errors import DependencyUnavailable, InvalidInput
from tests.contract.embedding_server import Answer, Call, StandIn, stand_in, vector
from tests.unit.adapters.endpoint import DIMENSION, KEY, answer, embedder, items, refusal
from tests.unit.adapters.network import FakeTime, dead_url


@pytest.fixture
def server() -> Iterator[StandIn]:
    with stand_in(answer) as running:
        yield running


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_refused_twice_it_answers_all_the_same(server: StandIn, time: FakeTime, status: int) -> None:
    server.faults.extend([refusal(status), refusal(status)])
    assert embedder(server.url, time).embed_query("a") == pytest.approx(vector("a", DIMENSION))
    assert time.waits_s == pytest.approx([0.2, 0.4])


def test_permanent_throttling_ends_in_bounded_time(server: StandIn, time: FakeTime) -> None:
    server.faults.extend([refusal(429, "insufficient_quota")] * 100)
    with pytest.raises(DependencyUnavailable) as caught:
        embedder(server.url, time).embed_query("a")
    assert str(caught.value) == "embedding endpoint: failed (429 insufficient_quota)"
    assert len(server.calls) == 5
    assert sum(time.waits_s) <= 3.0


def test_a_batch_that_keeps_failing_fails_the_whole(time: FakeTime) -> None:
    def fail_on_the_second(call: Call) -> Answer:
        return refusal(500) if "text 40" in call.body["input"] else answer(call)

    with stand_in(fail_on_the_second) as server, pytest.raises(DependencyUnavailable, match=r"failed \(500\)"):
        embedder(server.url, time).embed_passages([f"text {number}" for number in range(200)])
    assert len(server.calls) == 6


@pytest.mark.parametrize(
    ("retry_after", "waits_s"),
    [
        ("2", [2.0]),
        ("0", [0.2]),
        ("Wed, 21 Oct 2015 07:28:00 GMT", [0.2]),
        ("soon", [0.2]),
    ],
)
def test_it_waits_as_long_as_the_endpoint_asks(
    server: StandIn, time: FakeTime, retry_after: str, waits_s: list[float]
) -> None:
    server.faults.append(refusal(429, Retry_After=retry_after))
    embedder(server.url, time).embed_query("a")
    assert time.waits_s == pytest.approx(waits_s)


def test_it_does_not_wait_for_an_hour(server: StandIn, time: FakeTime) -> None:
    server.faults.append(refusal(429, Retry_After="3600"))
    with pytest.raises(DependencyUnavailable):
        embedder(server.url, time).embed_query("a")
    assert (len(server.calls), time.waits_s) == (1, [])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (refusal(401, "invalid_api_key"), "refused the API key (401 invalid_api_key)"),
        (refusal(401, KEY), "refused the API key (401)"),
        (refusal(403), "refused the API key (403)"),
        (refusal(404, "model_not_found"), "knows no model 'model' or is not at this URL (404 model_not_found)"),
        (refusal(400), "refused the call (400)"),
        (Answer(422, raw=b"<html>"), "refused the call (422)"),
        (Answer(302, headers={"Location": "/elsewhere"}), "refused the call (302)"),
    ],
)
def test_what_only_an_operator_can_mend_is_said_at_once_and_without_the_key(
    server: StandIn, time: FakeTime, caplog: pytest.LogCaptureFixture, fault: Answer, message: str
) -> None:
    server.faults.append(fault)
    with pytest.raises(DependencyUnavailable) as caught, caplog.at_level(logging.DEBUG):
        embedder(server.url, time).embed_query("a")
    assert str(caught.value) == f"embedding endpoint: {message}"
    assert caught.value.__cause__ is None
    assert KEY not in caplog.text
    assert len(server.calls) == 1


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_text_that_is_refused_as_too_long_is_the_callers(server: StandIn, time: FakeTime, status: int) -> None:
    server.faults.append(refusal(status, "context_length_exceeded"))
    with pytest.raises(InvalidInput, match="longer than 512 tokens"):
        embedder(server.url, time).embed_query("0x3f" * 200)


@pytest.mark.parametrize(
    "fault",
    [
        *(Answer(raw=raw) for raw in (b"", b"{", b"[]", b"{}", b'{"data": [{"index": 0, "embedding": [NaN]}]}')),
        items((0, "AACAPw==")),
        items((0, None)),
        items(),
        items((1, [1.0])),
        items((0, [1.0]), (0, [1.0])),
    ],
)
def test_an_answer_that_cannot_be_read_is_an_unavailable_dependency(
    server: StandIn, time: FakeTime, fault: Answer
) -> None:
    server.faults.append(fault)
    with pytest.raises(DependencyUnavailable):
        embedder(server.url, time).embed_query("a")
    assert len(server.calls) == 1


def test_another_dimension_is_named_beside_the_expected_one(server: StandIn, time: FakeTime) -> None:
    with pytest.raises(DependencyUnavailable, match=f"dimension {DIMENSION} where 1536 is expected"):
        embedder(server.url, time, dimension=1536).embed_query("a")


def test_an_endpoint_that_cannot_be_reached_is_an_unavailable_dependency(time: FakeTime) -> None:
    with pytest.raises(DependencyUnavailable, match="could not be reached"):
        embedder(dead_url(), time).embed_query("a")
    assert len(time.waits_s) == 4


def test_an_endpoint_that_is_silent_once_is_asked_again(server: StandIn, time: FakeTime) -> None:
    server.faults.append(Answer(is_late=True))
    assert len(embedder(server.url, time, timeout_s=0.5).embed_query("a")) == DIMENSION


def test_a_silent_endpoint_is_an_unavailable_dependency(time: FakeTime) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(DependencyUnavailable, match="did not answer in time"):
            embedder(url, time, timeout_s=0.1).embed_query("a")
