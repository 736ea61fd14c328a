"""What a question's vector holds beside what is asked: that it is a question, and its language. Taken off here."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Self

from knowledge.domain.text import is_mostly_unspaced

# How much of the mean of typical questions is taken off. Source: measured, docs/adr/0012.
_MEAN_WEIGHT = 0.6
# Five decimals are more than a mean of some dozen vectors is worth.
_DECIMALS = 5


@dataclass(frozen=True, slots=True)
class QuestionCentring:
    """Turns a question's vector into the one whose nearest documents are wanted.

    Documents that are near every question (hubs) lose what they owe to that, and those in the question's own language
    what they owe to it. Source: Suzuki et al. 2013, "Centering Similarity Measures to Reduce Hubs"; Yang et al. 2021,
    "A Simple and Effective Method to Eliminate the Self Language Bias in Multilingual Representations".
    """

    mean: tuple[float, ...]
    """Of the vectors of typical questions."""
    language: tuple[float, ...]
    """Unit length: from questions in scripts with blanks to those in scripts without. Zeros where there is no such."""

    @classmethod
    def of(
        cls, typical: Sequence[Sequence[float]], spaced: Sequence[Sequence[float]], unspaced: Sequence[Sequence[float]]
    ) -> Self:
        """From the vectors, of one length, of typical questions and of questions on the same topics in both scripts.

        None of the three may be empty.
        """
        between = [a - b for a, b in zip(_mean(unspaced), _mean(spaced), strict=True)]
        length = math.hypot(*between) or 1.0
        return cls(
            tuple(round(value, _DECIMALS) for value in _mean(typical)),
            tuple(round(value / length, _DECIMALS) for value in between),
        )

    @classmethod
    def measured(cls, typical: Sequence[Sequence[float]], asked: Mapping[str, Sequence[float]]) -> Self:
        """From the vectors of typical questions, and by question of others, some in each kind of script."""
        by_script: dict[bool, list[Sequence[float]]] = {False: [], True: []}
        for question, vector in asked.items():
            by_script[is_mostly_unspaced(question)].append(vector)
        return cls.of(typical, by_script[False], by_script[True])

    @property
    def dimension(self) -> int:
        """Length of the vectors that it is for."""
        return len(self.mean)

    def nearest_to(self, vector: Sequence[float]) -> Sequence[float]:
        """The vector, of any length, whose products with the documents' vectors order them."""
        rest = [value - _MEAN_WEIGHT * mean for value, mean in zip(vector, self.mean, strict=True)]
        along = sum(map(mul, rest, self.language))
        return [value - along * part for value, part in zip(rest, self.language, strict=True)]


def _mean(vectors: Sequence[Sequence[float]]) -> list[float]:
    return [math.fsum(values) / len(vectors) for values in zip(*vectors, strict=True)]
