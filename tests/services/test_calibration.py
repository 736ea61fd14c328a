"""The threshold belongs to the base: measured, noted with the index, used by searches, and refused to strangers."""

import itertools
import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from knowledge.adapters.hashing_embedder import HashingEmbedder
from knowledge.domain.lookup import Tier
from knowledge.errors import CorruptState, DependencyUnavailable
from knowledge.retrieval.off_topic import OFF_TOPIC
from knowledge.services.calibration import Calibration
from knowledge.services.index_notes import IndexNotes
from knowledge.services.own_sentences import OwnSentences
from knowledge.services.semantic import SemanticSearch
from tests.services.world import World, markdown

SUBJECTS = ("invoices", "refunds", "webhooks", "rate limits", "access tokens", "time zones", "currencies", "receipts")
OWN = {"embedder": "hashing-3gram", "dimension": 256}


class Stranger(HashingEmbedder):
    """Another model of the same size."""

    @property
    def name(self) -> str:
        return "stranger"


def filled(count: int = len(SUBJECTS)) -> World:
    world = World()
    for number, subject in enumerate(SUBJECTS[:count]):
        body = f"## When {subject} fail\n\nThis is how we handle {subject} in our service, step by step."
        world.upload(f"api/{number}.md", markdown(f"K_{number}", title=f"All about {subject}", body=body))
    return world


def calibration(world: World, **options: Any) -> Calibration:
    own = OwnSentences(world.objects, world.base, max_document_bytes=world.max_document_bytes)
    return Calibration(world.semantic, own, now=lambda: datetime(2026, 1, 2, tzinfo=UTC), **options)


def search(world: World) -> SemanticSearch:
    """What another process would search with."""
    return SemanticSearch(world.embedder, world.vectors, world.registry, world.base)


def test_the_threshold_is_measured_on_the_base_and_noted_with_the_index() -> None:
    world = filled()
    result = calibration(world).calibrate()
    assert result.is_noted
    assert (result.sentences, result.off_topic) == (len(SUBJECTS), len(OFF_TOPIC))
    assert result.answered_share >= 0.95
    assert result.refused_share >= 0.95
    notes = dict(world.vectors.notes())
    del notes["question_centring"]
    assert notes == {**OWN, "calibration": result.as_note()}
    assert result.as_note()["calibrated_at"] == "2026-01-02T00:00:00+00:00"


def test_searches_go_by_the_noted_threshold() -> None:
    world = filled()
    default = search(world).rank("grey cats", top_k=1).threshold
    result = calibration(world).calibrate()
    ranking = search(world).rank("grey cats", top_k=1)
    assert default == HashingEmbedder().answer_threshold
    assert ranking.threshold == result.answer_thresholds["spaced"] != default
    assert ranking.is_answer is (ranking.evidence >= ranking.threshold)
    assert search(world).rank("灰猫", top_k=1).threshold == result.answer_thresholds["unspaced"] != ranking.threshold


def test_the_same_base_gives_the_same_threshold() -> None:
    world = filled()
    assert calibration(world).calibrate() == calibration(world).calibrate() == calibration(filled()).calibrate()


def test_with_too_few_documents_the_default_stays() -> None:
    world = filled(2)
    result = calibration(world).calibrate()
    assert not result.is_noted
    assert set(result.answer_thresholds.values()) == {HashingEmbedder().answer_threshold}
    assert "calibration" not in world.vectors.notes()


def test_an_empty_base_is_no_error() -> None:
    assert not calibration(World()).calibrate().is_noted


def test_measuring_stops_at_the_deadline_and_what_was_noted_before_stays() -> None:
    world = filled()
    before = calibration(world).calibrate()
    ticks = itertools.count()
    preparing = len(OFF_TOPIC) + len(SUBJECTS)
    result = calibration(world, clock=lambda: float(next(ticks))).calibrate(deadline=preparing + 20.0)
    assert (result.off_topic, result.sentences) == (20, 0)
    assert not result.is_noted
    assert result.answer_thresholds == before.answer_thresholds
    assert world.vectors.notes()["calibration"] == before.as_note()


def test_other_notes_are_kept() -> None:
    world = filled()
    world.vectors.note({**world.vectors.notes(), "pipeline": 1})
    calibration(world).calibrate()
    assert world.vectors.notes()["pipeline"] == 1


def test_a_document_that_is_gone_or_is_no_text_is_left_out() -> None:
    world = filled()
    world.drop("knowledge_base/api/0.md", b"\xff\xfe")
    world.objects.delete("knowledge_base/api/1.md")
    assert calibration(world).calibrate().is_noted


def test_a_store_that_is_down_is_an_error_and_no_threshold_is_noted() -> None:
    world = filled()
    world.vectors.broken.add("search")
    with pytest.raises(DependencyUnavailable):
        calibration(world).calibrate()
    assert "calibration" not in world.vectors.notes()


def test_searches_are_centred_as_measured_on_the_base() -> None:
    world = filled()
    plain = search(world).rank("invoices", top_k=1).hits[0]
    assert plain.relevance.nearness == plain.relevance.similarity
    calibration(world).calibrate()
    noted: Any = world.vectors.notes()["question_centring"]
    assert len(noted["mean"]) == len(noted["language"]) == world.embedder.dimension
    centred = search(world).rank("invoices", top_k=1).hits[0]
    assert centred.chunk.file_path == plain.chunk.file_path
    assert centred.relevance.nearness < plain.relevance.nearness
    assert centred.relevance.similarity == plain.relevance.similarity


