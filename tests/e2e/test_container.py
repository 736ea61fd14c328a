"""Every function once in Lambda's own container, by `make sam-local`, against the running local cloud."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.container
ROOT = Path(__file__).parents[2]


def run(function: str) -> Any:
    """What the function answered to its event on file: the last line that sam prints."""
    command = ["make", "--no-print-directory", "sam-local", f"FUNCTION={function}"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300).stdout
    return json.loads(output.strip().splitlines()[-1])


def test_lookup_answers() -> None:
    answer = run("lookup")
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"])["found"] is True


def test_upload_stores_and_indexes_and_delete_removes_it_again() -> None:
    """The event on file for delete names the document of the one for upload."""
    uploaded = run("upload")
    assert uploaded["statusCode"] in (200, 201)
    assert json.loads(uploaded["body"])["status"] == "INDEXED"
    deleted = run("delete")
    assert deleted["statusCode"] == 200
    assert json.loads(deleted["body"])["doc_id"] == json.loads(uploaded["body"])["doc_id"]


def test_items_are_searched() -> None:
    answer = run("knowledge")
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"])["fallback"] is None


def test_the_indexer_takes_an_event_of_the_bucket() -> None:
    assert run("indexer") == {"batchItemFailures": []}


def test_the_authorizer_refuses_a_token_it_does_not_know() -> None:
    assert run("authorizer")["errorMessage"] == "Unauthorized"


def test_maintenance_calibrates_in_time() -> None:
    assert run("maintenance")["calibrate"]["off_topic"] > 0
