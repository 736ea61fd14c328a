"""Many files dropped at once: ten indexers, real threads, one log."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest

from knowledge.adapters.dynamodb_catalog_log import DynamoCatalogLog
from knowledge.adapters.dynamodb_registry import DynamoDocumentRegistry
from knowledge.services.converge import Converger, Outcome
from tests.services.world import World, markdown

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# The indexer's MaximumConcurrency in template.yaml.
_INDEXERS = 10
# As many as moto, which copies all items for each transaction, takes in seconds.
_BATCH = 8


def test_ten_indexers_that_commit_at_once_write_a_log_item_for_each_batch_and_lose_none_C05(
    dynamodb_client: "DynamoDBClient", table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, calls, barrier = World(), Counter[str](), Barrier(_INDEXERS)
    call = dynamodb_client._make_api_call  # type: ignore[attr-defined]

    def counted(operation: str, parameters: dict[str, Any]) -> Any:
        calls[operation] += 1
        if operation == "TransactWriteItems" and calls[operation] <= _INDEXERS:
            barrier.wait()
        return call(operation, parameters)

    monkeypatch.setattr(dynamodb_client, "_make_api_call", counted)
    keys = [f"knowledge_base/{number:03}.md" for number in range(_INDEXERS * _BATCH)]
    for key in keys:
        world.drop(key, markdown(f"ERR_{key[15:18]}"))

    def index(number: int) -> list[Outcome | Exception]:
        registry = DynamoDocumentRegistry(dynamodb_client, table)
        # Time stands still: a batch is committed when it is whole, however slow this machine is.
        converger = Converger(world.objects, registry, world.preparation, world.base, clock=lambda: 0.0)
        return list(converger.converge_all(keys[number * _BATCH : (number + 1) * _BATCH]).values())

    with ThreadPoolExecutor(_INDEXERS) as threads:
        left = [outcome for outcomes in threads.map(index, range(_INDEXERS)) for outcome in outcomes]
    changes = DynamoCatalogLog(dynamodb_client, table).changes_after(0)
    assert [outcome for outcome in left if isinstance(outcome, Exception)] == []
    assert sorted(path for change in changes for path in change.entries) == keys
    assert [change.version for change in changes] == list(range(1, _INDEXERS + 1))
    # Whoever loses the head each time loses it to one that wins: 10 + 9 + ... + 1 tries at most.
    assert _INDEXERS < calls["TransactWriteItems"] <= 55
