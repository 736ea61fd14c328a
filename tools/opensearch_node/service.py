"""Starting and stopping the node, wherever it comes from."""

from collections.abc import Iterator
from contextlib import contextmanager

from tools.local_cloud.places import LOCAL
from tools.opensearch_node import assembly, container, node

DEFAULT_PORT = 9200

# Says which node somebody started for as long as they run, so that a program that was killed leaves no node for ever.
_LENT = LOCAL / "opensearch-lent.json"


def start(port: int = DEFAULT_PORT, origin: str | None = None) -> str:
    """Where it answers, which may be another port if it runs already. `origin` is docker or maven. Raises Problem."""
    if url := node.running_url():
        return url
    node.refuse_taken_port(port)
    if origin == "docker" or (origin is None and container.is_possible()):
        container.start(port)
    else:
        assembly.assemble()
        node.start(port)
    return node.wait_until_ready(port)


def stop() -> bool:
    """It has ended; False when it did not run."""
    _LENT.unlink(missing_ok=True)
    return any([container.stop(), node.stop()])


def wipe() -> None:
    """Its data is gone."""
    container.wipe()
    node.wipe()


@contextmanager
def lent() -> Iterator[str]:
    """Where it answers; unless it ran before, it is started on the first free port and stopped at the end."""
    if node.running_url() is None:
        # Written first, so that a start that is broken off is not forgotten either.
        _LENT.parent.mkdir(parents=True, exist_ok=True)
        _LENT.touch()
    try:
        yield start(next(filter(node.is_free, range(DEFAULT_PORT, DEFAULT_PORT + node.TRANSPORT))))
    finally:
        stop_lent()


def stop_lent() -> bool:
    """A node that runs only because `lent` started it has ended; False when there was none."""
    return _LENT.exists() and stop()
