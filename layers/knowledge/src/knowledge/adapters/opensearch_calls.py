"""The one edge where errors of opensearch-py become ours, and where a call is made again. Knows no index and no query.

Decides by class, HTTP status and the answer's `type`, never by message.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from opensearchpy.exceptions import ConnectionError as NoConnection
from opensearchpy.exceptions import ConnectionTimeout, NotFoundError, SerializationError, TransportError

from knowledge.adapters.backoff import random_fraction
from knowledge.errors import CorruptState, DependencyUnavailable, KnowledgeError

OPENSEARCH = "OpenSearch"

# Full jitter: a random part of a bound that doubles. Source: Amazon Builders' Library, "Timeouts, retries and backoff
# with jitter". The bounds are our choice: a caller has waited 0.15 s on average when the last of three tries fails.
MAX_TRIES = 3
_FIRST_DELAY_S = 0.1
_LONGEST_DELAY_S = 2.0
# Too many requests; and what a proxy or a starting node says. Source: RFC 9110 and 6585.
_RETRIABLE = frozenset({429, 502, 503, 504})


class IndexAbsentError(Exception):
    """There is no index under that alias; stays inside the adapter."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waiting before another try; time and chance are given so that a test can hold them."""

    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random_fraction

    def wait(self, failures: int) -> None:
        """Some time has passed, longer on average after each of `failures` in a row."""
        self.sleep(self.random() * min(_LONGEST_DELAY_S, _FIRST_DELAY_S * 2.0 ** (failures - 1)))


def ask(call: Callable[[], Any], backoff: Backoff) -> Any:
    """The answer of a call that may be made twice; None when what it names is not there (404).

    At most three tries. A call that timed out is not made again: its caller has no time left.
    """
    failures = 0
    while True:
        try:
            return call()
        except NotFoundError:
            return None
        except (TransportError, SerializationError) as error:
            failures += 1
            if failures == MAX_TRIES or isinstance(error, ConnectionTimeout) or not is_retriable(error):
                raise as_ours(error) from error
        backoff.wait(failures)


def is_retriable(error: TransportError | SerializationError) -> bool:
    """True when the same call may succeed in a moment."""
    return isinstance(error, NoConnection) or is_retriable_status(status_of(error))


def is_retriable_status(status: int) -> bool:
    """True when the same call, or the same item of a bulk, may succeed in a moment."""
    return status in _RETRIABLE


def may_have_taken_effect(error: TransportError | SerializationError) -> bool:
    """False only when the call was answered and refused; without an answer, or through a proxy, nothing is certain."""
    return not 400 <= status_of(error) < 500


def status_of(error: TransportError | SerializationError) -> int:
    """The HTTP status, 0 when there was no answer or none that could be read."""
    status = error.status_code if isinstance(error, TransportError) else 0
    return status if isinstance(status, int) else 0


def as_ours(error: TransportError | SerializationError) -> KnowledgeError:
    """The error that the caller of the adapter sees."""
    if isinstance(error, ConnectionTimeout):
        return DependencyUnavailable(OPENSEARCH, "did not answer in time")
    if isinstance(error, NoConnection):
        return DependencyUnavailable(OPENSEARCH, "could not be reached")
    if isinstance(error, SerializationError):
        return DependencyUnavailable(OPENSEARCH, "gave an answer that cannot be read")
    return refusal(status_of(error), error_type(error.info.get("error") if isinstance(error.info, dict) else None))


def refusal(status: int, kind: str) -> KnowledgeError:
    """The error for an answer of that status with OpenSearch's `type` of error."""
    if status >= 500:
        return DependencyUnavailable(OPENSEARCH, "failed")
    if status == 429:
        return DependencyUnavailable(OPENSEARCH, "has too much to do")
    # Refused for a reason that only an operator can remove; status and type tell which.
    return DependencyUnavailable(OPENSEARCH, f"refused the call ({status}, {kind})")


def other_dimension(wanted: int, stored: int) -> CorruptState:
    """The error for vectors of one model and an index of another's."""
    return CorruptState(
        f"the index holds vectors of {stored} numbers and the embedder makes {wanted}: it was made by another model. "
        "Set the embedder back, or embed everything again with: make reindex"
    )


def error_type(error: object) -> str:
    """OpenSearch's name for what went wrong."""
    kind = error.get("type") if isinstance(error, dict) else None
    return kind if isinstance(kind, str) else "unknown"


@contextmanager
def readable() -> Iterator[None]:
    """An answer that is read inside and has another form than OpenSearch's leaves as one of our errors."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise DependencyUnavailable(OPENSEARCH, "gave an answer that cannot be read") from error
