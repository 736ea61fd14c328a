"""What a program costs in a Python process of its own. Linux only, as everything that starts the stack is."""

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

# Nothing is imported before the program ends but what every interpreter holds, so that the measure costs nothing.
# Source: proc(5): VmRSS is what is resident, VmHWM its peak, in kB of 1,024 bytes. getrusage's peak is no use here:
# it counts the parent's memory up to the exec.
_PROGRAM = """
import sys, time
told = None
started = time.perf_counter()
{body}
elapsed_s = time.perf_counter() - started
lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
resident_kb, peak_kb = (int(lines[name].split()[0]) for name in ("VmRSS", "VmHWM"))
import json
print(json.dumps([elapsed_s, resident_kb, peak_kb, told]))
"""
# The median of this many processes counts: one may meet a busy machine.
_RUNS = 3


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one program."""

    elapsed_s: float
    """Without the start of the interpreter."""
    resident_mb: float
    """Above an interpreter that did nothing, when the program ended. MB are 1,000,000 bytes."""
    peak_mb: float
    """The most there ever was, above the same."""
    told: Any
    """JSON: what the run of that time put into its variable `told`."""


def cost_of(body: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Cost:
    """The median of three fresh processes that run `body`, at the top level, with `arguments` in `sys.argv[1:]`."""
    bare_resident_kb, bare_peak_kb = _bare()
    elapsed_s, resident_kb, peak_kb, told = _median(body, arguments, environment)
    return Cost(elapsed_s, (resident_kb - bare_resident_kb) * 1024e-6, (peak_kb - bare_peak_kb) * 1024e-6, told)


@cache
def _bare() -> tuple[float, float]:
    _, resident_kb, peak_kb, _ = _median("pass", (), None)
    return resident_kb, peak_kb


def _median(
    body: str, arguments: tuple[str, ...], environment: Mapping[str, str] | None
) -> tuple[float, float, float, Any]:
    program = _PROGRAM.format(body=body)
    runs = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True, env=environment
            ).stdout.splitlines()[-1]
        )
        for _ in range(_RUNS)
    ]
    resident_kb, peak_kb = (statistics.median(run[at] for run in runs) for at in (1, 2))
    # What was told may be a time too, so it has to be of the same run.
    elapsed_s, _, _, told = sorted(runs, key=lambda run: run[0])[_RUNS // 2]
    return elapsed_s, resident_kb, peak_kb, told
