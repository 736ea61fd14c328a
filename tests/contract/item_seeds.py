"""Thousands of knowledge items in a table, as the store would have written them one by one."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from knowledge.adapters.dynamodb_item_rows import feed_item, rows_of
from knowledge.adapters.dynamodb_item_shapes import event_to_table, item_to_table
from knowledge.adapters.dynamodb_items import Item as TableItem
from knowledge.adapters.dynamodb_items import attributes
from knowledge.domain.item import Item
from knowledge.domain.timeline import created

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# Source: DynamoDB API reference, BatchWriteItem.
_MAX_WRITES = 25


def seed(client: "DynamoDBClient", table: str, items: Iterable[Item]) -> None:
    """Each of `items` is in the table, with what `create` writes beside it; the table held none of them."""
    stored_items = (stored for item in items for stored in _all_of(item))
    while batch := list(islice(stored_items, _MAX_WRITES)):
        answer = client.batch_write_item(RequestItems={table: [{"PutRequest": {"Item": stored}} for stored in batch]})
        assert not answer["UnprocessedItems"]


def _all_of(item: Item) -> Iterator[TableItem]:
    event = created(item)
    yield from (item_to_table(item), event_to_table(event), feed_item(event))
    yield from (attributes(row._asdict()) for row in rows_of(item))
