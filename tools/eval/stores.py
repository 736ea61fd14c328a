"""The vector stores and embedders that can be evaluated, made when they are asked for."""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from knowledge.adapters.embedded_vectors import EmbeddedVectorStore
from knowledge.adapters.hashing_embedder import HashingEmbedder
from knowledge.errors import ConfigError
from knowledge.ports import Embedder, ObjectStore, VectorStore
from tools.local_cloud.places import Problem

STORES = ("embedded", "opensearch")
EMBEDDERS = ("local", "hashing")


def embedder(name: str) -> Embedder:
    """The embedder of EMBEDDERS with that name; the local one loads its model on first use."""
    if name == "hashing":
        return HashingEmbedder()
    from knowledge.adapters.local_embedder import LocalEmbedder

    return LocalEmbedder()


@contextmanager
def store(name: str, dimension: int) -> Iterator[Callable[[ObjectStore], VectorStore]]:
    """What makes an empty vector store of its own for one set; a real node keeps nothing of it afterwards.

    Raises:
        Problem: the node is not named or does not answer.
    """
    if name == "embedded":
        yield EmbeddedVectorStore
        return
    with _opensearch(dimension) as made:
        yield lambda _: made


@contextmanager
def _opensearch(dimension: int) -> Iterator[VectorStore]:
    """A store at OPENSEARCH_URL under an alias that nobody else uses; its indexes are gone at the end."""
    url = os.environ.get("OPENSEARCH_URL")
    if not url:
        raise Problem("OPENSEARCH_URL is not set: it should name the node, such as http://127.0.0.1:9200")
    from opensearchpy.exceptions import OpenSearchException

    from knowledge.adapters.opensearch_client import opensearch_client
    from knowledge.adapters.opensearch_vectors import OpenSearchVectorStore

    alias = f"evaluation-{uuid.uuid4().hex}"
    try:
        client = opensearch_client(url)
        client.info()
    except (OpenSearchException, ConfigError) as error:
        raise Problem(f"no OpenSearch answers at {url}: {error}") from error
    try:
        yield OpenSearchVectorStore(client, alias=alias, dimension=dimension)
    finally:
        client.indices.delete(index=f"{alias}-*", ignore_unavailable=True)
        client.close()
