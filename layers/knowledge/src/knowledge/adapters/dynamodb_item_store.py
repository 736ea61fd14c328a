"""Knowledge items in DynamoDB. Knows the table; keys are in `dynamodb_item_rows`, shapes in `dynamodb_item_shapes`."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from knowledge.adapters import dynamodb_item_rows as rows
from knowledge.adapters import dynamodb_item_writes as writes
from knowledge.adapters import page_cursor
from knowledge.adapters.aws_errors import aws_errors
from knowledge.adapters.dynamodb_calls import DYNAMODB, TableUser, batch_get, get_item, query_all
from knowledge.adapters.dynamodb_item_shapes import event_from_table, event_to_table, item_from_table
from knowledge.adapters.dynamodb_items import Item as TableItem
from knowledge.adapters.dynamodb_items import attributes, sort_key
from knowledge.adapters.dynamodb_transactions import too_many_writers, transact
from knowledge.domain.item import Item, ItemId, ItemStatus, KnowledgeKind
from knowledge.domain.timeline import Event, EventType, placed
from knowledge.errors import NotFound, VersionConflict
from knowledge.ports import ItemPage, TimelinePage

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import QueryInputTypeDef, TransactWriteItemTypeDef

# Source: DynamoDB API reference, BatchGetItem.
_MAX_KEYS = 100


class DynamoItemStore(TableUser):
    """ItemStore over the table; thread-safe as the client is. Every method that reads items raises CorruptState."""

    def create(self, item: Item, event: Event) -> None:
        """See ItemStore; one transaction."""
        if not self._transact(writes.new_item(self._table_name, item), None, item, event):
            raise VersionConflict(item.item_id)

    def read(self, item_id: ItemId) -> Item | None:
        """See ItemStore; one GetItem."""
        stored = get_item(self._client, self._table_name, rows.item_key(item_id))
        return None if stored is None else item_from_table(stored)

    def read_all(self, item_ids: Collection[ItemId]) -> Mapping[ItemId, Item]:
        """See ItemStore; a BatchGetItem for each hundred, more when DynamoDB answers only a part."""
        keys = [rows.item_key(item_id) for item_id in dict.fromkeys(item_ids)]
        found = (
            item_from_table(stored)
            for start in range(0, len(keys), _MAX_KEYS)
            for stored in batch_get(self._client, self._table_name, keys[start : start + _MAX_KEYS], self._tries())
        )
        return {item.item_id: item for item in found}

    def write(self, before: Item, after: Item, event: Event) -> None:
        """See ItemStore; one transaction, and a GetItem and another one when the item was settled meanwhile."""
        stored: Item | None = before
        for _ in self._tries():
            if stored is None or stored.version != before.version:
                raise VersionConflict(before.item_id)
            update = writes.next_version(self._table_name, stored, after)
            if self._transact(update, stored, after, event):
                return
            stored = self.read(before.item_id)
        raise too_many_writers()

    def settle(self, before: Item, after: Item, event: Event | None) -> bool:
        """See ItemStore; one transaction."""
        update = writes.settling(self._table_name, before, after)
        return self._transact(update, before, after, event and placed(event, before))

    def record_reuse(self, item_id: ItemId, *, actor: str, at: datetime) -> Item:
        """See ItemStore; a GetItem and a transaction, again when there is a new version meanwhile."""
        for _ in self._tries():
            item = self.read(item_id)
            if item is None or not item.is_published:
                break
            event = placed(Event(item_id, EventType.REUSED, actor, at, item.version), item)
            if self._transact(writes.one_more_reuse(self._table_name, item), item, item, event):
                return replace(item, reuse_count=item.reuse_count + 1)
        else:
            raise too_many_writers()
        raise NotFound("no published item has this id")

    def list(
        self, statuses: Collection[ItemStatus], *, kind: KnowledgeKind | None, cursor: str | None, limit: int
    ) -> ItemPage:
        """See ItemStore; a Query of rows and a BatchGetItem of their items."""
        partition = rows.list_pk(statuses, kind)
        found, next_cursor = self._page(partition, "", cursor, limit, is_place=rows.is_rank)
        # What has left the list since the rows were read is not shown.
        listed = (item for item in self._items_of(found) if partition in {row.pk for row in rows.listing_rows(item)})
        return ItemPage(tuple(listed), next_cursor)

    def timeline(self, item_id: ItemId, *, cursor: str | None, limit: int) -> TimelinePage:
        """See ItemStore; one Query, which ends at one megabyte. Raises CorruptState."""
        found, next_cursor = self._page(rows.item_pk(item_id), rows.EVENT, cursor, limit, is_place=rows.is_event_sk)
        return TimelinePage(tuple(map(event_from_table, found)), next_cursor)

    def due(self, *, until: datetime, limit: int) -> Sequence[Item]:
        """See ItemStore; a Query of rows and a BatchGetItem of their items."""
        with aws_errors(DYNAMODB):
            answer = self._client.query(
                TableName=self._table_name,
                KeyConditionExpression="pk = :pk AND sk <= :until",
                ExpressionAttributeValues=attributes(
                    {":pk": rows.DUE_PK, ":until": f"{rows.time_text(until)}{rows.END}"}
                ),
                ConsistentRead=True,
                Limit=limit,
            )
        items = self._items_of(answer["Items"])
        return [item for item in items if item.due_at is not None and item.due_at <= until]

    def count_without_embedding(self) -> int:
        """See ItemStore; a Query for each megabyte."""
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table_name,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues=attributes({":pk": rows.WITHOUT_EMBEDDING_PK}),
            ConsistentRead=True,
            Select="COUNT",
        )
        with aws_errors(DYNAMODB):
            return sum(page["Count"] for page in pages)

    def changed_since(self, at: datetime) -> Iterator[tuple[datetime, ItemId]]:
        """See ItemStore; a Query for each megabyte. DynamoDB may keep rows some days longer than they are promised."""
        values = {":pk": rows.FEED_PK, ":at": rows.time_text(at)}
        for row in query_all(self._client, self._table_name, "pk = :pk AND sk >= :at", values):
            yield rows.feed_time(row), rows.item_id_of(row)

    def _page(
        self, partition: str, prefix: str, cursor: str | None, limit: int, *, is_place: Callable[[str], bool]
    ) -> tuple[Sequence[TableItem], str | None]:
        """At most `limit` items of the partition whose sort keys begin with `prefix`, and where to go on."""
        values = {":pk": partition, ":prefix": prefix} if prefix else {":pk": partition}
        query: QueryInputTypeDef = {
            "TableName": self._table_name,
            "KeyConditionExpression": "pk = :pk" + (" AND begins_with(sk, :prefix)" if prefix else ""),
            "ExpressionAttributeValues": attributes(values),
            "ConsistentRead": True,
            # One more than is returned tells whether another page follows.
            "Limit": limit + 1,
        }
        if cursor is not None:
            place = page_cursor.decode(cursor)
            if not is_place(place):
                raise page_cursor.not_a_cursor()
            query["ExclusiveStartKey"] = attributes({"pk": partition, "sk": place})
        with aws_errors(DYNAMODB):
            answer = self._client.query(**query)
        found = answer["Items"][:limit]
        more = len(answer["Items"]) > limit or "LastEvaluatedKey" in answer
        return found, page_cursor.encode(sort_key(found[-1])) if more and found else None

    def _items_of(self, found: Sequence[TableItem]) -> Iterator[Item]:
        """The items that the rows are of, in the order of the rows."""
        item_ids = [rows.item_id_of(row) for row in found]
        items = self.read_all(item_ids)
        return (items[item_id] for item_id in item_ids if item_id in items)

    def _transact(
        self, item_write: "TransactWriteItemTypeDef", before: Item | None, after: Item, event: Event | None
    ) -> bool:
        """True when all is written, with the rows of `after` instead of `before`'s; False when the condition fails."""
        stored = None if event is None else event_to_table(event)
        return transact(
            self._client,
            self._table_name,
            [
                item_write,
                *writes.rows_moved(self._table_name, before, after),
                *(writes.told(self._table_name, event, stored) if event and stored else ()),
            ],
            mark=stored,
            tries=self._tries(),
        )
