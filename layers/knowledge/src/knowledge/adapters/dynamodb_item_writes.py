"""The transactions that change a knowledge item: the item, its event, its rows and the feed. Makes no call."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from knowledge.adapters.dynamodb_item_rows import feed_item, item_key, rows_of
from knowledge.adapters.dynamodb_item_shapes import item_to_table, version_attributes
from knowledge.adapters.dynamodb_items import Item as TableItem
from knowledge.adapters.dynamodb_items import attributes
from knowledge.domain.item import Item
from knowledge.domain.timeline import Event

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

# What tells one state of an item from another, for a writer that makes the next one; reuse is not in it.
_STATE = ("version", "settled_version", "embedding")
# What settling writes.
_SETTLED = ("settled_version", "embedding")


def new_item(table: str, item: Item) -> "TransactWriteItemTypeDef":
    """The item is put, unless there is one."""
    return {"Put": {"TableName": table, "Item": item_to_table(item), "ConditionExpression": "attribute_not_exists(pk)"}}


def next_version(table: str, before: Item, after: Item) -> "TransactWriteItemTypeDef":
    """`after` replaces `before` where that is what is stored; reuse that was counted since is kept."""
    new = version_attributes(after)
    return _update(table, before, new, gone=version_attributes(before).keys() - new.keys())


def settling(table: str, before: Item, after: Item) -> "TransactWriteItemTypeDef":
    """What settling writes is that of `after`, where the rest is what is stored of `before`."""
    new = {name: value for name, value in version_attributes(after).items() if name in _SETTLED}
    return _update(table, before, new, gone=set(_SETTLED) - new.keys())


def one_more_reuse(table: str, item: Item) -> "TransactWriteItemTypeDef":
    """One is added, where this version of the item is stored."""
    return {
        "Update": {
            "TableName": table,
            "Key": item_key(item.item_id),
            "UpdateExpression": "ADD reuse_count :one",
            "ConditionExpression": "#version = :version",
            "ExpressionAttributeNames": {"#version": "version"},
            "ExpressionAttributeValues": attributes({":one": 1, ":version": item.version}),
        }
    }


def rows_moved(table: str, before: Item | None, after: Item) -> "Sequence[TransactWriteItemTypeDef]":
    """The rows of `before` are those of `after`: six deletions and six new ones at most."""
    old, new = rows_of(before) if before else frozenset(), rows_of(after)
    gone: list[TransactWriteItemTypeDef] = [
        {"Delete": {"TableName": table, "Key": attributes(row._asdict())}} for row in sorted(old - new)
    ]
    come: list[TransactWriteItemTypeDef] = [
        {"Put": {"TableName": table, "Item": attributes(row._asdict())}} for row in sorted(new - old)
    ]
    return gone + come


def told(table: str, event: Event, stored: TableItem) -> "Sequence[TransactWriteItemTypeDef]":
    """The event, as it is to be stored, is in the timeline and in the feed."""
    return [{"Put": {"TableName": table, "Item": item}} for item in (stored, feed_item(event))]


def _update(table: str, before: Item, new: TableItem, *, gone: set[str]) -> "TransactWriteItemTypeDef":
    old = version_attributes(before)
    conditions = [f"#{name} = :old_{name}" if name in old else f"attribute_not_exists(#{name})" for name in _STATE]
    removed = f" REMOVE {', '.join(f'#{name}' for name in sorted(gone))}" if gone else ""
    return {
        "Update": {
            "TableName": table,
            "Key": item_key(before.item_id),
            "UpdateExpression": f"SET {', '.join(f'#{name} = :{name}' for name in new)}{removed}",
            "ConditionExpression": " AND ".join(conditions),
            "ExpressionAttributeNames": {f"#{name}": name for name in {*new, *gone, *_STATE}},
            "ExpressionAttributeValues": {
                **{f":{name}": value for name, value in new.items()},
                **{f":old_{name}": old[name] for name in _STATE if name in old},
            },
        }
    }
