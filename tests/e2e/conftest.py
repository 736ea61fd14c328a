"""The deployed stack on the local cloud: its URL, its bucket, a token, and things to clean up."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import httpx
import pytest

from tests.e2e.product import Product, new_product

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

LOCAL = Path(__file__).parents[2] / ".local"


@dataclass
class Stack:
    """What the tests need of the stack."""

    api: httpx.Client
    s3: "S3Client"
    bucket: str
    dropped: set[str] = field(default_factory=set)
    uploaded: set[str] = field(default_factory=set)

    def lookup(self, query: str, **options: Any) -> Any:
        """The answer of POST /lookup."""
        answer = self.api.post("/lookup", json={"query": query, **options})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def upload(self, name: str, content: bytes, category: str = "e2e") -> Any:
        """The answer of a form upload."""
        answer = self.api.post(
            "/documents", data={"category": category}, files={"file": (name, content, "text/markdown")}
        )
        assert answer.status_code in (200, 201), answer.text
        self.uploaded.add(answer.json()["doc_id"])
        return answer.json()

    def drop(self, key: str, content: bytes) -> None:
        """Put a file into the bucket, as any S3 client does."""
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=content)
        self.dropped.add(key)

    def document_at(self, key: str) -> Any:
        """The document with this path, or None."""
        category = key.split("/")[1] if key.count("/") > 1 else None
        cursor: str | None = None
        while True:
            query = {"category": category, "cursor": cursor, "limit": "100"}
            page = self.api.get("/documents", params={name: value for name, value in query.items() if value}).json()
            for document in page["documents"]:
                if document["file_path"] == key:
                    return document
            cursor = page["next_cursor"]
            if cursor is None:
                return None


def eventually(look: Callable[[], Any], timeout_s: float = 60.0) -> Any:
    """The first truthy value that `look` gives; events take a moment."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if value := look():
            return value
        time.sleep(0.25)
    raise AssertionError(f"nothing within {timeout_s} s")


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    outputs = json.loads((LOCAL / "outputs.json").read_text())
    token = (LOCAL / "token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=outputs["ApiUrl"], headers=headers, timeout=60.0) as api:
        stack = Stack(api, boto3.client("s3"), outputs["BucketName"])
        yield stack
        for doc_id in stack.uploaded:
            api.delete(f"/documents/{doc_id}")
        for key in stack.dropped:
            stack.s3.delete_object(Bucket=stack.bucket, Key=key)


@pytest.fixture
def product() -> Product:
    return new_product()
