"""An embedder without a model: texts that share words or pieces of words are near. Deterministic in every process.

For tests and for trying things out; it knows nothing of meaning.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from knowledge.domain.question_centring import QuestionCentring
from knowledge.domain.text import normalise
from knowledge.ports import Vector

# A power of two, so that a hash spreads evenly; large enough that unrelated texts are almost orthogonal, small enough
# that brute force in Python is quick. Source: own choice.
_DIMENSION = 256
# Source: own choice; texts that share half of their words are above it, unrelated ones below.
_ANSWER_THRESHOLD = 0.5


class HashingEmbedder:
    """Embedder by feature hashing with signs (Source: Weinberger et al. 2009) over words, 2-grams and 3-grams."""

    @property
    def name(self) -> str:
        """See Embedder."""
        return "hashing-3gram"

    @property
    def dimension(self) -> int:
        """See Embedder."""
        return _DIMENSION

    @property
    def max_tokens(self) -> int:
        """See Embedder; there is no limit here, the number is that of the local model so that chunks are alike."""
        return 512

    @property
    def answer_threshold(self) -> float:
        """See Embedder."""
        return _ANSWER_THRESHOLD

    @property
    def question_centring(self) -> QuestionCentring | None:
        """See Embedder; not measured for this one."""
        return None

    @property
    def batch_size(self) -> int:
        """See Embedder; that of the local model, so that documents are interrupted alike."""
        return 4

    def embed_query(self, text: str) -> Vector:
        """See Embedder."""
        return _embed(text)

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        """See Embedder."""
        return [_embed(text) for text in texts]


def _embed(text: str) -> Vector:
    vector = [0.0] * _DIMENSION
    for feature, count in Counter(_features(normalise(text))).items():
        digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        sign = 1.0 if digest[0] & 1 else -1.0
        vector[int.from_bytes(digest[1:]) % _DIMENSION] += sign * math.sqrt(count)
    length = math.hypot(*vector)
    if length == 0.0:
        # No feature, or features that cancel out: any unit vector does, always the same one.
        return [1.0] + [0.0] * (_DIMENSION - 1)
    return [value / length for value in vector]


def _features(text: str) -> Iterator[str]:
    for word in re.findall(r"\w+", text):
        yield word
        padded = f" {word} "
        for size in (2, 3):
            for start in range(len(padded) - size + 1):
                yield padded[start : start + size]
