"""Maintenance, by schedule or by hand: the tasks that the event names, all of them when it names none.

    {"tasks": ["calibrate", "compact", "compact_items", "reconcile", "sweep"]}

A task that fails does not keep the others from running; the invocation fails after the last one.
"""

import functools
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit, single_metric

from knowledge.entrypoints.metrics import NAMESPACE, PUBLISHED_WITHOUT_EMBEDDING
from knowledge.errors import InvalidInput
from knowledge.services.calibration import Calibration
from knowledge.services.compaction import LONG_LOG, Compaction
from knowledge.services.item_index import ItemIndex
from knowledge.services.item_sweep import ItemSweep
from knowledge.services.reconcile import Reconcile

_logger = logging.getLogger(__name__)

# What an invocation needs after the last look at the clock: a query or a document that was just begun, and the notes.
# Source: own choice; a query takes under a second, a call to S3 that is tried again up to five.
_RESERVED_S = 8.0
# What is done when the event names nothing; the other tasks do nothing unless there is need.
_EVERY_DAY = ("compact", "sweep", "compact_items", "calibrate", "reconcile")


@dataclass(frozen=True, slots=True)
class MaintenanceServices:
    """What the tasks are done with; each is made when its task begins for the first time."""

    calibration: Callable[[], Calibration]
    compaction: Callable[[], Compaction]
    reconcile: Callable[[], Reconcile]
    sweep: Callable[[], ItemSweep]
    item_index: Callable[[], ItemIndex]


def build_handler(build: Callable[[], MaintenanceServices]) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """The maintenance handler; answers an object with the figures of each task under its name."""
    services = functools.cache(build)
    calibration = functools.cache(lambda: services().calibration())
    compaction = functools.cache(lambda: services().compaction())
    reconcile = functools.cache(lambda: services().reconcile())
    sweep = functools.cache(lambda: services().sweep())
    item_index = functools.cache(lambda: services().item_index())
    # In the order in which they run; the last one takes what is left of the time.
    tasks: Mapping[str, Callable[[float], Mapping[str, Any]]] = {
        "compact": lambda _: asdict(compaction().compact()),
        "compact_if_due": lambda _: asdict(compaction().compact(least_changes=LONG_LOG)),
        "sweep": lambda deadline: _swept(sweep(), deadline),
        "compact_items": lambda _: asdict(item_index().save()),
        "calibrate": lambda deadline: asdict(calibration().calibrate(deadline=deadline)),
        "reconcile": lambda deadline: reconcile().resume(deadline=deadline).as_json(),
        "reconcile_unfinished": lambda deadline: reconcile().resume(deadline=deadline, begin=False).as_json(),
    }

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        deadline = time.monotonic() + context.get_remaining_time_in_millis() / 1000 - _RESERVED_S
        names = event.get("tasks", _EVERY_DAY)
        if unknown := [name for name in names if name not in tasks]:
            raise InvalidInput(f"there is no task {unknown[0]!r}; there are {', '.join(tasks)}", field="tasks")
        answer, failures = {}, []
        for name in [name for name in tasks if name in names]:
            try:
                answer[name] = tasks[name](deadline)
            except Exception as error:  # the outermost loop over independent tasks
                _logger.exception("maintenance_task_failed", extra={"task": name})
                failures.append((name, error))
        if failures:
            named = ", ".join(name for name, _ in failures)
            raise ExceptionGroup(f"failed: {named}; see maintenance_task_failed in the log", [e for _, e in failures])
        return answer

    return handler


def _swept(sweep: ItemSweep, deadline: float) -> Mapping[str, Any]:
    """The figures of a sweep; published items without an embedding are a metric too, while there are any."""
    swept = sweep.sweep(deadline=deadline)
    if count := swept.published_without_embedding:
        with single_metric(PUBLISHED_WITHOUT_EMBEDDING, MetricUnit.Count, count, namespace=NAMESPACE):
            pass
    return asdict(swept)
