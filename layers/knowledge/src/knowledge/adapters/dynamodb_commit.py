"""A change set's transaction: the head of the log, its next item, and what each document writes and stands on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from knowledge.adapters.aws_errors import aws_errors, error_code, may_have_taken_effect
from knowledge.adapters.dynamodb_calls import DYNAMODB, get_item
from knowledge.adapters.dynamodb_items import (
    MAX_ITEM_BYTES,
    MAX_TRANSACTION_BYTES,
    attributes,
    deleted_key,
    discarded_key,
    document_key,
    head_key,
    item_size_bytes,
    log_key,
)
from knowledge.adapters.dynamodb_shapes import changes_to_item, commit_id_from_item, document_to_item, head_from_item
from knowledge.errors import DependencyUnavailable, InvalidInput, TooLarge, VersionConflict
from knowledge.ports import DocumentChange

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import ConditionCheckTypeDef, TransactWriteItemTypeDef

_CONDITION_FAILED = "ConditionalCheckFailed"
# Codes that say that others were writing too, or too much. Source: DynamoDB API reference, TransactWriteItems,
# "CancellationReasons".
_CONTENTION = frozenset(
    {"None", _CONDITION_FAILED, "TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"}
)
# Source: the same list; the values themselves are refused.
_REFUSED = frozenset({"ValidationError", "ItemCollectionSizeLimitExceeded"})


class DocumentCommit:
    """Changes on their way into the table. Not thread-safe; lives for one commit."""

    def __init__(self, client: "DynamoDBClient", table_name: str, changes: Sequence[DocumentChange]) -> None:
        """Raises TooLarge when an item, or all of them, would be larger than DynamoDB takes."""
        self._client = client
        self._table_name = table_name
        self._changes = changes
        # Tells this writer, when no answer comes, whether the log item is its own.
        self._id = uuid4().hex
        self._writes = [(change.file_path, write) for change in changes for write in _writes_of(table_name, change)]
        items = [write["Put"]["Item"] for _, write in self._writes if "Put" in write]
        sizes = [item_size_bytes(item) for item in (changes_to_item(changes, 0, self._id), *items)]
        for size, limit in ((max(sizes), MAX_ITEM_BYTES), (sum(sizes), MAX_TRANSACTION_BYTES)):
            if size > limit:
                raise TooLarge(
                    f"the frontmatter takes {size} bytes in the registry; at most {limit} are possible",
                    size_bytes=size,
                    max_bytes=limit,
                    field="file",
                )

    def attempt(self) -> bool:
        """True when the changes are in; False when others got in between and it is worth another try.

        Raises:
            VersionConflict: stored records are not those the changes were made for; nothing was written.
            InvalidInput: DynamoDB refuses the values.
        """
        head = head_from_item(get_item(self._client, self._table_name, head_key()))
        try:
            with aws_errors(DYNAMODB):
                return self._write([*self._writes_of_log(head), *(write for _, write in self._writes)])
        except DependencyUnavailable as error:
            cause = error.__cause__
            if isinstance(cause, ClientError | BotoCoreError) and may_have_taken_effect(cause):
                # One item of the transaction is enough to tell: all of them are written, or none.
                stored = get_item(self._client, self._table_name, log_key(head + 1))
                if stored is not None and commit_id_from_item(stored) == self._id:
                    return True
            raise

    def _write(self, transaction: "Sequence[TransactWriteItemTypeDef]") -> bool:
        try:
            # The SDK adds a token of its own, so that its repetitions of this call count once.
            self._client.transact_write_items(TransactItems=transaction)
        except ClientError as error:
            match error_code(error):
                case "TransactionCanceledException":
                    return self._judge(
                        [reason.get("Code", "None") for reason in error.response.get("CancellationReasons", [])]
                    )
                case "ValidationException" | "SerializationException":
                    raise InvalidInput("the metadata cannot be stored") from error
                case _:
                    raise
        return True

    def _judge(self, codes: Sequence[str]) -> bool:
        # The first two items are the log's, in which all documents meet.
        of_documents = zip(codes[2:], self._writes, strict=False)
        if lost := dict.fromkeys(path for code, (path, _) in of_documents if code == _CONDITION_FAILED):
            raise VersionConflict(*lost)
        if _REFUSED.intersection(codes):
            raise InvalidInput("the metadata cannot be stored")
        if not codes or not _CONTENTION.issuperset(codes):
            raise DependencyUnavailable(DYNAMODB, "the transaction was cancelled")
        return False

    def _writes_of_log(self, head: int) -> "Sequence[TransactWriteItemTypeDef]":
        not_written = "attribute_not_exists(pk)"
        values = {":next": head + 1, ":head": head} if head else {":next": head + 1}
        return [
            {
                "Update": {
                    "TableName": self._table_name,
                    "Key": head_key(),
                    "UpdateExpression": "SET #version = :next",
                    "ConditionExpression": "#version = :head" if head else not_written,
                    "ExpressionAttributeNames": {"#version": "version"},
                    "ExpressionAttributeValues": attributes(values),
                }
            },
            {
                "Put": {
                    "TableName": self._table_name,
                    "Item": changes_to_item(self._changes, head + 1, self._id),
                    "ConditionExpression": not_written,
                }
            },
        ]


def _writes_of(table: str, change: DocumentChange) -> "Sequence[TransactWriteItemTypeDef]":
    """Three at most: the record, its deletion, the generation it no longer uses."""
    writes = [_write_of_record(table, change), *_writes_of_deletion(table, change)]
    if change.discarded is not None:
        writes.append({"Put": {"TableName": table, "Item": discarded_key(change.doc_id, change.discarded)}})
    return writes


def _write_of_record(table: str, change: DocumentChange) -> "TransactWriteItemTypeDef":
    before, after, key = change.before, change.after, document_key(change.doc_id)
    if before is None:
        absent = "attribute_not_exists(pk)"
        if after is None:
            return {"ConditionCheck": {"TableName": table, "Key": key, "ConditionExpression": absent}}
        return {"Put": {"TableName": table, "Item": document_to_item(after), "ConditionExpression": absent}}
    same, values = "revision = :revision", attributes({":revision": before.revision})
    if after is None:
        return {
            "Delete": {
                "TableName": table,
                "Key": key,
                "ConditionExpression": same,
                "ExpressionAttributeValues": values,
            }
        }
    return {
        "Put": {
            "TableName": table,
            "Item": document_to_item(after),
            "ConditionExpression": same,
            "ExpressionAttributeValues": values,
        }
    }


def _writes_of_deletion(table: str, change: DocumentChange) -> "Sequence[TransactWriteItemTypeDef]":
    """A deletion is noted; where there was no record, nobody has deleted another one since that was read."""
    before, key = change.before, deleted_key(change.doc_id)
    if before is not None:
        item = key | attributes({"revision": before.revision})
        return [] if change.after else [{"Put": {"TableName": table, "Item": item}}]
    check: ConditionCheckTypeDef = {
        "TableName": table,
        "Key": key,
        "ConditionExpression": "attribute_not_exists(pk)",
    }
    if change.deleted is not None:
        check["ConditionExpression"] = "revision = :deleted"
        check["ExpressionAttributeValues"] = attributes({":deleted": change.deleted})
    return [{"ConditionCheck": check}]
