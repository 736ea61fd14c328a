"""The figures, from ranked ids and scores. Knows neither systems nor sets."""

import math
from collections.abc import Mapping, Sequence

Ranked = Sequence[str]
Gains = Mapping[str, float]


def recall(ranked: Ranked, gains: Gains, *, depth: int) -> float:
    """The share of the relevant documents among the first `depth`, 0 to 1."""
    return len(gains.keys() & set(ranked[:depth])) / len(gains)


def reciprocal_rank(ranked: Ranked, gains: Gains, *, depth: int) -> float:
    """1 over the place of the first relevant document among the first `depth`, 0 when there is none."""
    return next((1 / place for place, doc_id in enumerate(ranked[:depth], start=1) if doc_id in gains), 0.0)


def ndcg(ranked: Ranked, gains: Gains, *, depth: int) -> float:
    """Discounted gain of the first `depth` as a share of the best possible, 0 to 1.

    Source: Järvelin and Kekäläinen 2002, with the gain itself and log2(place + 1), as trec_eval computes it.
    """
    best = sorted(gains.values(), reverse=True)[:depth]
    return _discounted([gains.get(doc_id, 0.0) for doc_id in ranked[:depth]]) / _discounted(best)


def _discounted(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(place + 1) for place, gain in enumerate(gains, start=1))


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """How often a positive scores above a negative, a tie counting half; None when one of them is empty.

    O(n log n): the Mann-Whitney statistic from the ranks.
    """
    if not positive or not negative:
        return None
    labelled = sorted([(score, True) for score in positive] + [(score, False) for score in negative])
    wins, below, start = 0.0, 0, 0
    while start < len(labelled):
        end = start
        while end < len(labelled) and labelled[end][0] == labelled[start][0]:
            end += 1
        group = [is_positive for _, is_positive in labelled[start:end]]
        wins += sum(group) * (below + group.count(False) / 2)
        below += group.count(False)
        start = end
    return wins / (len(positive) * len(negative))


def precision_and_recall(predicted: Sequence[bool], actual: Sequence[bool]) -> tuple[float | None, float | None]:
    """Of what was predicted, the share that is; of what is, the share that was predicted. None for a share of none."""
    both = sum(guess and truth for guess, truth in zip(predicted, actual, strict=True))
    return share(both, sum(predicted)), share(both, sum(actual))


def share(part: int, whole: int) -> float | None:
    """`part` of `whole`, or None when there is no whole."""
    return part / whole if whole else None


def mean(values: Sequence[float]) -> float | None:
    """The mean, or None of nothing."""
    return math.fsum(values) / len(values) if values else None


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The smallest value that at least `percent` of all values do not exceed; None of nothing."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]
