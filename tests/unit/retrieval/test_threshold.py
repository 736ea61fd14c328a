from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.domain.text import is_unspaced
from knowledge.retrieval.off_topic import OFF_TOPIC
from knowledge.retrieval.relevance import confidence_in_an_answer
from knowledge.retrieval.threshold import calibrated_threshold

evidence = st.floats(-1, 3)


def normal(mean: float, deviation: float, count: int) -> list[float]:
    """As if drawn from a normal distribution."""
    return [NormalDist(mean, deviation).inv_cdf((place + 0.5) / count) for place in range(count)]


OFF = normal(0.8, 0.02, 60)


def refused(values: list[float], threshold: float) -> float:
    return sum(value < threshold for value in values) / len(values)


def test_what_is_off_the_topic_is_refused() -> None:
    threshold = calibrated_threshold(OFF, [])
    assert refused(OFF, threshold) >= 0.98
    assert 0.86 <= threshold <= 0.87


def test_questions_that_the_base_happens_to_answer_do_not_move_the_threshold_far() -> None:
    covered = normal(0.8, 0.02, 55) + [1.2] * 5
    assert calibrated_threshold(covered, []) == pytest.approx(calibrated_threshold(OFF, []), abs=0.025)


def test_an_easy_list_does_not_make_everything_an_answer() -> None:
    values = [0.7, 0.9] * 30
    assert calibrated_threshold(values, []) > 0.9


def test_where_sentences_without_their_document_come_near_the_threshold_is_higher() -> None:
    threshold = calibrated_threshold(OFF, normal(0.95, 0.02, 60))
    assert 0.91 < threshold < 0.94


def test_where_the_list_is_on_the_topic_the_threshold_is_lower() -> None:
    everyday = normal(0.9, 0.05, 60)
    orphans = normal(0.9, 0.03, 60)
    assert 0.9 < calibrated_threshold(everyday, orphans) < 0.93 < calibrated_threshold(everyday, [])


def test_few_sentences_say_nothing() -> None:
    assert calibrated_threshold(OFF, [0.95] * 9) == calibrated_threshold(OFF, [])


@given(st.lists(evidence, min_size=1), st.lists(evidence, min_size=10))
def test_from_a_twentieth_to_six_tenths_of_the_sentences_without_their_document_are_refused(
    off_topic: list[float], orphans: list[float]
) -> None:
    threshold = calibrated_threshold(off_topic, orphans)
    assert sum(value <= threshold for value in orphans) >= 0.05 * len(orphans)
    assert sum(value < threshold for value in orphans) <= 0.6 * len(orphans) + 1


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