@pytest.mark.parametrize("noted", ["x", {}, {"mean": [1.0], "language": [1.0]}, {"mean": ["x"] * 256, "language": 1}])
def test_a_centring_that_cannot_be_one_is_ignored(noted: Any) -> None:
    world = filled()
    world.vectors.note({**OWN, "question_centring": noted})
    hit = search(world).rank("invoices", top_k=1).hits[0]
    assert hit.relevance.nearness == hit.relevance.similarity


def test_the_figures_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    world = filled()
    with caplog.at_level(logging.INFO):
        result = calibration(world).calibrate()
    [record] = [record for record in caplog.records if record.message == "calibration_finished"]
    assert record.__dict__["answer_thresholds"] == result.answer_thresholds


def test_the_first_write_says_whose_vectors_the_index_holds_and_looks_once() -> None:
    world = filled()
    assert world.vectors.notes() == OWN
    assert world.vectors.calls["note"] == 1
    assert world.vectors.calls["notes"] == 2  # of which one is this test's


def test_a_document_is_indexed_though_the_notes_cannot_be_written_and_the_next_one_tries_again() -> None:
    world = World()
    world.vectors.broken.add("note")
    assert world.upload("api/a.md", markdown("A")).record.status == "INDEXED"
    assert world.vectors.notes() == {}
    world.vectors.broken.clear()
    world.upload("api/b.md", markdown("B"))
    assert world.vectors.notes() == OWN


def test_another_embedder_s_index_is_refused_with_what_to_do_and_exact_answers_go_on() -> None:
    world = filled()
    world.embedder._adapter = Stranger()
    with pytest.raises(CorruptState, match=r"re-embed needed.*make reindex"):
        search(world).search("invoices")
    answer = world.ask("K_0")
    assert (answer.found, answer.degraded) == (True, ())
    answer = world.ask("no keyword in here")
    assert (answer.found, answer.degraded) == (False, (Tier.SEMANTIC,))


def test_a_mismatch_is_not_an_accident_of_the_program(caplog: pytest.LogCaptureFixture) -> None:
    world = filled()
    world.embedder._adapter = Stranger()
    world.ask("no keyword in here")
    [record] = [record for record in caplog.records if record.message == "semantic_tier_failed"]
    assert "make reindex" in record.__dict__["reason"]
    assert not record.exc_info


def test_another_dimension_of_the_same_name_is_refused_too() -> None:
    world = filled()
    world.vectors.note({**OWN, "dimension": 512})
    with pytest.raises(CorruptState, match="512"):
        search(world).search("invoices")


def test_another_embedder_neither_takes_the_index_nor_calibrates_it() -> None:
    world = filled()
    world.embedder._adapter = Stranger()
    IndexNotes(world.vectors, world.embedder).claim()
    with pytest.raises(CorruptState):
        calibration(world).calibrate()
    assert world.vectors.notes() == OWN


def test_after_the_index_was_made_anew_searches_go_on_at_once() -> None:
    world = filled()
    one = search(world)
    world.vectors.note({"embedder": "stranger", "dimension": 3})
    with pytest.raises(CorruptState):
        one.search("invoices")
    world.vectors.note(OWN)
    assert one.search("how we handle invoices in our service, step by step")


def test_an_index_without_notes_is_fine() -> None:
    world = filled()
    world.vectors.note({})
    assert search(world).rank("invoices", top_k=1).threshold == HashingEmbedder().answer_threshold


@pytest.mark.parametrize(
    "calibrated",
    [
        "x",
        {},
        {"answer_thresholds": 0.9},
        *({"answer_thresholds": {"spaced": bad}} for bad in ("high", True, None)),
        None,
    ],
)
def test_a_calibration_that_cannot_be_read_is_none(calibrated: Any) -> None:
    world = filled()
    world.vectors.note({**OWN, "calibration": calibrated})
    assert search(world).rank("invoices", top_k=1).threshold == HashingEmbedder().answer_threshold


def test_notes_are_read_at_most_every_five_minutes_and_a_failure_leaves_the_last_ones() -> None:
    world = filled()
    calibrated = calibration(world).calibrate().answer_thresholds["spaced"]
    now = [0.0]
    notes = IndexNotes(world.vectors, world.embedder, clock=lambda: now[0])
    world.reset_counts()
    assert [notes.answer_threshold("spaced") for _ in range(5)] == [calibrated] * 5
    assert world.vectors.calls["notes"] == 1
    now[0] = 300.0
    world.vectors.broken.add("notes")
    assert notes.answer_threshold("spaced") == calibrated
    assert world.vectors.calls["notes"] == 2
    assert IndexNotes(world.vectors, world.embedder).answer_threshold("spaced") == HashingEmbedder().answer_threshold


def test_explain_gives_the_evidence_the_threshold_and_how_sure_that_is() -> None:
    world = filled()
    found = world.ask("how we handle invoices in our service, step by step", explain=True)
    refused = world.ask("grey cats purr", explain=True)
    assert found.explanation is not None
    assert refused.explanation is not None
    yes: Any = found.explanation["answer"]
    no: Any = refused.explanation["answer"]
    assert (found.found, refused.found) == (True, False)
    assert yes["evidence"] >= yes["threshold"] == no["threshold"] > no["evidence"]
    assert yes["confidence"] >= 0.5 > no["confidence"]
    assert refused.explanation["semantic"]


def test_explain_has_no_decision_where_the_semantic_tier_was_not_asked_and_no_evidence_where_nothing_is() -> None:
    exact = filled().ask("K_0", explain=True).explanation
    empty = World().ask("anything", explain=True).explanation
    assert exact is not None
    assert empty is not None
    assert exact["answer"] is None
    assert empty["answer"] == {"evidence": None, "threshold": 0.5, "unknown_names": 0.0, "confidence": 0.0}
