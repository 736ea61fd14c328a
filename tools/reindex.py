"""Embeds every document of a base again, after its embedder was changed. `make reindex` does it for the local cloud.

For a deployed stack: `python -m tools.reindex`, with AWS credentials that may do what the indexer may.
"""

import argparse
import os
import sys
from collections import Counter

import boto3
from rich.progress import track

from knowledge import bootstrap
from knowledge.domain.document import DocumentStatus
from tools.local_cloud import functions, places


def main() -> int:
    """Runs from the command line; returns the exit code."""
    argparse.ArgumentParser(prog="python -m tools.reindex", description=__doc__).parse_args()
    settings = functions.configuration("indexer")["Environment"]["Variables"]
    os.environ.update(settings)
    total = boto3.client("dynamodb").query(
        TableName=settings["TABLE_NAME"],
        IndexName="listing",
        KeyConditionExpression="listing_pk = :all",
        ExpressionAttributeValues={":all": {"S": "DOCUMENTS"}},
        Select="COUNT",
    )["Count"]
    counts = Counter(record.status for record in track(bootstrap.reindex().run(), description="embedding", total=total))
    print(", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "there are no documents")
    if counts[DocumentStatus.PENDING]:
        print("Some are not finished; run it again.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except places.Problem as problem:
        sys.exit(str(problem))
