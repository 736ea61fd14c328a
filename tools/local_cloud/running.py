"""Which processes the local cloud consists of right now, across programs that end badly."""

import json
import os
from dataclasses import dataclass

import psutil

from tools.local_cloud.places import CLOUD, Problem

_RECORD = CLOUD / "running.json"
_STOP_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class LocalCloud:
    """A local cloud that somebody started."""

    port: int
    runner: psutil.Process | None
    """The program in the foreground; None when it is gone."""
    ministack: psutil.Process | None


def write(port: int, ministack_pid: int) -> None:
    """From now on, this process and that ministack are the local cloud."""
    processes = {"runner": os.getpid(), "ministack": ministack_pid}
    record = {"port": port} | {
        # A number alone may be another process tomorrow; together with its birth it is not.
        name: {"pid": pid, "created": psutil.Process(pid).create_time()}
        for name, pid in processes.items()
    }
    _RECORD.write_text(json.dumps(record))


def forget() -> None:
    """No local cloud is running any more."""
    _RECORD.unlink(missing_ok=True)


def read() -> LocalCloud | None:
    """What was written last, or None; processes that have ended are None in it."""
    try:
        record = json.loads(_RECORD.read_text())
        return LocalCloud(record["port"], _alive(record["runner"]), _alive(record["ministack"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def end(pid: int, *, timeout_s: float) -> None:
    """That process and its children have ended; it had `timeout_s` seconds to do so in good order."""
    try:
        process = psutil.Process(pid)
        children = process.children(recursive=True)
        process.terminate()
        process.wait(timeout_s)
    except psutil.NoSuchProcess:
        return
    except psutil.TimeoutExpired:
        process.kill()
    for child in psutil.wait_procs(children, timeout=2)[1]:
        child.kill()


def clear_leftovers() -> None:
    """Nothing of an earlier run is left. Raises Problem when that run is still in somebody's foreground."""
    cloud = read()
    if cloud and cloud.runner and cloud.runner.pid != os.getpid():
        raise Problem(
            f"The local cloud is already running on port {cloud.port} (process {cloud.runner.pid}). "
            "Use that one, or end it with Ctrl-C there or with: make stop"
        )
    if cloud and cloud.ministack:
        end(cloud.ministack.pid, timeout_s=_STOP_TIMEOUT_S)
    forget()


def stop() -> bool:
    """Whatever is running has ended; False when nothing was."""
    cloud = read()
    if not cloud or not (cloud.runner or cloud.ministack):
        forget()
        return False
    if cloud.runner:
        end(cloud.runner.pid, timeout_s=2 * _STOP_TIMEOUT_S)
    if cloud.ministack:
        end(cloud.ministack.pid, timeout_s=_STOP_TIMEOUT_S)
    forget()
    return True


def _alive(process: dict[str, float]) -> psutil.Process | None:
    try:
        found = psutil.Process(int(process["pid"]))
    except psutil.NoSuchProcess:
        return None
    return found if found.create_time() == process["created"] and found.status() != psutil.STATUS_ZOMBIE else None
