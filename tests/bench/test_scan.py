"""The catalog from the bucket without a snapshot, on the local cloud."""

import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest

from knowledge.adapters.aws_clients import s3_client_config
from knowledge.adapters.memory import MemoryDocumentRegistry
from knowledge.adapters.s3 import S3ObjectStore
from knowledge.domain.document import KnowledgeBasePath
from knowledge.services.catalog import KnowledgeIndex
from tests.bench.documents import entries, markdown_of
from tests.bench.figures import Figures

pytestmark = pytest.mark.bench

COUNT = 1_000


@pytest.fixture
def s3_bucket() -> Iterator[tuple[Any, str]]:
    """An S3 client of the local cloud and a bucket for this test."""
    client, bucket = boto3.client("s3", config=s3_client_config()), f"bench-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=bucket)
    yield client, bucket
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": item["Key"]} for item in page["Contents"]]})
    client.delete_bucket(Bucket=bucket)


def test_a_scan_against_reading_one_after_the_other(s3_bucket: tuple[Any, str], figures: Figures) -> None:
    client, bucket = s3_bucket
    documents = entries(COUNT)
    with ThreadPoolExecutor(8) as writers:
        list(
            writers.map(
                lambda entry: client.put_object(Bucket=bucket, Key=entry.file_path, Body=markdown_of(entry)), documents
            )
        )
    requests: Counter[str] = Counter()
    client.meta.events.register(
        "before-send.s3.*", lambda event_name, **_: requests.update([event_name.split(".")[-1]])
    )
    objects = S3ObjectStore(client, bucket)
    index = KnowledgeIndex(
        objects,
        MemoryDocumentRegistry(),
        KnowledgeBasePath.parse("knowledge_base"),
        max_document_bytes=1_000_000,
    )
    started = time.perf_counter()
    index.load()
    scan_s = time.perf_counter() - started
    assert len(index.entries) == COUNT
    assert requests == {"ListObjectsV2": 1, "GetObject": COUNT}

    started = time.perf_counter()
    for entry in documents:
        objects.read(entry.file_path, max_bytes=16 * 1024)
    one_by_one_s = time.perf_counter() - started
    figures.record(COUNT, scan_s=scan_s, scan_one_by_one_s=one_by_one_s, scan_one_by_one_to_scan=one_by_one_s / scan_s)
