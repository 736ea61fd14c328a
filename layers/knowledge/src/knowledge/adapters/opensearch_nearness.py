"""The arithmetic on vectors that OpenSearch does not do: cosines, and cosines without each language's mean.

Plain Python, because the deployment that uses OpenSearch carries no numpy: some sixty vectors for each search.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import add, mul

from knowledge.ports import Vector


def dot(left: Vector, right: Vector) -> float:
    """The product of two vectors of one length."""
    product: float = sum(map(mul, left, right))
    return product


def unit_dot(unit: Vector, other: Vector, square: float) -> float:
    """`dot` of a vector of length 1 or 0 and another whose length has that `square`.

    By way of their distance, which Python computes without making a number of each element: five times as fast.
    """
    if not any(unit):
        return 0.0
    return (1.0 + square - math.dist(unit, other) ** 2) / 2.0


def within(cosine: float) -> float:
    """The cosine, kept from leaving -1 to 1 by rounding."""
    return min(1.0, max(-1.0, cosine))


def mean(vectors: Sequence[Vector]) -> Vector:
    """The mean of at least one vector."""
    total = list(vectors[0])
    for vector in vectors[1:]:
        total = list(map(add, total, vector))
    return [value / len(vectors) for value in total]


@dataclass(frozen=True, slots=True)
class Probe:
    """What is searched for among the chunks in one kind of script, so that they come in the order of both cosines."""

    vector: Vector
    """Unit length."""
    length: float
    """That of the query's vector plus `gain` times the query's vector without its language's mean."""
    gain: float


@dataclass(frozen=True, slots=True)
class CentredQuery:
    """A query's unit vector without the mean of its language; compares with chunks without the mean of theirs.

    Each number is put together from as few products of whole vectors as will do. Source: measured, docs/adr/0009.
    """

    vector: Vector
    """The query's own."""
    square: float
    """Of its length."""
    script: str
    means: Mapping[str, Vector]
    """The mean vector of the chunks in each kind of script."""
    length: float
    """That of the vector without its language's mean."""
    along: Mapping[str, float]
    """Product of each mean and the vector without its language's mean."""
    squares: Mapping[str, float]
    """Square of each mean's length."""
    probes: Mapping[str, Probe]

    @classmethod
    def of(cls, vector: Vector, script: str, means: Mapping[str, Vector]) -> "CentredQuery":
        """For a query in `script`."""
        centred = [value - middle for value, middle in zip(vector, means[script], strict=True)]
        length = math.hypot(*centred)
        squares = {name: dot(middle, middle) for name, middle in means.items()}
        along = {name: dot(middle, centred) for name, middle in means.items()}
        probes = {name: _probe(vector, centred, length, square) for name, square in squares.items()}
        return cls(vector, dot(vector, vector), script, means, length, along, squares, probes)

    def cosines(self, vector: Vector, script: str, probed: float | None) -> tuple[float, float]:
        """The cosine with a chunk in `script`, and that after both means are taken off; 0 for a chunk that is its mean.

        `probed` is the chunk's cosine with the probe of its script, None where that is not known.
        """
        own = unit_dot(vector, self.means[self.script], self.squares[self.script])
        if probed is None:
            plain = unit_dot(vector, self.vector, self.square)
        else:
            probe = self.probes[script]
            plain = (probed * probe.length + probe.gain * own) / (1.0 + probe.gain)
        mean_product = own if script == self.script else unit_dot(vector, self.means[script], self.squares[script])
        square = 1.0 - 2.0 * mean_product + self.squares[script]
        if square <= 0.0 or self.length == 0.0:
            return within(plain), 0.0
        return within(plain), within((plain - own - self.along[script]) / (self.length * math.sqrt(square)))


def _probe(vector: Vector, centred: Vector, length: float, square: float) -> Probe:
    """For chunks whose mean has that `square` of its length.

    The sum of both cosines is linear in the chunk but for the distance between chunk and mean; the mean square of that
    distance, 1 minus the square of the mean, stands for it.
    """
    gain = 1.0 / (length * math.sqrt(max(1.0 - square, 1e-6))) if length else 0.0
    whole = [value + gain * middle for value, middle in zip(vector, centred, strict=True)]
    size = math.hypot(*whole) or 1.0
    return Probe([value / size for value in whole], size, gain)
