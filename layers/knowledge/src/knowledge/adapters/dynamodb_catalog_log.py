"""The catalog log in DynamoDB: reading. Items are written by the registry, in the transaction of their documents."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from knowledge.adapters.dynamodb_calls import get_item, query_all
from knowledge.adapters.dynamodb_items import CATALOG_PK, LOG_END, head_key, log_sk
from knowledge.adapters.dynamodb_shapes import changes_from_item, head_from_item
from knowledge.ports import CatalogChange

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoCatalogLog:
    """CatalogLog over the table; thread-safe as the client is."""

    def __init__(self, client: "DynamoDBClient", table_name: str) -> None:
        """`client` is best made with `aws_client_config`."""
        self._client = client
        self._table_name = table_name

    def head(self) -> int:
        """See CatalogLog; one GetItem. Raises CorruptState."""
        return head_from_item(get_item(self._client, self._table_name, head_key()))

    def changes_after(self, version: int) -> Sequence[CatalogChange]:
        """See CatalogLog; one Query for each megabyte. Raises CorruptState, naming the item."""
        items = query_all(
            self._client,
            self._table_name,
            "pk = :pk AND sk BETWEEN :first AND :end",
            {":pk": CATALOG_PK, ":first": log_sk(max(version, 0) + 1), ":end": LOG_END},
        )
        return [changes_from_item(item) for item in items]
