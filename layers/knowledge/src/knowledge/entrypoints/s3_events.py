"""The bucket's events as they come through the queue. An event is a hint to look at a key, never a fact."""

import functools
import json
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from knowledge.domain.document import DocumentStatus
from knowledge.errors import DependencyUnavailable, InvalidInput, KnowledgeError
from knowledge.ports import EventQueue
from knowledge.services.converge import Converger, Outcome
from knowledge.services.item_documents import ItemDocuments

_logger = logging.getLogger(__name__)

# What an invocation needs besides embedding, after the last look at the clock: one batch of texts, three seconds of
# looks at other documents, the writes, the answer. Measured: a batch of four full chunks takes 1.5 s on one vCPU.
_RESERVED_S = 8.0
_TEST_EVENT = "s3:TestEvent"


class _Object(BaseModel):
    key: str = Field(min_length=1)


class _Entity(BaseModel):
    object: _Object


class _Record(BaseModel):
    s3: _Entity


class _Notification(BaseModel):
    """Source: Amazon S3 user guide, "Event message structure"; only what is used."""

    model_config = ConfigDict(populate_by_name=True)

    records: list[_Record] = Field(alias="Records")


@dataclass(frozen=True, slots=True)
class IndexerServices:
    """What the indexer needs; `max_receive_count` is the queue's."""

    converger: Converger
    items: ItemDocuments
    queue: EventQueue
    max_receive_count: int


def build_handler(build: Callable[[], IndexerServices]) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """The indexer's handler: every message on its own; those that failed are named, so that only they come back.

    What the messages name is converged together. The files of knowledge items are put right before, and one that could
    not be is not looked at: it may hold what nobody has published. Those that failed before go first: what got no turn
    is put into the queue as new, so that only failures count towards the dead letter queue, and those soon end there or
    are done.
    """
    services = functools.cache(build)

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        deadline = time.monotonic() + context.get_remaining_time_in_millis() / 1000 - _RESERVED_S
        processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
        records = sorted(map(SQSRecord, event["Records"]), key=_receive_count, reverse=True)
        paths = _paths_in_all(records)
        wrong = services().items.put_right(paths, deadline=deadline)
        looked_at = (path for path in paths if path not in wrong)
        left = {**wrong, **services().converger.converge_all(looked_at, deadline=deadline)}
        put_again: set[str] = set()

        def handle(record: SQSRecord) -> None:
            try:
                paths = paths_in(record.body)
            except InvalidInput as error:
                _logger.error("message_unusable", extra={"reason": str(error), "length": len(record.body)})
                raise
            is_last = _receive_count(record) >= services().max_receive_count
            late = {path for path in paths if _is_late(services().converger, path, left[path], is_last=is_last)}
            if not late <= put_again:
                services().queue.put_again(record.body)
                put_again.update(late)

        answer = process_partial_response(event=event, record_handler=handle, processor=processor, context=context)
        failed = len(answer["batchItemFailures"])
        _logger.info("batch_handled", extra={"message_count": len(event["Records"]), "failed_count": failed})
        return dict(answer)

    return handler


def _receive_count(record: SQSRecord) -> int:
    return int(record.attributes.approximate_receive_count or 1)


def _paths_in_all(records: Sequence[SQSRecord]) -> list[str]:
    paths: list[str] = []
    for record in records:
        with suppress(InvalidInput):
            paths.extend(paths_in(record.body))
    return paths


def paths_in(body: str) -> list[str]:
    """The keys that a message names, decoded once, in order; none for the bucket's test event.

    Raises:
        InvalidInput: the message is no S3 notification.
    """
    try:
        message = json.loads(body)
        if isinstance(message, dict) and message.get("Event") == _TEST_EVENT:
            return []
        notification = _Notification.model_validate(message)
    except (ValueError, RecursionError, ValidationError) as error:
        raise InvalidInput("the message is not an S3 notification") from error
    return [unquote_plus(record.s3.object.key) for record in notification.records]


def _is_late(converger: Converger, path: str, outcome: Outcome | Exception, *, is_last: bool) -> bool:
    """True when the document is not finished and only time was missing: then it goes on at once.

    Raises what `path` failed with, or DependencyUnavailable when it is not finished for another reason, or when vectors
    are left that nobody uses: the queue waits before the next try.
    """
    if isinstance(outcome, Exception):
        unknown = None if isinstance(outcome, KnowledgeError) else outcome
        _logger.warning("document_not_converged", extra={"path": path, "reason": str(outcome)}, exc_info=unknown)
        raise outcome
    if outcome.out_of_time:
        return True
    record = outcome.record
    if record is None or record.status is not DocumentStatus.PENDING:
        if not outcome.is_tidy:
            raise DependencyUnavailable("vector store", f"old vectors of {path} are not removed yet")
        return False
    if is_last:
        converger.give_up(path)
    raise DependencyUnavailable("embedder", f"{path} is not finished: {record.reason}")
