"""From which evidence on there is an answer, given that of queries that have one and of queries that have none."""

import math
from collections.abc import Sequence
from statistics import median

# The share of questions off the topic that is refused, as far as the bounds below let it. Source: own choice.
_REFUSED_SHARE = 0.98
# The threshold lies so many standard deviations above the median of the questions off the topic: at least so many,
# because questions near the topic are harder to refuse; at most so many, because a base may answer some of the list.
# Source: measured, docs/adr/0011.
_LEAST_DEVIATIONS = 2.25
_MOST_DEVIATIONS = 3.0
# A median absolute deviation as a standard deviation, which outliers do not move. Source: 1 / Phi^-1(3/4).
_DEVIATION_PER_MAD = 1.4826
# At most this share of the base's own titles, headings and summaries may be refused. Source: own choice.
_OWN_REFUSED_SHARE = 0.05


def calibrated_threshold(own: Sequence[float], off_topic: Sequence[float]) -> float:
    """The threshold for a base in which its own queries and those off its topic reach this evidence; both hold some."""
    middle = median(off_topic)
    deviation = _DEVIATION_PER_MAD * median(abs(evidence - middle) for evidence in off_topic)
    least, most = middle + _LEAST_DEVIATIONS * deviation, middle + _MOST_DEVIATIONS * deviation
    wanted = min(max(_above(off_topic, _REFUSED_SHARE), least), most)
    return min(wanted, sorted(own)[math.floor(_OWN_REFUSED_SHARE * len(own))])


def _above(values: Sequence[float], share: float) -> float:
    """A number that at least `share` of the values lie below: midway to the next one, where there is one."""
    ordered = sorted(values)
    count = math.ceil(share * len(ordered))
    if count < len(ordered):
        return (ordered[count - 1] + ordered[count]) / 2
    return math.nextafter(ordered[-1], math.inf)
