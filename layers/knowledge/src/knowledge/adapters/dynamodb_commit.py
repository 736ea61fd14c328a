"""A change set's transaction: the head of the log, its next item, and what each document writes and stands on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from knowledge.adapters.dynamodb_calls import get_item
from knowledge.adapters.dynamodb_items import (
    MAX_ITEM_BYTES,
    MAX_TRANSACTION_BYTES,
    Item,
    attributes,
    deleted_key,
    discarded_key,
    document_key,
    head_key,
    item_size_bytes,
)
from knowledge.adapters.dynamodb_shapes import changes_to_item, document_to_item, head_from_item
from knowledge.adapters.dynamodb_transactions import (
    CONDITION_FAILED,
    require_contention,
    was_written,
    write_together,
)
from knowledge.errors import DependencyUnavailable, TooLarge, VersionConflict
from knowledge.ports import DocumentChange

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import ConditionCheckTypeDef, TransactWriteItemTypeDef, UpdateTypeDef


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
        log_item = changes_to_item(self._changes, head + 1, self._id)
        writes = [*self._writes_of_log(head, log_item), *(write for _, write in self._writes)]
        try:
            codes = write_together(self._client, writes)
        except DependencyUnavailable as error:
            if was_written(self._client, self._table_name, log_item, error):
                return True
            raise
        if codes is None:
            return True
        # The first two items are the log's, in which all documents meet.
        of_documents = zip(codes[2:], self._writes, strict=False)
        if lost := dict.fromkeys(path for code, (path, _) in of_documents if code == CONDITION_FAILED):
            raise VersionConflict(*lost)
        require_contention(codes)
        return False

    def _writes_of_log(self, head: int, log_item: Item) -> "Sequence[TransactWriteItemTypeDef]":
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
                    "Item": log_item,
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
    """A deletion is noted, that of nothing too; where there was no record, nobody has noted one since that was read."""
    before, key = change.before, deleted_key(change.doc_id)
    if before is not None:
        item = key | attributes({"revision": before.revision})
        return [] if change.after else [{"Put": {"TableName": table, "Item": item}}]
    condition = "attribute_not_exists(pk)" if change.deleted is None else "revision = :deleted"
    values = {} if change.deleted is None else {":deleted": change.deleted}
    if change.after is None:
        update: UpdateTypeDef = {
            "TableName": table,
            "Key": key,
            "UpdateExpression": "SET revision = :new",
            "ConditionExpression": condition,
            "ExpressionAttributeValues": attributes({**values, ":new": uuid4().hex}),
        }
        return [{"Update": update}]
    check: ConditionCheckTypeDef = {"TableName": table, "Key": key, "ConditionExpression": condition}
    if values:
        check["ExpressionAttributeValues"] = attributes(values)
    return [{"ConditionCheck": check}]
