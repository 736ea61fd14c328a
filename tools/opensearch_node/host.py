"""What the node needs of this machine: a Java that can run it, memory, and a user who is not root."""

import os
import pwd
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.local_cloud.places import Problem

# OpenSearch refuses to run as root.
_USER = "opensearch-node"
# The first Java that runs this version without warnings, and the last that has the security manager it relies on.
# Source: OpenSearch documentation, "Java compatibility"; JEP 486.
_OLDEST_JAVA, _NEWEST_JAVA = 17, 21


def java() -> str:
    """The path of a Java that can run the node. Raises Problem when there is none."""
    named = [os.environ[name] for name in ("OPENSEARCH_JAVA_HOME", "JAVA_HOME") if os.environ.get(name)]
    for home in (*map(Path, named), *_installed()):
        if _OLDEST_JAVA <= _java_version(home) <= _NEWEST_JAVA:
            return str(home / "bin" / "java")
    raise Problem(
        f"No Java {_OLDEST_JAVA} to {_NEWEST_JAVA} was found. Install one (Debian: apt install "
        "openjdk-17-jre-headless), or name its folder: OPENSEARCH_JAVA_HOME=/path/to/java make opensearch"
    )


def heap() -> str:
    """How much memory the node takes for its heap."""
    return os.environ.get("OPENSEARCH_HEAP", "1g")


def unprivileged_user(own: Sequence[Path], readable: Path) -> pwd.struct_passwd:
    """The node's own system user; the folders in `own` are theirs from now on. For root only.

    Raises:
        Problem: that user could not read the folder `readable`.
    """
    try:
        user = pwd.getpwnam(_USER)
    except KeyError:
        options = ["--system", "--no-create-home", "--shell", "/usr/sbin/nologin"]
        subprocess.run(["useradd", *options, _USER], check=True)
        user = pwd.getpwnam(_USER)
    for folder in own:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid)
    reachable = subprocess.run(
        ["test", "-x", str(readable)], user=user.pw_uid, group=user.pw_gid, extra_groups=[], check=False
    )
    if reachable.returncode:
        raise Problem(
            f"The user {_USER} cannot reach {readable}: every folder above it has to be open to others (chmod o+x)."
        )
    return user


def _java_version(home: Path) -> int:
    try:
        found = re.search(r'JAVA_VERSION="(\d+)', (home / "release").read_text())
    except OSError:
        return 0
    return int(found[1]) if found and (home / "bin" / "java").exists() else 0


def _installed() -> Iterator[Path]:
    yield from sorted(Path("/usr/lib/jvm").glob("*"))
    yield from sorted(Path("/Library/Java/JavaVirtualMachines").glob("*/Contents/Home"))
