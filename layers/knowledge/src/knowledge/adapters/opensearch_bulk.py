"""Many documents in few requests, each answer looked at item by item. Knows nothing of what the documents mean."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opensearchpy import OpenSearch
from opensearchpy.exceptions import SerializationError, TransportError

from knowledge.adapters.opensearch_calls import (
    MAX_TRIES,
    Backoff,
    IndexAbsentError,
    as_ours,
    error_type,
    is_retriable,
    is_retriable_status,
    may_have_taken_effect,
    readable,
    refusal,
)
from knowledge.adapters.opensearch_index import Document
from knowledge.errors import CorruptState

# Far under the smallest limit of a request, 10 MiB, and little enough to be taken in well under the read timeout.
# Source: OpenSearch Service quotas, "Network limits"; own choice of the value.
_MAX_BATCH_BYTES = 4 * 1024 * 1024


class AmbiguousBulkError(Exception):
    """It is unknown which of the items were stored, and storing them again would store them twice."""


@dataclass(frozen=True, slots=True)
class Item:
    """One line or two of a bulk request."""

    action: Document
    source: Document | None = None

    @property
    def lines(self) -> str:
        """As the request holds them."""
        parts = (self.action,) if self.source is None else (self.action, self.source)
        return "".join(json.dumps(part, ensure_ascii=False, separators=(",", ":")) + "\n" for part in parts)


def batches(items: Sequence[Item]) -> Iterator[list[Item]]:
    """The items in order, in groups that one request can hold."""
    group: list[Item] = []
    size = 0
    for item in items:
        item_size = len(item.lines.encode("utf-8", "surrogatepass"))
        if group and size + item_size > _MAX_BATCH_BYTES:
            yield group
            group, size = [], 0
        group.append(item)
        size += item_size
    if group:
        yield group


@dataclass(frozen=True, slots=True)
class Bulk:
    """Sends groups of items to one alias."""

    client: OpenSearch
    alias: str
    backoff: Backoff
    repeatable: bool
    """True when an item stored twice is stored once, because it has an id of its own."""
    params: Document

    def send(self, items: Sequence[Item], *, refresh: bool = False) -> None:
        """Every item has taken effect, and with `refresh` every search sees it. What was refused for now is sent again.

        Raises:
            AmbiguousBulkError: an answer was lost and the items are not repeatable.
            IndexAbsentError: the alias names no index.
            CorruptState: an item does not fit the index.
            DependencyUnavailable: otherwise.
        """
        pending = list(items)
        params = self.params | ({"refresh": "true"} if refresh else {})
        failures = 0
        while True:
            try:
                body = "".join(item.lines for item in pending)
                answer = self.client.bulk(index=self.alias, body=body, params=dict(params))
            except (TransportError, SerializationError) as error:
                failures += 1
                self._give_up_if_final(error, failures)
            else:
                pending, status = _left_over(pending, answer)
                if not pending:
                    return
                failures += 1
                if failures == MAX_TRIES:
                    raise refusal(status, "bulk item")
            self.backoff.wait(failures)

    def _give_up_if_final(self, error: TransportError | SerializationError, failures: int) -> None:
        if may_have_taken_effect(error) and not self.repeatable:
            raise AmbiguousBulkError from error
        if failures == MAX_TRIES or not is_retriable(error):
            raise as_ours(error) from error


def _left_over(sent: Sequence[Item], answer: Document) -> tuple[list[Item], int]:
    """The items that were refused for now, and the status of one of them."""
    waiting: list[Item] = []
    last = 0
    with readable():
        results = [next(iter(result.values())) for result in answer["items"]]
        pairs = [(item, result, int(result["status"])) for item, result in zip(sent, results, strict=True)]
    for item, result, status in pairs:
        if is_retriable_status(status):
            waiting.append(item)
            last = status
        elif status >= 300:
            _raise_unless_gone(item, status, error_type(result.get("error")))
    return waiting, last


def _raise_unless_gone(item: Item, status: int, kind: str) -> None:
    if status == 404:
        if "delete" in item.action:
            return  # somebody else deleted it
        raise IndexAbsentError
    if status == 400:
        place = f"chunk {item.source.get('ordinal')}" if item.source else "a chunk"
        raise CorruptState(
            f"{place} does not fit the index ({kind}): the index was made by another version or for another model. "
            "Make it again with: make reindex"
        )
    raise refusal(status, kind)
