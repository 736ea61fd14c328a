"""From which evidence on this base has an answer, and what questions to it have in common: measured on itself."""

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from knowledge.domain.document import Json
from knowledge.domain.question_centring import QuestionCentring
from knowledge.retrieval.off_topic import OFF_TOPIC
from knowledge.retrieval.relevance import evidence_for_an_answer
from knowledge.retrieval.threshold import calibrated_threshold
from knowledge.services.index_notes import SPACED, UNSPACED, script_of
from knowledge.services.own_sentences import OwnSentences
from knowledge.services.semantic import SemanticSearch

_logger = logging.getLogger(__name__)
_Item = TypeVar("_Item")

# Enough for a tenth of them, few enough for one invocation. Source: own choice.
_MOST_SENTENCES = 60
# With fewer, what is noted or the embedder's default says more. Source: own choice.
_FEWEST_SENTENCES = 5
_FEWEST_OFF_TOPIC = 20
# Documents that a search is ranked to, so that one of them can be left out. Source: own choice; evidence looks at five.
_DEPTH = 50


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """What was measured."""

    answer_thresholds: Mapping[str, float]
    """The evidence from which there is an answer, for queries in scripts with blanks and in scripts without."""
    sentences: int
    """How many sentences of the base's own documents were asked."""
    off_topic: int
    """How many questions off the topic were asked."""
    answered_share: float
    """Share of the first that reach the threshold; 0 when there are none."""
    refused_share: float
    """Share of the second that do not; 0 when there are none."""
    calibrated_at: str
    """ISO 8601, UTC."""
    is_noted: bool
    """False when there was too little to measure: then the thresholds are those in force, and nothing has changed."""

    def as_note(self) -> dict[str, Json]:
        """The form in which it is kept with the index."""
        return {
            "answer_thresholds": dict(self.answer_thresholds),
            "sentences": self.sentences,
            "off_topic": self.off_topic,
            "answered_share": self.answered_share,
            "refused_share": self.refused_share,
            "calibrated_at": self.calibrated_at,
        }


@dataclass(slots=True)
class _Measured:
    """Evidence of queries in one kind of script."""

    own: list[float] = field(default_factory=list)
    """Of sentences of the base."""
    orphans: list[float] = field(default_factory=list)
    """Of the same, their own documents left out."""
    off_topic: list[float] = field(default_factory=list)


class Calibration:
    """Calibrates one base with one embedder."""

    def __init__(
        self,
        semantic: SemanticSearch,
        own: OwnSentences,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`own` are of the base that `semantic` searches.

        `now` is aware UTC, `clock` monotonic seconds, in which deadlines are given.
        """
        self._semantic = semantic
        self._own = own
        self._now = now
        self._clock = clock

    def calibrate(self, *, deadline: float = math.inf) -> CalibrationResult:
        """What questions to this base have in common, and the thresholds of an answer, are noted with the index.

        Unless there is too little to measure. Reads up to 60 documents, and embeds and searches up to 180 queries, as
        many as can be until `deadline`. The same base gives the same figures.

        Raises:
            DependencyUnavailable: a store or the embedder failed; what was measured before that may be noted.
            CorruptState: the vectors are another embedder's.
        """
        strange = {query: self._semantic.embed(query) for query in self._in_time(OFF_TOPIC, deadline)}
        sentences = [
            (path, query, self._semantic.embed(query))
            for path, query in self._in_time(self._own.of(_MOST_SENTENCES), deadline)
        ]
        is_enough = len(sentences) >= _FEWEST_SENTENCES
        if is_enough and len(strange) == len(OFF_TOPIC):
            # What is typical is measured on the base, the languages on questions of no base.
            centring = QuestionCentring.measured([vector for _, _, vector in sentences], strange)
            self._semantic.notes.note_centring(centring)
        measured = {SPACED: _Measured(), UNSPACED: _Measured()}
        for query, vector in self._in_time(strange.items(), deadline):
            ranking = self._semantic.rank_vector(query, vector, top_k=1)
            measured[script_of(query)].off_topic.append(ranking.evidence)
        for path, query, vector in self._in_time(sentences, deadline):
            ranking = self._semantic.rank_vector(query, vector, top_k=_DEPTH)
            others = [hit.relevance for hit in ranking.hits if hit.chunk.file_path != path]
            measured[script_of(query)].own.append(ranking.evidence)
            measured[script_of(query)].orphans.append(evidence_for_an_answer(others, ranking.unknown_names))
        return self._noted(measured)

    def _noted(self, measured: Mapping[str, _Measured]) -> CalibrationResult:
        own, off_topic = [one.own for one in measured.values()], [one.off_topic for one in measured.values()]
        found = sum(map(len, own))
        is_noted = found >= _FEWEST_SENTENCES and min(map(len, off_topic)) >= _FEWEST_OFF_TOPIC
        is_noted = is_noted and all(map(math.isfinite, (value for one in (*own, *off_topic) for value in one)))
        notes = self._semantic.notes
        thresholds = {
            script: calibrated_threshold(one.off_topic, one.orphans) if is_noted else notes.answer_threshold(script)
            for script, one in measured.items()
        }
        thresholds = {script: round(threshold, 4) for script, threshold in thresholds.items()}
        reached = [(one, thresholds[script]) for script, one in measured.items()]
        result = CalibrationResult(
            answer_thresholds=thresholds,
            sentences=found,
            off_topic=sum(map(len, off_topic)),
            answered_share=_share([value >= least for one, least in reached for value in one.own]),
            refused_share=_share([value < least for one, least in reached for value in one.off_topic]),
            calibrated_at=self._now().isoformat(timespec="seconds"),
            is_noted=is_noted,
        )
        if is_noted:
            notes.note_calibration(result.as_note())
        _logger.info("calibration_finished", extra={**result.as_note(), "is_noted": is_noted})
        return result

    def _in_time(self, items: Iterable[_Item], deadline: float) -> Iterator[_Item]:
        for item in items:
            if self._clock() >= deadline:
                return
            yield item


def _share(hits: Sequence[bool]) -> float:
    return round(sum(hits) / len(hits), 4) if hits else 0.0
