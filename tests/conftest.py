"""A real OpenSearch node, for every test that needs one."""

import os
from collections.abc import Iterator
from uuid import uuid4

import pytest

from knowledge.adapters.opensearch_client import opensearch_client
from tools.opensearch_node.node import running_url


@pytest.fixture(scope="session")
def opensearch_url() -> str:
    """A real node. Tests that need one are skipped where none runs."""
    url = os.environ.get("OPENSEARCH_URL") or running_url()
    if url is None:
        pytest.skip("no OpenSearch node runs: start one with make opensearch, or name one in OPENSEARCH_URL")
    return url


@pytest.fixture
def opensearch_alias(opensearch_url: str) -> Iterator[str]:
    """A name that nobody else uses; its indices are gone afterwards."""
    alias = f"test-{uuid4().hex}"
    yield alias
    client = opensearch_client(opensearch_url)
    client.indices.delete(index=f"{alias}-*")
    client.close()
