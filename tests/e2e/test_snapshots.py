"""Compaction by the deployed function, and instances that start from what it wrote. Cases are named by their id."""

import json
import uuid
from typing import Any

import boto3
import pytest

from tests.e2e.conftest import Stack
from tools.local_cloud import functions

pytestmark = pytest.mark.e2e


def compacted(task: str = "compact") -> Any:
    """What the function answers for the task."""
    name = functions.configuration("maintenance")["FunctionName"]
    answer = boto3.client("lambda").invoke(FunctionName=name, Payload=json.dumps({"tasks": [task]}).encode())
    figures = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, figures
    return figures[task]


def restart_lookups() -> None:
    """Instances that run are not used any more."""
    client, name = boto3.client("lambda"), functions.configuration("lookup")["FunctionName"]
    client.update_function_configuration(FunctionName=name, Description=uuid.uuid4().hex)


def snapshots(stack: Stack) -> list[str]:
    listed = stack.s3.list_objects_v2(Bucket=stack.bucket, Prefix="_index/catalog/")
    return [item["Key"] for item in listed.get("Contents", [])]


def uploaded(stack: Stack) -> str:
    """The one keyword of a document that was just uploaded."""
    keyword = f"E2E-{uuid.uuid4().hex[:12].upper()}"
    stack.upload(f"{keyword}.md", f"---\ntitle: A title\nkeywords: [{keyword}]\n---\nText.\n".encode())
    return keyword


def test_new_instances_know_what_is_in_the_snapshot_and_what_came_after_it(stack: Stack) -> None:
    keywords = []
    for _ in range(3):
        keywords.append(uploaded(stack))
        figures = compacted()
        assert (figures["is_written"], figures["source"]) in [(True, "snapshot"), (True, "log")]
        assert compacted()["is_written"] is False
        assert compacted("compact_if_due")["is_written"] is False
    assert len(snapshots(stack)) == 2
    keywords.append(uploaded(stack))
    restart_lookups()
    for keyword in keywords:
        assert stack.lookup(keyword)["primary"]["source"].endswith(f"{keyword}.md")


def test_new_instances_know_everything_without_any_snapshot_and_the_next_run_repairs_it_I08(stack: Stack) -> None:
    keyword = uploaded(stack)
    compacted()
    for key in snapshots(stack):
        stack.s3.delete_object(Bucket=stack.bucket, Key=key)
    restart_lookups()
    answer = stack.lookup(keyword)
    assert answer["primary"]["source"].endswith(f"{keyword}.md")
    assert "degraded" not in answer
    assert compacted()["is_written"] is True
    assert len(snapshots(stack)) == 1
