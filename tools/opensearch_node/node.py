"""The node as a process of this machine: started, found again, stopped; and whether anything answers at its port."""

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import psutil

from tools.local_cloud import running
from tools.local_cloud.places import LOCAL, Problem, endpoint
from tools.opensearch_node import host

VERSION = "2.19.1"
FOLDER = LOCAL / "opensearch"
HOME = FOLDER / "home"

# From the port of HTTP to that of the transport between nodes.
TRANSPORT = 100

_RECORD = FOLDER / "running.json"
_LOG = "node.log"
_READY_TIMEOUT_S = 90
_STOP_TIMEOUT_S = 30
# Source: bin/opensearch and config/jvm.options of the distribution.
_JVM_OPTIONS = (
    "-XX:+UseG1GC",
    "-Djava.awt.headless=true",
    "-Dfile.encoding=UTF-8",
    "-Djna.nosys=true",
    "-Dio.netty.noUnsafe=true",
    "-Dio.netty.noKeySetOptimization=true",
    "-Dio.netty.recycler.maxCapacityPerThread=0",
    "-Dlog4j.shutdownHookEnabled=false",
    "-Dlog4j2.disable.jmx=true",
    "-Djava.locale.providers=SPI,COMPAT",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "-Dopensearch.distribution.type=tar",
    "-Dopensearch.bundled_jdk=false",
)


def running_url() -> str | None:
    """Where the node that was started last answers, or None when it does not."""
    try:
        port = int(json.loads(_RECORD.read_text())["port"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return endpoint(port) if answers(port) else None


def record_port(port: int, process: psutil.Process | None = None) -> None:
    """From now on the node is the one at that port, and that process unless it is a container."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    record = {"port": port, "pid": process.pid, "created": process.create_time()} if process else {"port": port}
    _RECORD.write_text(json.dumps(record))


def is_free(port: int) -> bool:
    """Nobody listens there, nor where a node on that port would talk to other nodes."""
    for one in (port, port + TRANSPORT):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", one)) == 0:
                return False
    return True


def refuse_taken_port(port: int) -> None:
    """Raises Problem when `port` is not free."""
    if not is_free(port):
        raise Problem(f"Port {port} is taken by another program. Choose one: make opensearch PORT=9201")


def start(port: int) -> None:
    """The node of `HOME` has been started; it may not answer yet. Raises Problem."""
    record_port(port, psutil.Process(launch(port, FOLDER).pid))


def launch(port: int, folder: Path) -> "subprocess.Popen[bytes]":
    """A node of the program in `HOME`, with data, settings and log in `folder` alone. Raises Problem."""
    program = host.java()
    folders = {name: folder / name for name in ("data", "logs", "tmp", "config")}
    for one in folders.values():
        one.mkdir(parents=True, exist_ok=True)
    settings = {
        "cluster.name": "local",
        "node.name": "local",
        "discovery.type": "single-node",
        "network.host": "127.0.0.1",
        "http.port": port,
        "transport.port": port + TRANSPORT,
        "path.data": folders["data"],
        "path.logs": folders["logs"],
        "action.auto_create_index": "false",
        "cluster.routing.allocation.disk.threshold_enabled": "false",
    }
    lines = [f"{name}: {value}\n" for name, value in settings.items()]
    (folders["config"] / "opensearch.yml").write_text("".join(lines))
    shutil.copy(HOME / "config" / "log4j2.properties", folders["config"])
    user = host.unprivileged_user(list(folders.values()), HOME / "lib") if os.getuid() == 0 else None
    command = [
        program,
        f"-Xms{host.heap()}",
        f"-Xmx{host.heap()}",
        *_JVM_OPTIONS,
        f"-Djava.io.tmpdir={folders['tmp']}",
        f"-Dopensearch.path.home={HOME}",
        f"-Dopensearch.path.conf={folders['config']}",
        "-cp",
        f"{HOME}/lib/*",
        "org.opensearch.bootstrap.OpenSearch",
    ]
    with (folder / _LOG).open("wb") as log:
        return subprocess.Popen(
            command,
            cwd=HOME,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
        )


def wait_until_ready(port: int) -> str:
    """Its address, once it answers. Raises Problem with the end of its log when it does not."""
    deadline = time.monotonic() + _READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if answers(port):
            return endpoint(port)
        record = json.loads(_RECORD.read_text())
        if "pid" in record and _process() is None:
            break
        time.sleep(0.5)
    file = FOLDER / _LOG
    log = file.read_text(errors="replace")[-3000:] if file.exists() else ""
    raise Problem(f"OpenSearch does not answer at {endpoint(port)}.\n{log}")


def stop() -> bool:
    """The process has ended; False when there was none."""
    process = _process()
    if process:
        running.end(process.pid, timeout_s=_STOP_TIMEOUT_S)
    _RECORD.unlink(missing_ok=True)
    return process is not None


def wipe() -> None:
    """No data of the process is left."""
    shutil.rmtree(FOLDER / "data", ignore_errors=True)


def _process() -> psutil.Process | None:
    try:
        record = json.loads(_RECORD.read_text())
        found = psutil.Process(int(record["pid"]))
        alive = found.create_time() == record["created"] and found.status() != psutil.STATUS_ZOMBIE
    except (OSError, ValueError, KeyError, TypeError, psutil.NoSuchProcess):
        return None
    return found if alive else None


def answers(port: int) -> bool:
    """True when the node at that port has every index at hand."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{endpoint(port)}/_cluster/health", timeout=2) as answer:
            return json.load(answer)["status"] in ("green", "yellow")
    except (OSError, ValueError, KeyError):
        return False
