import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.adapters.batching import CallLimits, embed_in_batches, may_be_too_long
from knowledge.errors import DependencyUnavailable
from knowledge.parsing.tokens import estimate_tokens
from knowledge.ports import Vector


class Model:
    """Notes what it was sent; the vector of a text points to its length."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def embed(self, batch: Sequence[str]) -> list[Vector]:
        self.batches.append(list(batch))
        return [[1.0, float(len(text))] for text in batch]

    @property
    def sent(self) -> list[str]:
        return [text for batch in self.batches for text in batch]


def embed(texts: Sequence[str], model: Model, **limits: Any) -> list[Vector]:
    given_limits = CallLimits(**{"texts": 3, "tokens": 100, **limits})
    return embed_in_batches(texts, model.embed, limits=given_limits, dimension=2, dependency="model")


@given(
    texts=st.lists(st.text(max_size=12) | st.text(alphabet=st.characters(categories=["Cs", "Zs", "Cc"]), max_size=3)),
    parallel_calls=st.sampled_from([1, 4]),
)
def test_any_texts_get_their_vectors_in_order_and_the_service_only_sees_what_it_can_take(
    texts: list[str], parallel_calls: int
) -> None:
    model = Model()
    vectors = embed(texts, model, parallel_calls=parallel_calls)
    alone = [embed([text], Model())[0] for text in texts]
    assert vectors == alone
    for text in model.sent:
        assert text.encode().decode().strip()
        assert "\0" not in text


def test_no_call_has_more_texts_or_bytes_than_it_may() -> None:
    model = Model()
    embed(["支付", "b", "c", "d", "e" * 50, "f"], model, total_bytes=8)
    assert model.batches == [["支付", "b", "c"], ["d"], ["e" * 50], ["f"]]


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\0", "\u3000"])
def test_a_blank_text_makes_no_call_and_is_near_to_nothing(text: str) -> None:
    model = Model()
    assert embed([text], model) == [[1.0, 0.0]]
    assert model.batches == []


def test_white_space_around_a_text_is_the_models_business() -> None:
    model = Model()
    embed([" a\n"], model)
    assert model.sent == [" a\n"]


@pytest.mark.parametrize("text", ["word " * 400, "支付网关" * 100, "😀" * 300, "0123456789" * 100, " " * 5000])
def test_a_text_that_is_too_long_is_cut_to_what_fits(text: str) -> None:
    model = Model()
    embed(["a" + text], model)
    (sent,) = model.sent
    assert ("a" + text).startswith(sent)
    assert estimate_tokens(sent) == 100


def test_characters_are_counted_as_utf_16_has_them_and_none_is_cut_in_half() -> None:
    model = Model()
    embed(["a" * 20, "a" + "😀" * 20, "支" * 11], model, characters=10)
    assert model.sent == ["a" * 10, "a" + "😀" * 4, "支" * 10]


def test_a_character_that_overruns_engines_is_written_out() -> None:
    model = Model()
    embed(["\ufdfa"], model)
    assert model.sent == ["صلى الله عليه وسلم"]


@pytest.mark.parametrize("vector", [[1.0], [1.0, 1.0, 1.0], [0.0, 0.0], [1e200, 1e308 * 10]])
def test_a_vector_that_is_none_is_an_unavailable_dependency(vector: list[float]) -> None:
    with pytest.raises(DependencyUnavailable):
        embed_in_batches(
            ["a"], lambda _: [vector], limits=CallLimits(texts=1, tokens=9), dimension=2, dependency="model"
        )


def test_another_number_of_vectors_than_of_texts_is_an_unavailable_dependency() -> None:
    with pytest.raises(DependencyUnavailable, match="1 vectors for 2 texts"):
        embed_in_batches(
            ["a", "b"], lambda _: [[1.0]], limits=CallLimits(texts=2, tokens=9), dimension=1, dependency="model"
        )


def test_after_a_call_that_failed_no_other_begins() -> None:
    calls: list[str] = []
    lock = threading.Lock()

    def fail_first(batch: Sequence[str]) -> list[Vector]:
        with lock:
            calls.append(batch[0])
        if batch[0] == "text 0":
            raise DependencyUnavailable("model", "failed")
        time.sleep(0.02)
        return [[1.0]]

    texts = [f"text {number}" for number in range(200)]
    limits = CallLimits(texts=1, tokens=9, parallel_calls=2)
    with pytest.raises(DependencyUnavailable):
        embed_in_batches(texts, fail_first, limits=limits, dimension=1, dependency="model")
    assert len(calls) < 200


def test_a_text_with_as_many_bytes_as_tokens_cannot_be_too_long() -> None:
    assert not may_be_too_long(["a" * 10, "b"], 10)
    assert may_be_too_long(["a", "支付网关"], 10)
