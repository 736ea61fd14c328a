"""Callers in DynamoDB, by the hash of their token."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from knowledge.adapters.dynamodb_calls import get_item
from knowledge.adapters.dynamodb_items import StoredItem, read_item, token_key
from knowledge.domain.access import Principal, Role

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class StoredPrincipal(StoredItem):
    """What the item of a hash says."""

    name: str
    role: Role
    expires_at: int | None = None
    """Seconds since 1970; the table's time to live goes by it too."""


class DynamoPrincipalStore:
    """PrincipalStore over the table; thread-safe as the client is."""

    def __init__(self, client: "DynamoDBClient", table_name: str, *, now_s: Callable[[], float] = time.time) -> None:
        """`now_s` gives the seconds since 1970; DynamoDB itself removes expired items only days later."""
        self._client = client
        self._table_name = table_name
        self._now_s = now_s

    def find(self, token_hash: str) -> Principal | None:
        """See PrincipalStore; one GetItem; a token whose `expires_at` has come is not found. Raises CorruptState."""
        item = get_item(self._client, self._table_name, token_key(token_hash))
        if item is None:
            return None
        stored = read_item(StoredPrincipal, item)
        is_expired = stored.expires_at is not None and stored.expires_at <= self._now_s()
        return None if is_expired else Principal(stored.name, stored.role)
