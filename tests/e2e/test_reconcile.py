"""What no event told is found by the deployed function, and shown by `make doctor`. Cases are named by their id."""

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.e2e.conftest import Stack, eventually
from tools.local_cloud import functions

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[2]


def with_keyword(keyword: str) -> bytes:
    return f"---\ntitle: A title\nkeywords: [{keyword}]\n---\nSome text about {keyword}.\n".encode()


def exact(stack: Stack, keyword: str) -> str | None:
    """The path of the document that declares the keyword."""
    primary = stack.lookup(keyword)["primary"]
    return primary["source"] if primary else None


@contextmanager
def without_events(stack: Stack) -> Iterator[None]:
    """The bucket tells nobody what happens to it."""
    client = stack.s3
    before = client.get_bucket_notification_configuration(Bucket=stack.bucket)
    kept: Any = {"QueueConfigurations": before["QueueConfigurations"]}
    client.put_bucket_notification_configuration(Bucket=stack.bucket, NotificationConfiguration={})
    try:
        yield
    finally:
        client.put_bucket_notification_configuration(Bucket=stack.bucket, NotificationConfiguration=kept)


def reconciled() -> Any:
    """The function's report of a whole pass."""
    name = functions.configuration("maintenance")["FunctionName"]
    answer = boto3.client("lambda").invoke(FunctionName=name, Payload=json.dumps({"tasks": ["reconcile"]}).encode())
    report = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, report
    assert report["reconcile"]["finished_at"] is not None
    return report["reconcile"]


def doctor(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.doctor", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_an_undeleted_file_a_missed_one_and_a_missed_delete_are_found_B10(stack: Stack) -> None:
    undeleted, missed, gone = (f"E2E-{uuid.uuid4().hex[:12].upper()}" for _ in range(3))
    keys = {keyword: f"knowledge_base/reconcile/{keyword} 文档.md" for keyword in (undeleted, missed, gone)}
    for keyword in (undeleted, gone):
        stack.drop(keys[keyword], with_keyword(keyword))
        eventually(lambda keyword=keyword: exact(stack, keyword))  # type: ignore[misc]
    marker = stack.s3.delete_object(Bucket=stack.bucket, Key=keys[undeleted])["VersionId"]
    eventually(lambda: exact(stack, undeleted) is None)
    eventually(lambda: stack.document_at(keys[undeleted]) is None)
    reconciled()
    with without_events(stack):
        stack.s3.delete_object(Bucket=stack.bucket, Key=keys[undeleted], VersionId=marker)
        stack.drop(keys[missed], with_keyword(missed))
        stack.s3.delete_object(Bucket=stack.bucket, Key=keys[gone])
    look = doctor()
    assert look.returncode == 1, look.stdout + look.stderr
    assert all(key in look.stdout for key in keys.values())
    assert exact(stack, missed) is None
    report = reconciled()
    assert report["differences"] == {"not_indexed": 2, "gone": 1}
    assert report["repaired"] == 3
    assert {exact(stack, keyword) for keyword in keys} == {keys[undeleted], keys[missed], None}
    assert reconciled()["differences"] == {}
    look = doctor()
    assert look.returncode == 0, look.stdout + look.stderr


def test_doctor_repairs_on_demand(stack: Stack) -> None:
    keyword = f"E2E-{uuid.uuid4().hex[:12].upper()}"
    key = f"knowledge_base/reconcile/{keyword}.md"
    with without_events(stack):
        stack.drop(key, with_keyword(keyword))
    repaired = doctor("--fix")
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    assert key in repaired.stdout
    assert exact(stack, keyword) == key
