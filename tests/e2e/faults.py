"""AWS on a bad day: calls that are throttled, fail, time out or lose their answer, before or after they took effect.

Works where the SDK hands a request to the network, so that its parsers, its retries and our adapters meet the faults as
they would meet those of the network. What happens is drawn from a seed, for each thread on its own: the same thread
making the same calls meets the same faults.

The package microburst does the same in a proxy for any program. It draws without a seed, or from the request itself, so
that either no run can be made again or a call that failed fails at every retry.
"""

import io
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectionClosedError, ConnectTimeoutError, ReadTimeoutError
from botocore.httpsession import URLLib3Session
from urllib3.exceptions import ProtocolError

# Attempts of one call that meet a fault; the SDK makes three. So most faults are survived by its retries, and a third
# of them reaches our code.
_ATTEMPTS: Final = (1, 2, 3)
# How each service says that it is busy. Source: API references of S3 ("SlowDown") and DynamoDB, SQS.
_BUSY: Final = {
    "s3": (503, "SlowDown"),
    "dynamodb": (400, "ProvisionedThroughputExceededException"),
    "sqs": (400, "ThrottlingException"),
}
_BROKEN: Final = ((500, "InternalError"), (503, "ServiceUnavailable"))


class Faults:
    """Decides for every call. Thread-safe; `share` of the calls meet a fault while it is on."""

    def __init__(self, seed: int, share: float) -> None:
        self.counts: Counter[str] = Counter()
        """What happened, by kind."""
        self._seed = seed
        self._share = share
        self._is_on = False
        self._lock = threading.Lock()
        self._dice: dict[str, random.Random] = {}
        self._to_come = threading.local()
        self._network = URLLib3Session(timeout=30, max_pool_connections=64)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Calls fail inside."""
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False

    def dice(self) -> random.Random:
        """This thread's own, from the seed and the thread's name."""
        name = threading.current_thread().name
        with self._lock:
            return self._dice.setdefault(name, random.Random(f"{self._seed}/{name}"))  # noqa: S311 - repeatable

    def strikes(self) -> bool:
        """True when this call, of whatever kind, is to fail."""
        return self._is_on and self.dice().random() < self._share

    def __call__(self, request: AWSPreparedRequest, event_name: str, **_: Any) -> AWSResponse | None:
        """A handler of the SDK's event `before-send`; None lets the request through."""
        service = event_name.split(".")[1]
        if b"attempt=1" in _bytes(request.headers.get("amz-sdk-request", "attempt=1")):
            self._to_come.left = self.dice().choice(_ATTEMPTS) if self.strikes() else 0
        if not self._to_come.left:
            return None
        self._to_come.left -= 1
        kinds: dict[str, Callable[[AWSPreparedRequest, str], AWSResponse]] = {
            "throttled": self._throttled,
            "failed before": self._failed,
            "failed after": self._failed_after,
            "timed out before": self._timed_out_before,
            "timed out after": self._timed_out_after,
            "dropped before": self._dropped_before,
            "dropped after": self._dropped_after,
            "cut": self._cut,
        }
        kind = self.dice().choice(list(kinds))
        self.counts[kind] += 1
        return kinds[kind](request, service)

    def _throttled(self, request: AWSPreparedRequest, service: str) -> AWSResponse:
        return _error(request, service, *_BUSY[service])

    def _failed(self, request: AWSPreparedRequest, service: str) -> AWSResponse:
        return _error(request, service, *self.dice().choice(_BROKEN))

    def _failed_after(self, request: AWSPreparedRequest, service: str) -> AWSResponse:
        self._send(request)
        return self._failed(request, service)

    def _timed_out_before(self, request: AWSPreparedRequest, _: str) -> AWSResponse:
        raise ConnectTimeoutError(endpoint_url=request.url)

    def _timed_out_after(self, request: AWSPreparedRequest, _: str) -> AWSResponse:
        self._send(request)
        raise ReadTimeoutError(endpoint_url=request.url)

    def _dropped_before(self, request: AWSPreparedRequest, _: str) -> AWSResponse:
        raise ConnectionClosedError(endpoint_url=request.url)

    def _dropped_after(self, request: AWSPreparedRequest, service: str) -> AWSResponse:
        self._send(request)
        return self._dropped_before(request, service)

    def _cut(self, request: AWSPreparedRequest, service: str) -> AWSResponse:
        """The head of the answer arrives and its body does not; answers that are not streamed are dropped."""
        answer = self._send(request)
        if request.method != "GET" or service != "s3" or answer.status_code not in (200, 206) or "?" in request.url:
            return self._dropped_before(request, service)
        return _answer(answer.url, answer.status_code, answer.headers, _Cut())

    def _send(self, request: AWSPreparedRequest) -> AWSResponse:
        answer: AWSResponse = self._network.send(request)
        answer.content  # noqa: B018 - read whole, so that the connection can be used again
        return answer


class _Body(io.BytesIO):
    """A body as urllib3 gives it."""

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self.read()


class _Cut(_Body):
    """A body whose connection closes at once."""

    def read(self, *_: Any, **__: Any) -> bytes:
        raise ProtocolError("the connection was closed")


def _error(request: AWSPreparedRequest, service: str, status: int, code: str) -> AWSResponse:
    """The answer with which the service refuses, as its protocol has it."""
    if service == "s3":
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>injected</Message></Error>"
        headers = {"Content-Type": "application/xml"}
    else:
        body = f'{{"__type": "com.amazonaws.injected#{code}", "message": "injected"}}'
        headers = {"Content-Type": "application/x-amz-json-1.0"}
    return _answer(request.url, status, headers, _Body(b"" if request.method == "HEAD" else body.encode()))


def _answer(url: str, status: int, headers: Any, body: "_Body") -> AWSResponse:
    return AWSResponse(url, status, headers, body)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
