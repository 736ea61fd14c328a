"""Trying a call again that failed for a reason that may pass. Knows no service and no protocol."""

import time
from collections.abc import Callable
from random import SystemRandom
from typing import TypeVar

from knowledge.errors import DependencyUnavailable

# Source: own choice; the waits add up to 3 s at most, 1.5 s on average, which a lookup can still afford.
_MAX_TRIES = 5
_FIRST_WAIT_S = 0.2
_RETRY_S = 3.0

_T = TypeVar("_T")

# 0 to 1, from the operating system: instances that a SnapStart snapshot was restored in share the state of Python's own
# generator, and would all wait for the same time. Source: AWS Lambda developer guide, "Handling uniqueness with Lambda
# SnapStart".
random_fraction = SystemRandom().random


class TransientFailureError(Exception):
    """Trying again may help. `outcome` is raised when it does not; `wait_s` is what the service asked to wait."""

    def __init__(self, outcome: DependencyUnavailable, *, wait_s: float = 0.0) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome
        self.wait_s = wait_s


class Backoff:
    """Waits between tries, longer each time, and gives up in bounded time. Safe to use from several threads.

    Source: AWS Architecture Blog, "Exponential Backoff And Jitter": the variant with full jitter.
    """

    def __init__(
        self,
        *,
        retry_s: float = _RETRY_S,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random_fraction,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """No try begins later than `retry_s` after the first. `jitter` gives 0 to 1, `clock` monotonic seconds."""
        self._retry_s = retry_s
        self._sleep = sleep
        self._jitter = jitter
        self._clock = clock

    def run(self, attempt: Callable[[], _T]) -> _T:
        """What `attempt` returns, after at most five tries; any other error than TransientFailureError passes.

        A service that asks for a longer wait than there is time for is not asked again.

        Raises:
            DependencyUnavailable: the outcome of the last try.
        """
        deadline = self._clock() + self._retry_s
        for tried in range(_MAX_TRIES):
            try:
                return attempt()
            except TransientFailureError as failure:
                wait_s = max(failure.wait_s, self._jitter() * _FIRST_WAIT_S * 2**tried)
                if tried + 1 == _MAX_TRIES or self._clock() + wait_s > deadline:
                    raise failure.outcome from failure.__cause__
                self._sleep(wait_s)
        raise AssertionError("the last try returns or raises")
