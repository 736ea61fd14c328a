"""What the reading function does before its first answer, in a fresh process and without any answer of a store."""

from pathlib import Path

import pytest

from knowledge.adapters.memory_objects import MemoryObjectStore
from knowledge.domain.document import KnowledgeBasePath
from knowledge.services.catalog_snapshots import CatalogSnapshots, CatalogState
from tests.bench.figures import SIZES, Figures
from tests.bench.fresh import cost_of
from tests.bench.measuring import documents_of, index_of

pytestmark = pytest.mark.bench

ENVIRONMENT = {
    "BUCKET_NAME": "bucket",
    "TABLE_NAME": "table",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "LOG_LEVEL": "CRITICAL",
}
# The catalog is left out, which needs the stores; `ready_s` measures it.
HANDLER = """
sys.path.insert(0, sys.argv[1])
import handler
imported_s = time.perf_counter() - started
from knowledge import bootstrap
from knowledge.services.catalog import KnowledgeIndex
KnowledgeIndex.start_loading = lambda self: None
services = bootstrap.read_services()
told = imported_s
"""
CLIENTS = """
import boto3
clients = [boto3.client("s3"), boto3.client("dynamodb")]
"""
# The services over a bucket and a log that answer at once: the snapshot, its check, and the log after it.
READY = """
from types import SimpleNamespace
from datetime import UTC, datetime
from knowledge.domain.document import KnowledgeBasePath
from knowledge.ports import CatalogHead, ObjectInfo, SnapshotPointer, StoredObject
from knowledge.services.catalog import KnowledgeIndex
path, sha256, size, asked = sys.argv[1:]
when = datetime.now(UTC)
head = CatalogHead(1, (SnapshotPointer(1, "snapshot", sha256, int(size), when),))
def read(key, *, max_bytes):
    return StoredObject(ObjectInfo(key, "etag", int(size)), open(path, "rb").read())
index = KnowledgeIndex(
    SimpleNamespace(read=read),
    SimpleNamespace(head=lambda: head, changes_after=lambda version: []),
    KnowledgeBasePath("knowledge_base/"),
    max_document_bytes=1,
)
index.load()
told = len(index.match(asked))
"""


def test_the_lookup_handler_against_its_clients_alone(figures: Figures) -> None:
    folder = Path(__file__).parents[2] / "functions" / "lookup"
    handler = cost_of(HANDLER, str(folder), environment=ENVIRONMENT)
    clients = cost_of(CLIENTS, environment=ENVIRONMENT)
    figures.record(
        "lookup",
        cold_import_ms=handler.told * 1000,
        cold_services_ms=(handler.elapsed_s - handler.told) * 1000,
        cold_resident_mb=handler.resident_mb,
        cold_clients_ms=clients.elapsed_s * 1000,
        cold_clients_mb=clients.resident_mb,
        cold_to_clients=handler.elapsed_s / clients.elapsed_s,
    )


@pytest.mark.parametrize("count", SIZES)
def test_ready_to_answer_from_a_snapshot(count: int, figures: Figures, tmp_path: Path) -> None:
    objects = MemoryObjectStore()
    pointer = CatalogSnapshots(objects, KnowledgeBasePath("knowledge_base/")).write(CatalogState(1, index_of(count)))
    stored = objects.read(pointer.key, max_bytes=pointer.size_bytes)
    assert stored is not None
    (tmp_path / "snapshot").write_bytes(stored.body)
    asked = documents_of(count)[7].keywords[0]
    arguments = (str(tmp_path / "snapshot"), pointer.sha256, str(pointer.size_bytes), asked)
    ready = cost_of(READY, *arguments)
    clients = cost_of(CLIENTS, environment=ENVIRONMENT)
    both = cost_of(CLIENTS + READY, *arguments, environment=ENVIRONMENT)
    assert ready.told == both.told == 1
    figures.record(
        count,
        ready_s=ready.elapsed_s,
        ready_resident_mb=ready.resident_mb,
        ready_beside_clients_mb=both.resident_mb - clients.resident_mb,
    )
