"""The catalog log in DynamoDB. Items are written by the registry, in the transaction of their documents."""

import logging
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from knowledge.adapters.aws_errors import aws_errors, error_code
from knowledge.adapters.dynamodb_calls import DYNAMODB, TableUser, get_item, query_all
from knowledge.adapters.dynamodb_items import (
    CATALOG_PK,
    LOG,
    LOG_END,
    Item,
    attributes,
    head_key,
    key_text,
    log_sk,
    sort_key,
)
from knowledge.adapters.dynamodb_shapes import (
    changes_from_item,
    head_from_item,
    snapshots_from_item,
    snapshots_to_attribute,
)
from knowledge.errors import Conflict, CorruptState, DependencyUnavailable
from knowledge.ports import CatalogChange, CatalogHead, SnapshotPointer

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import WriteRequestUnionTypeDef

_logger = logging.getLogger(__name__)

# Source: DynamoDB API reference, BatchWriteItem: at most 25 requests.
_MOST_DELETES = 25


class DynamoCatalogLog(TableUser):
    """CatalogLog over the table; thread-safe as the client is."""

    def head(self) -> CatalogHead:
        """See CatalogLog; one GetItem. Raises CorruptState for a version that cannot be read.

        Pointers that cannot be read are logged as an error and count as none: everything can be read without them.
        """
        item = get_item(self._client, self._table_name, head_key())
        try:
            snapshots = snapshots_from_item(item)
        except CorruptState as error:
            _logger.error("snapshot_pointers_unreadable", extra={"reason": str(error)})
            snapshots = ()
        return CatalogHead(head_from_item(item), snapshots)

    def changes_after(self, version: int) -> Sequence[CatalogChange]:
        """See CatalogLog; one Query for each megabyte."""
        return [_change(item) for item in self._items(log_sk(max(version, 0) + 1), LOG_END) if _is_numbered(item)]

    def publish(self, snapshots: Sequence[SnapshotPointer], *, instead_of: Sequence[SnapshotPointer]) -> None:
        """See CatalogLog; one UpdateItem for each try: commits are at the head all the time."""
        for _ in self._tries():
            if self._attempt(snapshots, instead_of):
                return
        raise DependencyUnavailable(DYNAMODB, "too many writers at the same time")

    def forget_before(self, version: int, *, limit: int) -> int:
        """See CatalogLog; one Query for each megabyte and one BatchWriteItem for each 25 entries."""
        # The first entry has number 1; BETWEEN wants its bounds in order. All keys are read before any is deleted.
        old = islice(self._items(log_sk(0), log_sk(max(version, 1) - 1)), max(limit, 0))
        keys: list[Item] = [{"pk": item["pk"], "sk": item["sk"]} for item in old]
        for start in range(0, len(keys), _MOST_DELETES):
            self._delete(keys[start : start + _MOST_DELETES])
        return len(keys)

    def _items(self, first: str, last: str) -> Iterator[Item]:
        condition = "pk = :pk AND sk BETWEEN :first AND :last"
        values = {":pk": CATALOG_PK, ":first": first, ":last": last}
        return query_all(self._client, self._table_name, condition, values)

    def _attempt(self, snapshots: Sequence[SnapshotPointer], instead_of: Sequence[SnapshotPointer]) -> bool:
        """True when the pointers are those of the head; False when a commit was there at the same moment."""
        names = {"#snapshots": "snapshots", "#version": "version"}
        same = "attribute_not_exists(#snapshots)"
        values = {":snapshots": snapshots_to_attribute(snapshots)}
        if instead_of:
            # Keys are unique, so that one says all of a pointer.
            same = "#snapshots[0].#key = :seen"
            names["#key"] = "key"
            values |= attributes({":seen": instead_of[0].key})
        try:
            with aws_errors(DYNAMODB):
                self._client.update_item(
                    TableName=self._table_name,
                    Key=head_key(),
                    UpdateExpression="SET #snapshots = :snapshots",
                    ConditionExpression=f"attribute_exists(#version) AND {same}",
                    ExpressionAttributeNames=names,
                    ExpressionAttributeValues=values,
                )
        except DependencyUnavailable as error:
            match error_code(error.__cause__) if isinstance(error.__cause__, ClientError) else "":
                case "ConditionalCheckFailedException":
                    # An earlier try may have had its effect without its answer arriving.
                    if self.head().snapshots[:1] == tuple(snapshots[:1]):
                        return True
                    raise Conflict("another snapshot was published meanwhile") from error
                case "TransactionConflictException":
                    return False
                case _:
                    raise
        return True

    def _delete(self, keys: Sequence[Item]) -> None:
        requests: Sequence[WriteRequestUnionTypeDef] = [{"DeleteRequest": {"Key": key}} for key in keys]
        for _ in self._tries():
            with aws_errors(DYNAMODB):
                answer = self._client.batch_write_item(RequestItems={self._table_name: requests})
            requests = answer.get("UnprocessedItems", {}).get(self._table_name, [])
            if not requests:
                return
        raise DependencyUnavailable(DYNAMODB, "removed only a part")


def _is_numbered(item: Item) -> bool:
    """False for what is no entry of the log, although its key is among theirs."""
    is_numbered = _number(item).isdecimal()
    if not is_numbered:
        _logger.error("catalog_entry_without_number", extra={"key": key_text(item)})
    return is_numbered


def _change(item: Item) -> CatalogChange:
    """What the item says; for one that cannot be read, a change that says why."""
    try:
        return changes_from_item(item)
    except CorruptState as error:
        return CatalogChange(int(_number(item)), {}, problem=str(error))


def _number(item: Item) -> str:
    return sort_key(item).removeprefix(LOG)
