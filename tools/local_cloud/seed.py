"""Drops the seed documents into the bucket, as any S3 client would, and waits until the indexer has followed."""

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from tools.local_cloud.places import SEED, Problem

_PATIENCE_S = 90  # without a single document becoming ready
_POLL_S = 0.3


@dataclass(frozen=True, slots=True)
class _Indexed:
    status: str
    etag: str
    reason: str


def ingest(bucket: str, table: str, prefix: str) -> tuple[int, int]:
    """Every seed document is INDEXED; returns how many there are and how many had to be dropped.

    Raises:
        Problem: a document failed, or nothing moved for a while.
    """
    documents = {prefix + path.relative_to(SEED).as_posix(): path for path in sorted(SEED.rglob("*.md"))}
    wanted = {key: hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest() for key, path in documents.items()}
    before = _listing(table)
    dropped = [key for key, etag in wanted.items() if not _ready(before.get(key), etag)]
    client = boto3.client("s3")
    for key in dropped:
        client.put_object(Bucket=bucket, Key=key, Body=documents[key].read_bytes(), ContentType="text/markdown")
    _wait({key: wanted[key] for key in dropped}, table)
    return len(documents), len(dropped)


def golden_queries() -> Path:
    """The file with the queries that the seed is known to answer."""
    return SEED / "golden_queries.yaml"


def _wait(wanted: dict[str, str], table: str) -> None:
    if not wanted:
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns) as progress:
        task = progress.add_task("indexing the seed documents", total=len(wanted))
        done, last_move = 0, time.monotonic()
        while done < len(wanted):
            time.sleep(_POLL_S)
            listing = _listing(table)
            _refuse_failed(listing, wanted)
            ready = sum(_ready(listing.get(key), etag) for key, etag in wanted.items())
            if ready > done:
                done, last_move = ready, time.monotonic()
                progress.update(task, completed=done)
            elif time.monotonic() - last_move > _PATIENCE_S:
                late = [_state(key, listing) for key, etag in wanted.items() if not _ready(listing.get(key), etag)]
                raise Problem(
                    f"Nothing more was indexed for {_PATIENCE_S} s, and these documents are missing:\n"
                    + "\n".join(late)
                    + "\n(what the indexer says: .local/cloud/ministack.log)"
                )


def _refuse_failed(listing: dict[str, _Indexed], wanted: dict[str, str]) -> None:
    failed = [
        _state(key, listing)
        for key, etag in wanted.items()
        if key in listing and listing[key].etag == etag and listing[key].status == "FAILED"
    ]
    if failed:
        raise Problem("Seed documents that cannot be indexed:\n" + "\n".join(failed))


def _state(key: str, listing: dict[str, _Indexed]) -> str:
    indexed = listing.get(key)
    return f"{key}: {f'{indexed.status} {indexed.reason}' if indexed else 'not seen'}"


def _ready(indexed: _Indexed | None, etag: str) -> bool:
    return indexed is not None and indexed.status == "INDEXED" and indexed.etag == etag


def listing_pages(table: str, **options: Any) -> Iterator[Mapping[str, Any]]:
    """The pages of a query for every document's record, with these options beside."""
    paginator = boto3.client("dynamodb").get_paginator("query")
    yield from paginator.paginate(
        TableName=table,
        IndexName="listing",
        KeyConditionExpression="listing_pk = :all",
        ExpressionAttributeValues={":all": {"S": "DOCUMENTS"}},
        **options,
    )


def document_count(table: str) -> int:
    """How many documents there are: a call for each megabyte of records."""
    return sum(page["Count"] for page in listing_pages(table, Select="COUNT"))


def _listing(table: str) -> dict[str, _Indexed]:
    return {
        item["file_path"]["S"]: _Indexed(
            status=item["status"]["S"], etag=item["etag"]["S"].strip('"'), reason=item.get("reason", {}).get("S", "")
        )
        for page in listing_pages(table)
        for item in page["Items"]
    }
