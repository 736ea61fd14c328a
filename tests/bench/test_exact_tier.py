"""The exact tier: matching against the plain scan, memory, and the cold scan of the bucket."""

import gc
import statistics
import sys
import time
import tracemalloc
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest

from knowledge.adapters.aws_clients import s3_client_config
from knowledge.adapters.memory import MemoryDocumentRegistry
from knowledge.adapters.s3 import S3ObjectStore
from knowledge.domain.document import KnowledgeBasePath, KnowledgeEntry
from knowledge.domain.text import normalise
from knowledge.retrieval.catalog_index import CatalogIndex
from knowledge.services.catalog import KnowledgeIndex
from tests.bench.documents import entries, markdown_of, queries

pytestmark = pytest.mark.bench


@pytest.fixture
def s3_bucket() -> Iterator[tuple[Any, str]]:
    """An S3 client of the local cloud and a bucket for this test."""
    client, bucket = boto3.client("s3", config=s3_client_config()), f"bench-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=bucket)
    yield client, bucket
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": item["Key"]} for item in page["Contents"]]})
    client.delete_bucket(Bucket=bucket)


def percentiles_us(work: Callable[[str], object], texts: list[str]) -> tuple[float, float]:
    """Median and 99th percentile in microseconds."""
    times = []
    for text in texts:
        started = time.perf_counter()
        work(text)
        times.append((time.perf_counter() - started) * 1e6)
    times.sort()
    return statistics.median(times), times[int(len(times) * 0.99)]


def plain_scan(documents: list[KnowledgeEntry]) -> Callable[[str], list[str]]:
    """The baseline: `keyword in query` for every keyword of every document, on normalised text."""
    normalised = [(entry.file_path, [normalise(keyword) for keyword in entry.keywords]) for entry in documents]

    def scan(query: str) -> list[str]:
        text = normalise(query)
        return [path for path, keywords in normalised if any(keyword in text for keyword in keywords)]

    return scan


@pytest.mark.parametrize("count", [1_000, 10_000, 100_000])
def test_matching_against_the_plain_scan(count: int) -> None:
    documents = entries(count)
    started = time.perf_counter()
    index = CatalogIndex(documents)
    built_s = time.perf_counter() - started
    median, worst = percentiles_us(index.match, queries(2_000, count))
    scan_median, _ = percentiles_us(plain_scan(documents), queries(30, count))
    print(
        f"\n{count:>7} documents: built in {built_s:.2f} s, match median {median:.1f} us, p99 {worst:.1f} us; "
        f"plain scan median {scan_median:.0f} us, ratio {scan_median / median:.0f}"
    )
    assert scan_median / median > 10


def test_memory_of_a_thousand_documents() -> None:
    documents = entries(1_000)
    gc.collect()
    tracemalloc.start()
    index = CatalogIndex([KnowledgeEntry(e.file_path, e.title, e.keywords, e.summary) for e in documents])
    traced = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    # The automaton lives outside Python's allocator; its serialised form is as large as what it holds.
    automata = (layer.index.automaton for layer in index._layers.all)
    automaton = sum(len(automaton.serialize()) for automaton in automata if automaton)
    texts = [text for e in documents for text in (e.file_path, e.title, *e.keywords, e.summary or "")]
    strings = sum(sys.getsizeof(text) for text in texts)
    total = traced + automaton + strings
    figures = {"index": traced, "automaton": automaton, "text": strings, "all": total}
    print("\n1,000 documents in MB:", {name: round(size / 1e6, 2) for name, size in figures.items()})
    assert total < 10e6


def test_cold_scan_of_a_thousand_documents(s3_bucket: tuple[Any, str]) -> None:
    client, bucket = s3_bucket
    for entry in entries(1_000):
        client.put_object(Bucket=bucket, Key=entry.file_path, Body=markdown_of(entry))
    requests: Counter[str] = Counter()
    client.meta.events.register(
        "before-send.s3.*", lambda event_name, **_: requests.update([event_name.split(".")[-1]])
    )
    index = KnowledgeIndex(
        S3ObjectStore(client, bucket),
        MemoryDocumentRegistry(),
        KnowledgeBasePath.parse("knowledge_base"),
        max_document_bytes=1_000_000,
    )
    started = time.perf_counter()
    index.load()
    elapsed_s = time.perf_counter() - started
    print(f"\ncold scan of {len(index.entries)} documents: {elapsed_s:.2f} s, S3 requests {dict(requests)}")
    assert len(index.entries) == 1_000
    assert requests == {"ListObjectsV2": 1, "GetObject": 1_000}
    assert elapsed_s < 5
