from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.domain.text import is_unspaced
from knowledge.retrieval.off_topic import OFF_TOPIC
from knowledge.retrieval.relevance import confidence_in_an_answer
from knowledge.retrieval.threshold import calibrated_threshold

OWN = [1.1] * 40
evidence = st.floats(-1, 3)


def off_topic(count: int = 120) -> list[float]:
    """As if drawn from a normal distribution."""
    return [NormalDist(0.8, 0.02).inv_cdf((place + 0.5) / count) for place in range(count)]


def test_what_is_off_the_topic_is_refused() -> None:
    values = off_topic()
    threshold = calibrated_threshold(OWN, values)
    assert sum(value < threshold for value in values) / len(values) >= 0.98
    assert 0.84 < threshold < 0.87


def test_questions_that_the_base_happens_to_answer_do_not_move_the_threshold_far() -> None:
    covered = off_topic(110) + [1.2] * 10
    assert calibrated_threshold(OWN, covered) == pytest.approx(calibrated_threshold(OWN, off_topic()), abs=0.03)


def test_an_easy_list_does_not_make_everything_an_answer() -> None:
    values = [0.7, 0.9] * 30
    assert calibrated_threshold(OWN, values) > 0.9


def test_the_base_s_own_titles_are_answered() -> None:
    own = [0.81] * 10 + [1.1] * 30
    threshold = calibrated_threshold(own, off_topic())
    assert threshold == 0.81
    assert sum(value >= threshold for value in own) / len(own) >= 0.95


@given(st.lists(evidence, min_size=1), st.lists(evidence, min_size=1))
def test_at_least_19_of_20_own_queries_are_answered_whatever_was_measured(own: list[float], off: list[float]) -> None:
    threshold = calibrated_threshold(own, off)
    assert sum(value < threshold for value in own) <= 0.05 * len(own)


def test_the_list_holds_60_questions_in_each_language_each_once_and_in_turn() -> None:
    assert len(set(OFF_TOPIC)) == len(OFF_TOPIC) == 120
    assert all(any(is_unspaced(char) for char in question) for question in OFF_TOPIC[1::2])
    assert not any(is_unspaced(char) for question in OFF_TOPIC[::2] for char in question)


@given(evidence, st.floats(0, 1))
def test_confidence_is_a_half_at_the_threshold_and_grows_with_the_evidence(value: float, threshold: float) -> None:
    assert confidence_in_an_answer(threshold, threshold) == 0.5
    confidence = confidence_in_an_answer(value, threshold)
    assert 0.0 <= confidence <= 1.0
    assert (confidence >= 0.5) is (value >= threshold) or value == pytest.approx(threshold)


def test_nothing_found_is_no_confidence_at_all() -> None:
    assert confidence_in_an_answer(float("-inf"), 0.9) == 0.0
