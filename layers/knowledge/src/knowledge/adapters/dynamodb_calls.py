"""What every user of the table shares: whole consistent reads, and waiting before another try."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from knowledge.adapters.aws_errors import aws_errors
from knowledge.adapters.backoff import random_fraction
from knowledge.adapters.dynamodb_items import Item, attributes
from knowledge.errors import DependencyUnavailable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import KeysAndAttributesTypeDef

DYNAMODB = "DynamoDB"

# Full jitter: a random part of a bound that doubles. Source: Amazon Builders' Library, "Timeouts, retries and backoff
# with jitter". The bounds are our choice: a transaction takes about 10 ms, and a caller has waited 4 s on average
# when the last try fails.
_MAX_TRIES = 30
_FIRST_DELAY_S = 0.01
_LONGEST_DELAY_S = 0.32


class TableUser:
    """What every store over the table has; thread-safe as the client is."""

    def __init__(
        self,
        client: "DynamoDBClient",
        table_name: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        random: Callable[[], float] = random_fraction,
    ) -> None:
        """`client` is best made with `aws_client_config`; `sleep` and `random` (0..1) space tries."""
        self._client = client
        self._table_name = table_name
        self._sleep = sleep
        self._random = random

    def _tries(self) -> Iterator[None]:
        """Thirty tries, of which all but the first wait. Who is done leaves the loop."""
        yield
        bound_s = _FIRST_DELAY_S
        for _ in range(_MAX_TRIES - 1):
            self._sleep(self._random() * bound_s)
            yield
            bound_s = min(_LONGEST_DELAY_S, 2 * bound_s)


def get_item(client: "DynamoDBClient", table_name: str, key: Item) -> Item | None:
    """The item, strongly consistent, or None: one call."""
    with aws_errors(DYNAMODB):
        return client.get_item(TableName=table_name, Key=key, ConsistentRead=True).get("Item")


def batch_get(
    client: "DynamoDBClient", table_name: str, keys: Sequence[Item], tries: Iterator[None], *, names: Sequence[str] = ()
) -> Iterator[Item]:
    """Those of the items that there are, at most 100, strongly consistent, in any order; of each only its `names`.

    One call, none for no keys, and more when DynamoDB answers only a part.
    """
    wanted: KeysAndAttributesTypeDef = {"Keys": keys, "ConsistentRead": True}
    if names:
        # Every name by a placeholder: many are words of DynamoDB's own.
        wanted["ProjectionExpression"] = ", ".join(f"#{name}" for name in names)
        wanted["ExpressionAttributeNames"] = {f"#{name}": name for name in names}
    if not keys:
        return
    for _ in tries:
        with aws_errors(DYNAMODB):
            answer = client.batch_get_item(RequestItems={table_name: wanted})
        yield from answer["Responses"].get(table_name, [])
        unprocessed = answer.get("UnprocessedKeys", {}).get(table_name)
        if not unprocessed:
            return
        wanted["Keys"] = unprocessed["Keys"]
    raise DependencyUnavailable(DYNAMODB, "answered only a part")


def query_all(
    client: "DynamoDBClient", table_name: str, condition: str, values: Mapping[str, object]
) -> Iterator[Item]:
    """Every item of the table for the key condition, strongly consistent, in key order; a call for each megabyte."""
    pages = iter(
        client.get_paginator("query").paginate(
            TableName=table_name,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=attributes(values),
            ConsistentRead=True,
        )
    )
    while True:
        with aws_errors(DYNAMODB):
            page = next(pages, None)
        if page is None:
            return
        yield from page["Items"]
