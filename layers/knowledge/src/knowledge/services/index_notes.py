"""What is noted with the index: whose vectors it holds, and the evidence from which this base has an answer."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Final

from knowledge.domain.age import is_fresh
from knowledge.domain.document import Json
from knowledge.domain.question_centring import QuestionCentring
from knowledge.domain.text import is_mostly_unspaced
from knowledge.errors import DependencyUnavailable, OtherEmbedder
from knowledge.ports import Embedder, VectorStore

_logger = logging.getLogger(__name__)

# A calibration counts in every process after at most this long; notes are read no more often. Source: own choice.
_READ_AGAIN_AFTER_S = 300.0

SPACED: Final = "spaced"
UNSPACED: Final = "unspaced"

_EMBEDDER, _DIMENSION, _CALIBRATION, _THRESHOLDS = "embedder", "dimension", "calibration", "answer_thresholds"
_CENTRING, _MEAN, _LANGUAGE = "question_centring", "mean", "language"


class IndexNotes:
    """The notes of one index in this process, for one embedder. Thread-safe when the vector store is."""

    def __init__(self, vectors: VectorStore, embedder: Embedder, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since the epoch."""
        self._vectors = vectors
        self._embedder = embedder
        self._clock = clock
        self._lock = Lock()
        self._notes: Mapping[str, Json] = {}
        self._read_at = -math.inf
        self._is_claimed = False
        self._centring: QuestionCentring | None = None

    def answer_threshold(self, script: str) -> float:
        """The evidence from which a query in that kind of script has an answer.

        As calibrated for this base, else as measured for the embedder.
        Notes are read at most every five minutes; when they cannot be, what was read before stays.

        Raises:
            OtherEmbedder: the vectors are another embedder's; says what to do. Notes are then read each time.
        """
        threshold = _noted_threshold(self._current(), script)
        return self._embedder.answer_threshold if threshold is None else threshold

    def question_centring(self) -> QuestionCentring | None:
        """As measured for this base, else for the embedder; None where neither is known. Notes as `answer_threshold`.

        Raises:
            OtherEmbedder: the index holds vectors of another embedder.
        """
        self._current()
        with self._lock:
            return self._centring or self._embedder.question_centring

    def claim(self) -> None:
        """The index says whose vectors it holds, unless it already did: looked at once by each process.

        Notes that name another embedder stay, so that searches keep being refused until the index is made anew.

        Raises:
            OtherEmbedder: there is no index of this embedder yet, but one of another.
        """
        if self._is_claimed:
            return
        try:
            notes = self._vectors.notes()
            if _EMBEDDER not in notes:
                self._vectors.note({**notes, **identity(self._embedder)})
            self._is_claimed = True
        except DependencyUnavailable as error:
            _logger.warning("index_not_claimed", extra={"reason": str(error)})

    def note_calibration(self, calibration: Mapping[str, Json]) -> None:
        """`calibration` is noted in place of an earlier one, and counts at once in this process.

        Raises:
            OtherEmbedder: the index holds vectors of another embedder.
            DependencyUnavailable: the vector store did not answer.
        """
        self._add({_CALIBRATION: dict(calibration)})

    def note_centring(self, centring: QuestionCentring) -> None:
        """`centring` is noted in place of an earlier one, and counts at once in this process. Raises as above."""
        self._add({_CENTRING: {_MEAN: list(centring.mean), _LANGUAGE: list(centring.language)}})

    def _add(self, more: Mapping[str, Json]) -> None:
        notes = self._vectors.notes()
        require_own(notes, self._embedder)
        self._vectors.note({**notes, **identity(self._embedder), **more})
        with self._lock:
            self._read_at = -math.inf

    def _current(self) -> Mapping[str, Json]:
        with self._lock:
            try:
                if not is_fresh(self._read_at, self._clock(), _READ_AGAIN_AFTER_S):
                    self._read()
                require_own(self._notes, self._embedder)
            except OtherEmbedder:
                self._read_at = -math.inf
                raise
            return self._notes

    def _read(self) -> None:
        self._read_at = self._clock()
        try:
            self._notes = self._vectors.notes()
            self._centring = _noted_centring(self._notes, self._embedder)
        except DependencyUnavailable as error:
            _logger.warning("notes_not_read", extra={"reason": str(error)})


def script_of(query: str) -> str:
    """The kind of script by which a query's threshold is chosen."""
    return UNSPACED if is_mostly_unspaced(query) else SPACED


def identity(embedder: Embedder) -> dict[str, Json]:
    """The notes that say whose vectors an index holds."""
    return {_EMBEDDER: embedder.name, _DIMENSION: embedder.dimension}


def require_own(notes: Mapping[str, Json], embedder: Embedder) -> None:
    """Raises OtherEmbedder when `notes` name another embedder or dimension; notes that name none are fine."""
    own = identity(embedder)
    noted = {name: notes.get(name, value) for name, value in own.items()}
    if noted != own:
        raise OtherEmbedder(
            f"{noted[_EMBEDDER]!r} ({noted[_DIMENSION]} numbers each)", f"{embedder.name!r} ({embedder.dimension})"
        )


def _noted_threshold(notes: Mapping[str, Json], script: str) -> float | None:
    calibration = notes.get(_CALIBRATION)
    # Without a name nobody knows whose evidence was measured.
    if not isinstance(calibration, dict) or _EMBEDDER not in notes:
        return None
    thresholds = calibration.get(_THRESHOLDS)
    threshold = thresholds.get(script) if isinstance(thresholds, dict) else None
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not math.isfinite(threshold):
        return None
    return float(threshold)


def _noted_centring(notes: Mapping[str, Json], embedder: Embedder) -> QuestionCentring | None:
    noted = notes.get(_CENTRING)
    if not isinstance(noted, dict) or _EMBEDDER not in notes:
        return None
    mean, language = (_numbers(noted.get(name), embedder.dimension) for name in (_MEAN, _LANGUAGE))
    return None if mean is None or language is None else QuestionCentring(mean, language)


def _numbers(noted: Json, count: int) -> tuple[float, ...] | None:
    if not isinstance(noted, list) or len(noted) != count:
        return None
    numbers = [float(value) for value in noted if isinstance(value, int | float) and math.isfinite(value)]
    return tuple(numbers) if len(numbers) == count else None
