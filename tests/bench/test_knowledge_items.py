"""Lists of 10,000 knowledge items, on the local cloud."""

import statistics
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from knowledge.adapters.aws_clients import aws_client_config
from knowledge.adapters.dynamodb_item_store import DynamoItemStore
from knowledge.domain.item import ItemStatus, KnowledgeKind
from tests.bench.figures import Figures
from tests.bench.measuring import times_us
from tests.contract.item_builders import later, new_item
from tests.contract.item_seeds import seed

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.bench

COUNT, PAGE, ROUNDS = 10_000, 50, 30
CANDIDATE, PENDING, PUBLISHED, ARCHIVED = ItemStatus
# Of ten items.
STATUSES = [CANDIDATE] * 2 + [PENDING] + [PUBLISHED] * 6 + [ARCHIVED]
KINDS = list(KnowledgeKind)


@pytest.fixture
def filled() -> Iterator[tuple["DynamoDBClient", str]]:
    """A client of the local cloud and a table of this test with so many items."""
    client, table = boto3.client("dynamodb", config=aws_client_config()), f"bench-{uuid.uuid4().hex}"
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    )
    seed(
        client,
        table,
        (
            new_item(STATUSES[n % 10], kind=KINDS[n % 7], title=f"Lesson {n}", confidence=n % 100 / 100, at=later(n))
            for n in range(COUNT)
        ),
    )
    yield client, table
    client.delete_table(TableName=table)


def test_lists_of_many_items(filled: tuple["DynamoDBClient", str], figures: Figures) -> None:
    client, table = filled
    store, calls = DynamoItemStore(client, table), Counter[str]()
    client.meta.events.register("before-send.dynamodb.*", lambda event_name, **_: calls.update([event_name]))

    def measure(work: Callable[[int], Any]) -> tuple[float, float]:
        """Milliseconds, median, and calls for each time."""
        calls.clear()
        times = times_us(work, range(ROUNDS))
        return statistics.median(times) / 1000, calls.total() / ROUNDS

    def page(_: int) -> None:
        assert len(store.list([PUBLISHED], kind=None, cursor=None, limit=PAGE).items) == PAGE

    def inbox(_: int) -> None:
        assert len(store.list([CANDIDATE, PENDING], kind=None, cursor=None, limit=PAGE).items) == PAGE

    def due(_: int) -> None:
        assert len(store.due(until=later(COUNT * 2), limit=100)) == 100

    def by_hand(_: int) -> None:
        rows = client.query(
            TableName=table,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": "ITEMS#published"}},
            ConsistentRead=True,
            Limit=PAGE,
        )["Items"]
        ids = [row["sk"]["S"].rpartition("#")[2] for row in rows]
        keys: list[dict[str, Any]] = [{"pk": {"S": f"ITEM#{item_id}"}, "sk": {"S": "META"}} for item_id in ids]
        answer = client.batch_get_item(RequestItems={table: {"Keys": keys, "ConsistentRead": True}})
        assert len(answer["Responses"][table]) == PAGE

    page_ms, page_calls = measure(page)
    inbox_ms, inbox_calls = measure(inbox)
    due_ms, due_calls = measure(due)
    by_hand_ms, _ = measure(by_hand)
    figures.record(
        COUNT,
        items_page_ms=page_ms,
        items_page_calls=page_calls,
        items_inbox_ms=inbox_ms,
        items_inbox_calls=inbox_calls,
        items_due_ms=due_ms,
        items_due_calls=due_calls,
        items_page_by_hand_ms=by_hand_ms,
    )
