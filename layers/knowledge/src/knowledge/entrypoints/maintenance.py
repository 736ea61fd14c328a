"""Maintenance, by schedule or by hand: the threshold is calibrated within one invocation. The event says nothing."""

import functools
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from knowledge.services.calibration import Calibration

# What an invocation needs after the last look at the clock: a query that was just begun, and the notes.
# Source: own choice; a query takes under a second, a call to S3 that is tried again up to five.
_RESERVED_S = 8.0


def build_handler(build: Callable[[], Calibration]) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """The maintenance handler; answers the figures of the calibration."""
    services = functools.cache(build)

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        deadline = time.monotonic() + context.get_remaining_time_in_millis() / 1000 - _RESERVED_S
        return {"calibration": asdict(services().calibrate(deadline=deadline))}

    return handler
