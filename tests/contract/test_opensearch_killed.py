"""A node that is killed while documents come in: nothing is lost once it is back."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from knowledge.adapters.opensearch_client import opensearch_client
from knowledge.adapters.opensearch_vectors import OpenSearchVectorStore
from knowledge.domain.document import DocumentStatus, doc_id_for
from knowledge.domain.lookup import Tier
from knowledge.entrypoints.s3_events import IndexerServices, build_handler
from tests.entrypoints.events import Context
from tests.entrypoints.test_s3_events import dropped
from tests.services.world import World, markdown
from tools.local_cloud.places import LOCAL
from tools.opensearch_node import assembly, node

READY_WITHIN_S = 90
# Somewhere that the node's own user can reach, unlike pytest's folders.
FOLDER = LOCAL / "opensearch-to-kill"


class Node:
    """A node of this test's own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = node.launch(self.port, self._folder)
        deadline = time.monotonic() + READY_WITHIN_S
        while not node.answers(self.port):
            assert self._process.poll() is None, (self._folder / "node.log").read_text(errors="replace")[-2000:]
            assert time.monotonic() < deadline, "the node did not answer in time"
            time.sleep(0.2)

    def kill(self) -> None:
        """At once, as when its machine fails."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def free_port() -> int:
    """One whose neighbour, the node's second port, is free as well."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            if port < 65_000 and second.connect_ex(("127.0.0.1", port + 100)) != 0:
                return port


@pytest.fixture
def own_node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    if not assembly.is_assembled():
        pytest.skip("no node can be started and killed here: make opensearch has put none together")
    monkeypatch.setenv("OPENSEARCH_HEAP", "512m")
    shutil.rmtree(FOLDER, ignore_errors=True)
    made = Node(FOLDER)
    yield made
    made.kill()
    shutil.rmtree(FOLDER, ignore_errors=True)


def test_a_node_killed_amid_documents_loses_none_of_them_N5(own_node: Node) -> None:
    own_node.start()
    client = opensearch_client(f"http://127.0.0.1:{own_node.port}")
    world = World(vectors=lambda _: OpenSearchVectorStore(client, alias="kb", dimension=256))
    paths = [f"knowledge_base/d/{number:02}.md" for number in range(12)]
    for number, path in enumerate(paths):
        world.drop(path, markdown(f"KEY-{number:02}", body=f"Chapter {number} of the pumpkin ledger number {number}."))
    events = {str(number): dropped(path, str(number)) for number, path in enumerate(paths)}
    handler = build_handler(
        lambda: IndexerServices(world.converger, world.item_documents, world.queue, max_receive_count=8)
    )

    def deliver(ids: list[str]) -> list[str]:
        """The ids of the messages that the queue keeps."""
        answer = handler({"Records": [events[one] for one in ids]}, Context())
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    def statuses() -> list[DocumentStatus]:
        records = [world.registry.read(doc_id_for(path)).record for path in paths]
        return [record.status for record in records if record]

    def is_found(number: int) -> bool:
        hits = world.semantic.search(f"chapter {number} of the pumpkin ledger number {number}", top_k=10)
        return paths[number] in {hit.chunk.file_path for hit in hits}

    assert deliver(list(events)[:5]) == []
    world.vectors.before["write"] = own_node.kill
    kept = deliver(list(events)[5:])
    assert kept == list(events)[5:]
    assert statuses() == [DocumentStatus.INDEXED] * 5 + [DocumentStatus.PENDING] * 7
    record = world.registry.read(doc_id_for(paths[5])).record
    assert record.reason == "OpenSearch: could not be reached"
    answer = world.ask("what is KEY-07")
    assert (answer.primary and answer.primary.source, answer.degraded) == (paths[7], ())
    assert world.ask("chapter seven").degraded == (Tier.SEMANTIC,)

    assert deliver(kept) == kept
    own_node.start()
    assert deliver(kept) == []
    assert statuses() == [DocumentStatus.INDEXED] * 12
    assert all(map(is_found, range(12)))
    assert world.ask("chapter seven").degraded == ()
    assert len(world.chunks("pumpkin ledger")) == 12
    client.close()
