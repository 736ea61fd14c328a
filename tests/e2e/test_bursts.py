"""Many files dropped at once, and ten indexers that take batches from the queue as Lambda does."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from knowledge.adapters.dynamodb_catalog_log import DynamoCatalogLog
from knowledge.ports import MAX_CHANGES
from tests.e2e.product import PREFIX, Product
from tests.services.world import markdown

pytestmark = pytest.mark.e2e

# BURST=5000 drops as many as a whole team that moves in.
FILES = int(os.environ.get("BURST", "200"))
# The MaximumConcurrency of the indexer in template.yaml.
INDEXERS = 10


def drained(product: Product, size: int) -> tuple[Counter[str], float]:
    """What ten indexers did, and in how many seconds, until the queue was empty."""
    sent, lock, done = list[str](), threading.Lock(), Counter[str]()
    product.before_send = lambda event_name, **_: sent.append(event_name.rpartition(".")[2])
    indexers = [product.indexer() for _ in range(INDEXERS)]

    def work(handle: Callable[[dict[str, Any]], list[str]]) -> None:
        def counted(event: dict[str, Any]) -> list[str]:
            failed = handle(event)
            with lock:
                done.update(messages=len(event["Records"]), failed=len(failed))
            return failed

        while product.waiting():
            if not product.deliver(counted, batch_size=size):
                time.sleep(0.1)

    started = time.perf_counter()
    with ThreadPoolExecutor(INDEXERS) as threads:
        list(threads.map(work, indexers))
    done["transactions"] = sent.count("TransactWriteItems")
    return done, time.perf_counter() - started


def test_a_burst_of_files_drains_without_a_storm_of_conflicts_C05(product: Product) -> None:
    """A batch is a transaction or, where preparing it takes seconds, a few; hardly any is lost, and no message."""
    keys = [f"{PREFIX}burst/{number:05}.md" for number in range(FILES)]
    for number, key in enumerate(keys):
        text = markdown(f"ERR_{number:05}", body=f"Number {number}.")
        product.s3.put_object(Bucket=product.bucket, Key=key, Body=text.encode())
    # As long as in template.yaml: a message in work must not be given to a second indexer.
    product.sqs.set_queue_attributes(QueueUrl=product.queue_url, Attributes={"VisibilityTimeout": "168"})
    done, elapsed_s = drained(product, MAX_CHANGES)
    changes = DynamoCatalogLog(product.dynamodb, product.table).changes_after(0)
    print(
        f"\n{FILES} files in {elapsed_s:.1f} s, {FILES / elapsed_s:.0f} a second: {len(changes)} commits, "
        f"{done['transactions']} transactions, {done['messages']} messages, {done['failed']} failed"
    )
    assert sorted(path for change in changes for path in change.entries) == keys
    assert [change.version for change in changes] == list(range(1, len(changes) + 1))
    assert done["failed"] == 0
    # On two busy processors ten indexers prepare some eight documents in the two seconds that a change may wait.
    assert len(changes) <= FILES / 3
    assert done["transactions"] <= 3 * len(changes)
