"""From which evidence on this base has an answer, measured on its own documents and on questions off its topic."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from knowledge.domain.document import Json, KnowledgeBasePath
from knowledge.errors import AccessRefused
from knowledge.parsing.frontmatter import FrontmatterParser
from knowledge.parsing.sections import headings
from knowledge.ports import Embedder, ObjectStore, VectorStore
from knowledge.retrieval.off_topic import OFF_TOPIC
from knowledge.retrieval.threshold import calibrated_threshold
from knowledge.services.index_notes import IndexNotes
from knowledge.services.semantic import SemanticSearch

_logger = logging.getLogger(__name__)

# Enough for a quantile, few enough for one invocation. Source: own choice.
_MOST_DOCUMENTS = 60
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
        objects: ObjectStore,
        vectors: VectorStore,
        embedder: Embedder,
        base: KnowledgeBasePath,
        *,
        max_document_bytes: int,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`semantic` searches `base`; `now` is aware UTC, `clock` monotonic seconds, in which deadlines are given."""
        self._semantic = semantic
        self._objects = objects
        self._notes = IndexNotes(vectors, embedder)
        self._base = base
        self._max_document_bytes = max_document_bytes
        self._now = now
        self._clock = clock

    def calibrate(self, *, deadline: float = math.inf) -> CalibrationResult:
        """The threshold of this base is noted with the index, unless there is too little to measure.

        Reads up to 60 documents and embeds up to 240 queries, those of both kinds in turn until `deadline`. The same
        base gives the same threshold.

        Raises:
            DependencyUnavailable: a store or the embedder failed; nothing is noted.
            CorruptState: the vectors are another embedder's.
        """
        own: list[float] = []
        off_topic: list[float] = []
        pending = [(iter(OFF_TOPIC), off_topic), (self._own_queries(), own)]
        while pending and self._clock() < deadline:
            queries, evidence = pending.pop(0)
            if (query := next(queries, None)) is not None:
                evidence.append(self._semantic.rank(query, top_k=1).evidence)
                pending.append((queries, evidence))
        is_noted = len(own) >= _FEWEST_ANSWERABLE and len(off_topic) >= _FEWEST_OFF_TOPIC
        is_noted = is_noted and all(map(math.isfinite, own + off_topic))
        threshold = calibrated_threshold(own, off_topic) if is_noted else self._notes.answer_threshold()
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
            self._notes.note_calibration(result.as_note())
        _logger.info("calibration_finished", extra={**result.as_note(), "is_noted": is_noted})
        return result

    def _own_queries(self) -> Iterator[str]:
        """What documents spread evenly over the base call themselves and their sections, and how they sum up."""
        paths = [info.key for info in self._objects.list(self._base.prefix) if self._base.holds(info.key)]
        count = min(len(paths), _MOST_DOCUMENTS)
        for number in range(count):
            yield from self._queries_of(paths[number * len(paths) // count])

    def _queries_of(self, path: str) -> Sequence[str]:
        """At most two: the summary, else the title; and the heading in the middle."""
        try:
            stored = self._objects.read(path, max_bytes=self._max_document_bytes)
        except AccessRefused:
            return []
        if stored is None or stored.truncated:
            return []
        parsed = FrontmatterParser(log_problems=False).read(stored.body.decode(errors="replace"), path=path)
        declared = parsed.frontmatter
        found = headings(parsed.prose)
        heading = found[len(found) // 2] if found else None
        name = (declared.summary or declared.title) if declared else None
        return [query for query in dict.fromkeys((name, heading)) if query and query.strip()]


def _share(hits: Sequence[bool]) -> float:
    return round(sum(hits) / len(hits), 4) if hits else 0.0
