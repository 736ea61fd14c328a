"""From which evidence on this base has an answer, measured on its own documents and on questions off its topic."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from knowledge.domain.document import Json
from knowledge.domain.question_centring import QuestionCentring
from knowledge.domain.text import is_mostly_unspaced
from knowledge.ports import Vector
from knowledge.retrieval.off_topic import OFF_TOPIC
from knowledge.retrieval.threshold import calibrated_threshold
from knowledge.services.own_queries import OwnQueries
from knowledge.services.semantic import SemanticSearch

_logger = logging.getLogger(__name__)

# Enough for a quantile, few enough for one invocation. Source: own choice.
_MOST_DOCUMENTS = 60
# Of twice as many the mean ranks no better. Source: measured, docs/adr/0009.
_MOST_OPENINGS = 30
# With fewer queries, what is noted or the embedder's default says more. Source: own choice.
_FEWEST_ANSWERABLE = 5
_FEWEST_OFF_TOPIC = 40


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """What was measured."""

    answer_threshold: float
    """The evidence from which there is an answer."""
    answerable: int
    """How many queries were made of the base's own documents."""
    off_topic: int
    """How many questions off the topic were asked."""
    answered_share: float
    """Share of the first that reach the threshold; 0 when there are none."""
    refused_share: float
    """Share of the second that do not; 0 when there are none."""
    calibrated_at: str
    """ISO 8601, UTC."""
    is_noted: bool
    """False when there was too little to measure: then the threshold is the one in force, and nothing has changed."""

    def as_note(self) -> dict[str, Json]:
        """The form in which it is kept with the index."""
        return {
            "answer_threshold": self.answer_threshold,
            "answerable": self.answerable,
            "off_topic": self.off_topic,
            "answered_share": self.answered_share,
            "refused_share": self.refused_share,
            "calibrated_at": self.calibrated_at,
        }


class Calibration:
    """Calibrates one base with one embedder."""

    def __init__(
        self,
        semantic: SemanticSearch,
        own: OwnQueries,
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
        """What questions to this base have in common, and the threshold of an answer, are noted with the index.

        Unless there is too little to measure. Reads up to 90 documents and embeds up to 270 queries, as many as can be
        until `deadline`. The same base gives the same figures.

        Raises:
            DependencyUnavailable: a store or the embedder failed; what was measured before that may be noted.
            CorruptState: the vectors are another embedder's.
        """
        strange = {query: self._semantic.embed(query) for query in self._in_time(iter(OFF_TOPIC), deadline)}
        self._centre(strange, deadline)
        own: list[float] = []
        off_topic: list[float] = []
        # In turn, so that both are measured when time runs out.
        pending = [(iter(strange), off_topic), (self._own.names(_MOST_DOCUMENTS), own)]
        while pending and self._clock() < deadline:
            queries, evidence = pending.pop(0)
            if (query := next(queries, None)) is not None:
                vector = strange.get(query) or self._semantic.embed(query)
                evidence.append(self._semantic.rank_vector(query, vector, top_k=1).evidence)
                pending.append((queries, evidence))
        is_noted = len(own) >= _FEWEST_ANSWERABLE and len(off_topic) >= _FEWEST_OFF_TOPIC
        is_noted = is_noted and all(map(math.isfinite, own + off_topic))
        notes = self._semantic.notes
        threshold = calibrated_threshold(own, off_topic) if is_noted else notes.answer_threshold()
        threshold = round(threshold, 4)
        result = CalibrationResult(
            answer_threshold=threshold,
            answerable=len(own),
            off_topic=len(off_topic),
            answered_share=_share([evidence >= threshold for evidence in own]),
            refused_share=_share([evidence < threshold for evidence in off_topic]),
            calibrated_at=self._now().isoformat(timespec="seconds"),
            is_noted=is_noted,
        )
        if is_noted:
            notes.note_calibration(result.as_note())
        _logger.info("calibration_finished", extra={**result.as_note(), "is_noted": is_noted})
        return result

    def _centre(self, strange: Mapping[str, Vector], deadline: float) -> None:
        """What is typical is measured on the base, the languages on questions of no base."""
        openings = self._in_time(self._own.openings(_MOST_OPENINGS), deadline)
        typical = [self._semantic.embed(query) for query in openings]
        if len(typical) < _FEWEST_ANSWERABLE or len(strange) < _FEWEST_OFF_TOPIC:
            return
        by_script: dict[bool, list[Vector]] = {False: [], True: []}
        for query, vector in strange.items():
            by_script[is_mostly_unspaced(query)].append(vector)
        self._semantic.notes.note_centring(QuestionCentring.of(typical, by_script[False], by_script[True]))

    def _in_time(self, queries: Iterator[str], deadline: float) -> Iterator[str]:
        while self._clock() < deadline and (query := next(queries, None)) is not None:
            yield query


def _share(hits: Sequence[bool]) -> float:
    return round(sum(hits) / len(hits), 4) if hits else 0.0
