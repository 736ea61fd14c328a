"""Where the local cloud keeps vectors: in its bucket, or in a real OpenSearch node."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from knowledge import bootstrap
from tools.local_cloud import functions
from tools.local_cloud.places import ROOT, Problem
from tools.opensearch_node import service

STORES = ("embedded", "opensearch")

# Every copy of this repository has an index of its own, also in a node that they share.
_ALIAS = f"local-{hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]}"


@contextmanager
def chosen(store: str) -> Iterator[Mapping[str, str]]:
    """The template's parameters for that store.

    With OpenSearch the node is the one in OPENSEARCH_URL, else that of `make opensearch`, which is started for as long
    if it does not run. Raises Problem when it cannot be.
    """
    parameters = {"VectorStore": store, "OpenSearchAlias": _ALIAS}
    if store == "embedded":
        # Said all the same: a parameter that is not given keeps the value of the deployment before.
        yield {**parameters, "OpenSearchEndpoint": ""}
    elif url := os.environ.get("OPENSEARCH_URL"):
        yield {**parameters, "OpenSearchEndpoint": url}
    else:
        with service.lent() as url:
            print(f"OpenSearch answers on {url}")
            yield {**parameters, "OpenSearchEndpoint": url}


def restore() -> bool:
    """Every indexed document has its vectors in the deployed store: those of another store are not in this one.

    True when there were some to be brought.

    Raises:
        Problem: some are missing even after a reindex.
    """
    if not (missing := _without_vectors()):
        return False
    print(f"{len(missing)} documents have no vectors in this store; they are embedded again")
    subprocess.run([sys.executable, "-m", "tools.reindex"], cwd=ROOT, check=False)
    if missing := _without_vectors():
        raise Problem(
            f"{len(missing)} documents have no vectors in this store and cannot be found by meaning: {missing[0]} ...\n"
            "Use the store that has them (make run, or make run STORE=opensearch), or begin anew: make clean"
        )
    return True


def _without_vectors() -> list[str]:
    """Paths of documents that were indexed and of whose vectors the store has none."""
    settings = functions.configuration("indexer")["Environment"]["Variables"]
    registry, vectors = bootstrap.stores(settings)
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = registry.list(path_prefix="", status=None, cursor=cursor, limit=100)
        found += [
            record.file_path
            for record in page.records
            if record.generation and not vectors.embeddings(record.doc_id, record.generation)
        ]
        if (cursor := page.next_cursor) is None:
            return found
