"""The node as a container of the official image."""

import hashlib
import shutil
import subprocess

from tools.local_cloud.places import ROOT, Problem
from tools.opensearch_node import host, node

_IMAGE = f"opensearchproject/opensearch:{node.VERSION}"
# One for each copy of this repository on the machine.
_NAME = f"knowledge-base-opensearch-{hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]}"
_ENGINE_TIMEOUT_S = 10
_PULL_TIMEOUT_S = 600
_STOP_TIMEOUT_S = 60


def is_possible() -> bool:
    """True when an engine answers and has the image, or can get it."""
    if shutil.which("docker") is None or not _docker("version", timeout_s=_ENGINE_TIMEOUT_S):
        return False
    if _docker("image", "inspect", _IMAGE):
        return True
    print(f"pulling {_IMAGE}")
    return _docker("pull", "--quiet", _IMAGE, timeout_s=_PULL_TIMEOUT_S)


def start(port: int) -> None:
    """The container runs; it may not answer yet. Raises Problem when the engine refuses."""
    _docker("rm", "--force", _NAME)
    settings = {
        "discovery.type": "single-node",
        "DISABLE_SECURITY_PLUGIN": "true",
        "DISABLE_INSTALL_DEMO_CONFIG": "true",
        "action.auto_create_index": "false",
        "cluster.routing.allocation.disk.threshold_enabled": "false",
        "OPENSEARCH_JAVA_OPTS": f"-Xms{host.heap()} -Xmx{host.heap()}",
    }
    options = [part for name, value in settings.items() for part in ("--env", f"{name}={value}")]
    volume = ["--volume", f"{_NAME}:/usr/share/opensearch/data"]
    command = ["run", "--detach", "--name", _NAME, "--publish", f"127.0.0.1:{port}:9200", *volume, *options, _IMAGE]
    if not _docker(*command, timeout_s=_PULL_TIMEOUT_S):
        raise Problem(f"Docker could not start {_IMAGE}. Try: docker {' '.join(command)}")
    node.record_port(port)


def stop() -> bool:
    """The container is gone, its data is not; False when there was none."""
    return shutil.which("docker") is not None and all(
        (
            _docker("container", "inspect", _NAME, timeout_s=_ENGINE_TIMEOUT_S),
            _docker("stop", _NAME, timeout_s=_STOP_TIMEOUT_S),
            _docker("rm", "--force", _NAME, timeout_s=_STOP_TIMEOUT_S),
        )
    )


def wipe() -> None:
    """No data of the container is left."""
    if shutil.which("docker") is not None:
        _docker("volume", "rm", "--force", _NAME, timeout_s=_ENGINE_TIMEOUT_S)


def _docker(*arguments: str, timeout_s: float = 30) -> bool:
    try:
        done = subprocess.run(["docker", *arguments], capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
