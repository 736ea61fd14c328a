"""What is taken off a question's vector: what all questions share, and the language. Each number has a meaning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.adapters.local_embedder import LocalEmbedder
from knowledge.domain.question_centring import QuestionCentring
from tools.measure_centring import measured

TOPIC_A, TOPIC_B, LANGUAGE, BEING_A_QUESTION = range(4)
NUMBERS = st.lists(st.floats(-1, 1), min_size=4, max_size=4)


def vector(**parts: float) -> list[float]:
    named = {"a": TOPIC_A, "b": TOPIC_B, "language": LANGUAGE, "question": BEING_A_QUESTION}
    numbers = [0.0] * 4
    for name, value in parts.items():
        numbers[named[name]] = value
    return numbers


def product(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


CENTRING = QuestionCentring.of(
    [vector(question=1, language=0.5), vector(question=1, language=-0.5)],
    spaced=[vector(question=1, language=-1)],
    unspaced=[vector(question=1, language=1)],
)


def test_a_document_in_the_other_language_is_found_among_those_in_the_questions_own() -> None:
    question = vector(a=0.5, language=0.8, question=0.3)
    same_language, right = vector(b=0.5, language=0.8), vector(a=0.5, language=-0.8)
    assert product(question, same_language) > product(question, right)
    nearest_to = list(CENTRING.nearest_to(question))
    assert product(nearest_to, same_language) < product(nearest_to, right)


def test_a_document_that_is_near_every_question_is_found_less() -> None:
    question = vector(a=0.5, question=0.8)
    hub, right = vector(question=0.9), vector(a=0.9, question=0.3)
    assert product(question, hub) > product(question, right)
    nearest_to = list(CENTRING.nearest_to(question))
    assert product(nearest_to, hub) < product(nearest_to, right)


@given(NUMBERS)
def test_the_language_has_no_part_in_what_is_left(question: list[float]) -> None:
    assert product(list(CENTRING.nearest_to(question)), list(CENTRING.language)) == pytest.approx(0, abs=1e-4)


def test_with_questions_in_one_language_nothing_is_taken_off_for_it() -> None:
    same = [vector(question=1)]
    assert QuestionCentring.of(same, same, same).language == (0.0, 0.0, 0.0, 0.0)


def test_vectors_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="argument"):
        CENTRING.nearest_to([1.0, 0.0])


def test_what_the_local_embedder_carries_is_what_is_measured() -> None:
    """After a change of model or questions: `python -m tools.measure_centring`."""
    carried, again = LocalEmbedder().question_centring, measured()
    assert carried.dimension == LocalEmbedder().dimension
    assert carried.mean == pytest.approx(again.mean, abs=1e-3)
    assert carried.language == pytest.approx(again.language, abs=1e-3)
