"""Time that passes only while somebody sleeps, and a port at which nobody listens."""

import socket

from knowledge.adapters.backoff import Backoff


class FakeTime:
    """Notes how long was slept."""

    def __init__(self) -> None:
        self.waits_s: list[float] = []

    def sleep(self, wait_s: float) -> None:
        self.waits_s.append(wait_s)

    def backoff(self, *, jitter: float = 1.0, retry_s: float = 3.0) -> Backoff:
        return Backoff(retry_s=retry_s, sleep=self.sleep, jitter=lambda: jitter, clock=lambda: sum(self.waits_s))


def dead_url() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"
