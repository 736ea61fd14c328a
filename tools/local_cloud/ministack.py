"""Starts and stops ministack, the local AWS, and turns its access log into requests of our API."""

import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx

from tools.local_cloud import places, running
from tools.local_cloud.places import CLOUD, Problem

LOG = CLOUD / "ministack.log"
_SCRATCH = CLOUD / "tmp"  # where every worker unpacks the layers for itself, and leaves them
_START_TIMEOUT_S = 60
_STOP_TIMEOUT_S = 60  # it writes its state while it stops; layers and objects are large
_LOG_FORMAT = "%(s)s %(D)s %(m)s %(U)s"  # status, microseconds, method, path with query
_API_REQUEST = re.compile(r"\[INFO\] (\d{3}) (\d+) ([A-Z]+) /_aws/execute-api/[^/]+/[^/?]+(/[^?]*)?")


@dataclass(frozen=True, slots=True)
class Request:
    """One request that reached the API."""

    method: str
    path: str
    status: int
    elapsed_ms: float


def parse_access_line(line: str) -> Request | None:
    """The request that a line of the access log tells of; None for calls of anything but our API."""
    match = _API_REQUEST.search(line.rstrip("\n"))
    if not match:
        return None
    status, microseconds, method, path = match.groups()
    return Request(method, path or "/", int(status), int(microseconds) / 1000)


class Ministack:
    """The running process; use it as a context manager, and everything it started ends with it."""

    def __init__(self, port: int, on_request: Callable[[Request], None]) -> None:
        self._port = port
        self._on_request = on_request
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "Ministack":
        self._refuse_taken_port()
        _discard(_SCRATCH)
        _SCRATCH.mkdir(parents=True)
        command = [places.program("ministack", "python"), "-m", "hypercorn", "tools.local_cloud.gateway:app"]
        # Without workers it is one process, which cannot leave another one behind.
        command += ["--workers", "0", "--bind", f"127.0.0.1:{self._port}", "--keep-alive", "75"]
        command += ["--access-logfile", "-", "--access-logformat", _LOG_FORMAT]
        with LOG.open("w") as log:
            # A session of its own: Ctrl-C reaches this program alone, which then ends it in good order.
            self._process = subprocess.Popen(
                command,
                cwd=places.ROOT,
                env=self._environment(),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        running.write(self._port, self._process.pid)
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self.__exit__()
            raise
        threading.Thread(target=self._follow, args=(self._process.stdout,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not lose the state it is writing
        if self._process:
            running.end(self._process.pid, timeout_s=_STOP_TIMEOUT_S)
            self._process.wait()
            print("Stopped; what the knowledge base holds is kept in .local.")
        running.forget()
        _discard(_SCRATCH)

    def wait(self) -> None:
        """Returns when the process ends by itself, which it should not; raises Problem then."""
        if self._process:
            self._process.wait()
        raise Problem(f"ministack ended unexpectedly:\n{tail()}")

    def _refuse_taken_port(self) -> None:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", self._port))
            except OSError as error:
                raise Problem(
                    f"Port {self._port} of 127.0.0.1 cannot be used: {error.strerror}. "
                    f"End the program that holds it, or choose another one: make run PORT={self._port + 1}"
                ) from error

    def _environment(self) -> dict[str, str]:
        return {
            # What is set for Python programs here is not meant for the functions it runs.
            **{k: v for k, v in places.process_environment(self._port).items() if not k.startswith("PYTHON")},
            "GATEWAY_PORT": str(self._port),
            "PERSIST_STATE": "1",
            "STATE_DIR": str(CLOUD / "state"),
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(CLOUD / "s3"),
            "AUTH": "true",  # functions may do what their roles allow, and nothing else
            "LAMBDA_EXECUTOR": "local",
            "SFTP_ENABLED": "0",
            "IOT_MTLS_ENABLED": "0",
            "LOG_LEVEL": "INFO",
            "TMPDIR": str(_SCRATCH),
        }

    def _wait_until_ready(self, process: subprocess.Popen[str]) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline and process.poll() is None:
            try:
                httpx.get(f"{places.endpoint(self._port)}/_ministack/health", trust_env=False).raise_for_status()
            except httpx.HTTPError:
                time.sleep(0.1)
            else:
                return
        raise Problem(f"ministack did not start:\n{tail()}")

    def _follow(self, access_log: IO[str] | None) -> None:
        for line in access_log or ():
            request = parse_access_line(line)
            if request:
                self._on_request(request)


def _discard(folder: Path) -> None:
    """The folder is out of the way at once; removing its hundreds of megabytes is left to a process of its own."""
    if folder.exists():
        trash = folder.rename(folder.with_name(f"trash-{time.time_ns()}"))
        subprocess.Popen(["rm", "-rf", trash], start_new_session=True)


def tail(lines: int = 25) -> str:
    """The last lines of ministack's log, and where the rest is."""
    text = LOG.read_text(errors="replace").splitlines()[-lines:] if LOG.exists() else []
    return "\n".join([*text, f"(the whole log: {LOG.relative_to(places.ROOT)})"])
