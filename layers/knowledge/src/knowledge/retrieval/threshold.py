"""From which evidence on there is an answer, given that of queries which should have none."""

import math
from collections.abc import Sequence
from statistics import median

# The share of questions off the topic that is refused, as far as the bounds below let it. Source: own choice.
_REFUSED_SHARE = 0.98
# The threshold lies so many standard deviations above the median of the questions off the topic: at least so many,
# because a list cannot hold what is nearly on the topic; at most so many, because a base may answer some of the list.
# Source: measured, docs/adr/0013.
_LEAST_DEVIATIONS = 3.0
_MOST_DEVIATIONS = 3.5
# A median absolute deviation as a standard deviation, which outliers do not move. Source: 1 / Phi^-1(3/4).
_DEVIATION_PER_MAD = 1.4826
# A sentence whose own document does not count is on the topic and has no answer, or hardly one: at least the first
# share of them is refused, and not for the list's sake more than the second. Source: measured, docs/adr/0013.
_LEAST_ORPHANS_REFUSED = 0.05
_MOST_ORPHANS_REFUSED = 0.6
# Fewer say nothing about a share. Source: own choice.
_FEWEST_ORPHANS = 10


def calibrated_threshold(off_topic: Sequence[float], orphans: Sequence[float]) -> float:
    """The threshold for a base in which at least one question off its topic reaches each evidence of `off_topic`.

    `orphans` is the evidence of sentences of its own whose documents do not count; under ten of them do not matter.
    """
    middle = median(off_topic)
    deviation = _DEVIATION_PER_MAD * median(abs(evidence - middle) for evidence in off_topic)
    least, most = middle + _LEAST_DEVIATIONS * deviation, middle + _MOST_DEVIATIONS * deviation
    wanted = min(max(_above(off_topic, _REFUSED_SHARE), least), most)
    if len(orphans) < _FEWEST_ORPHANS:
        return wanted
    least, most = (_above(orphans, share) for share in (_LEAST_ORPHANS_REFUSED, _MOST_ORPHANS_REFUSED))
    return min(max(wanted, least), most)


def _above(values: Sequence[float], share: float) -> float:
    """A number that at least `share` of the values lie below: midway to the next one, where there is one."""
    ordered = sorted(values)
    count = math.ceil(share * len(ordered))
    if count < len(ordered):
        return (ordered[count - 1] + ordered[count]) / 2
    return math.nextafter(ordered[-1], math.inf)
