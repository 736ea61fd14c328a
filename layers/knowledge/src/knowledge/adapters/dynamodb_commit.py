"""One document's transaction: its record, its catalog log entry, the head of the log, and what it makes useless."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from knowledge.adapters.aws_errors import aws_errors, error_code, may_have_taken_effect
from knowledge.adapters.dynamodb_calls import DYNAMODB, get_item
from knowledge.adapters.dynamodb_items import (
    MAX_ITEM_BYTES,
    attributes,
    deleted_key,
    discarded_key,
    document_key,
    head_key,
    item_size_bytes,
)
from knowledge.adapters.dynamodb_shapes import change_to_item, document_from_item, document_to_item, head_from_item
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
    """A change on its way into the table. Not thread-safe; lives for one commit."""

    def __init__(self, client: "DynamoDBClient", table_name: str, change: DocumentChange) -> None:
        """Raises TooLarge when an item would be larger than DynamoDB takes."""
        self._client = client
        self._table_name = table_name
        self._change = change
        self._document_write = self._write_of_document()
        for item in (change_to_item(change, 0), self._document_write.get("Put", {}).get("Item", {})):
            if (size := item_size_bytes(item)) > MAX_ITEM_BYTES:
                raise TooLarge(
                    f"the frontmatter takes {size} bytes in the registry; at most {MAX_ITEM_BYTES} are possible",
                    size_bytes=size,
                    max_bytes=MAX_ITEM_BYTES,
                    field="file",
                )

    def attempt(self) -> bool:
        """True when the change is in; False when others got in between and it is worth another try.

        Raises:
            VersionConflict: the stored record is not the one this change was made for; nothing was written.
            InvalidInput: DynamoDB refuses the values.
        """
        head = head_from_item(get_item(self._client, self._table_name, head_key()))
        try:
            with aws_errors(DYNAMODB):
                return self._write(self._transaction(head))
        except DependencyUnavailable as error:
            cause = error.__cause__
            if isinstance(cause, ClientError | BotoCoreError) and may_have_taken_effect(cause) and self._is_stored():
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
        # The second and third item are the head and its entry, in which all documents meet; the others are this one's.
        if _CONDITION_FAILED in (*codes[:1], *codes[3:]):
            raise VersionConflict(f"{self._change.file_path!r} was changed by somebody else")
        if _REFUSED.intersection(codes):
            raise InvalidInput("the metadata cannot be stored")
        if not codes or not _CONTENTION.issuperset(codes):
            raise DependencyUnavailable(DYNAMODB, "the transaction was cancelled")
        return False

    def _is_stored(self) -> bool:
        """True when an earlier, unanswered try has done what this change wants: one more GetItem."""
        item = get_item(self._client, self._table_name, document_key(self._change.doc_id))
        after = self._change.after
        if item is None or after is None:
            return item is None and after is None and self._change.before is not None
        return document_from_item(item).revision == after.revision

    def _write_of_document(self) -> "TransactWriteItemTypeDef":
        before, after = self._change.before, self._change.after
        table, key = self._table_name, document_key(self._change.doc_id)
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

    def _writes_of_deletion(self) -> "Sequence[TransactWriteItemTypeDef]":
        """A deletion is noted; where there was no record, nobody has deleted another one since that was read."""
        before, key = self._change.before, deleted_key(self._change.doc_id)
        if before is not None:
            item = key | attributes({"revision": before.revision})
            return [] if self._change.after else [{"Put": {"TableName": self._table_name, "Item": item}}]
        check: ConditionCheckTypeDef = {
            "TableName": self._table_name,
            "Key": key,
            "ConditionExpression": "attribute_not_exists(pk)",
        }
        if self._change.deleted is not None:
            check["ConditionExpression"] = "revision = :deleted"
            check["ExpressionAttributeValues"] = attributes({":deleted": self._change.deleted})
        return [{"ConditionCheck": check}]

    def _transaction(self, head: int) -> "Sequence[TransactWriteItemTypeDef]":
        not_written = "attribute_not_exists(pk)"
        values = {":next": head + 1, ":head": head} if head else {":next": head + 1}
        writes: list[TransactWriteItemTypeDef] = [
            self._document_write,
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
                    "Item": change_to_item(self._change, head + 1),
                    "ConditionExpression": not_written,
                }
            },
            *self._writes_of_deletion(),
        ]
        if self._change.discarded is not None:
            item = discarded_key(self._change.doc_id, self._change.discarded)
            writes.append({"Put": {"TableName": self._table_name, "Item": item}})
        return writes
