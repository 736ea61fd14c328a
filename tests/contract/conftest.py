"""Every port's adapters, each with an empty store. AWS is moto in this process; the table is that of template.yaml."""

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import boto3
import pytest
from botocore.credentials import Credentials
from moto import mock_aws
from moto.dynamodb.models.dynamo_type import Item as TableItem
from moto.dynamodb.models.dynamo_type import LimitedSizeDict
from moto.dynamodb.models.table import Table
from opensearchpy import OpenSearch
from samtranslator.yaml_helper import yaml_parse

from knowledge.adapters.aws_clients import aws_client_config, s3_client_config
from knowledge.adapters.dynamodb_catalog_log import DynamoCatalogLog
from knowledge.adapters.dynamodb_config_store import DynamoConfigStore
from knowledge.adapters.dynamodb_item_store import DynamoItemStore
from knowledge.adapters.dynamodb_principals import DynamoPrincipalStore
from knowledge.adapters.dynamodb_registry import DynamoDocumentRegistry
from knowledge.adapters.dynamodb_tokens import DynamoTokenStore
from knowledge.adapters.embedded_vectors import EmbeddedVectorStore
from knowledge.adapters.memory import MemoryDocumentRegistry, MemoryVectorStore
from knowledge.adapters.memory_items import MemoryConfigStore, MemoryItemStore
from knowledge.adapters.memory_objects import MemoryObjectStore
from knowledge.adapters.memory_tokens import MemoryTokenStore
from knowledge.adapters.opensearch_client import opensearch_client
from knowledge.adapters.opensearch_vectors import OpenSearchVectorStore
from knowledge.adapters.s3 import S3ObjectStore
from knowledge.domain.item import Item
from knowledge.errors import InvalidInput
from knowledge.ports import ConfigStore, ItemStore, ObjectStore, RebuildableVectorStore, VectorStore
from tests.contract.builders import Clock, Registry, TokensAndCallers
from tests.contract.item_builders import add
from tests.contract.item_seeds import seed
from tests.contract.serverless_standin import Settled, Standin

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

ROOT = Path(__file__).resolve().parents[2]
NewIndex = Callable[[str, int], RebuildableVectorStore]

REGION: Final = "eu-central-1"


def _copied(table: Table, _: object) -> Table:
    """What moto needs of a table to undo a transaction: it replaces attributes and never changes one."""
    copied = copy.copy(table)
    copied.items = defaultdict(dict)
    for hash_key, items in table.items.items():
        copied.items[hash_key] = {range_key: _copied_item(item) for range_key, item in items.items()}
    return copied


def _copied_item(item: TableItem) -> Any:
    copied: Any = TableItem.__new__(TableItem)
    copied.hash_key, copied.range_key, copied.attrs = item.hash_key, item.range_key, LimitedSizeDict()
    dict.update(copied.attrs, item.attrs)
    return copied


@pytest.fixture(scope="module")
def aws() -> Iterator[None]:
    # moto copies the whole table, attribute by attribute, for each write of a transaction; that would take minutes.
    with mock_aws(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "__deepcopy__", _copied, raising=False)
        yield


@pytest.fixture(scope="module")
def s3_client(aws: None) -> "S3Client":
    return boto3.client("s3", region_name=REGION, config=s3_client_config())


@pytest.fixture(scope="module")
def dynamodb_client(aws: None) -> "DynamoDBClient":
    client = boto3.client("dynamodb", region_name=REGION, config=aws_client_config())
    # A call is atomic in DynamoDB and is not in moto: one at a time, so that only what lies between calls can race.
    lock, call = Lock(), client._make_api_call  # type: ignore[attr-defined]

    def one_at_a_time(operation: str, parameters: dict[str, Any]) -> Any:
        with lock:
            return call(operation, parameters)

    client._make_api_call = one_at_a_time  # type: ignore[attr-defined]
    return client


@pytest.fixture
def bucket(s3_client: "S3Client") -> str:
    name = f"bucket-{uuid4().hex}"
    s3_client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
    s3_client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    return name


@pytest.fixture(scope="session")
def table_definition() -> dict[str, Any]:
    template = yaml_parse((ROOT / "template.yaml").read_text())
    (table,) = [item for item in template["Resources"].values() if item["Type"] == "AWS::DynamoDB::Table"]
    wanted = ("BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")
    return {name: table["Properties"][name] for name in wanted}


@pytest.fixture
def table(dynamodb_client: "DynamoDBClient", table_definition: dict[str, Any]) -> str:
    name = f"table-{uuid4().hex}"
    dynamodb_client.create_table(TableName=name, **table_definition)
    return name


@pytest.fixture(params=["memory", "s3"])
def objects(request: pytest.FixtureRequest) -> ObjectStore:
    if request.param == "memory":
        return MemoryObjectStore()
    return S3ObjectStore(request.getfixturevalue("s3_client"), request.getfixturevalue("bucket"))


@pytest.fixture(params=["memory", "dynamodb"])
def registry(request: pytest.FixtureRequest) -> Registry:
    if request.param == "memory":
        both = MemoryDocumentRegistry()
        return Registry(both, both)
    client, table = request.getfixturevalue("dynamodb_client"), request.getfixturevalue("table")
    return Registry(DynamoDocumentRegistry(client, table), DynamoCatalogLog(client, table))


@pytest.fixture(params=["memory", "dynamodb"])
def items(request: pytest.FixtureRequest) -> ItemStore:
    if request.param == "memory":
        return MemoryItemStore()
    return DynamoItemStore(request.getfixturevalue("dynamodb_client"), request.getfixturevalue("table"))


@pytest.fixture
def fill(items: ItemStore, request: pytest.FixtureRequest) -> Callable[[Iterable[Item]], None]:
    """Adds many items to the store at once."""
    if isinstance(items, DynamoItemStore):
        client, table = request.getfixturevalue("dynamodb_client"), request.getfixturevalue("table")
        return lambda many: seed(client, table, many)
    return lambda many: [add(items, item) for item in many].clear()


@pytest.fixture(params=["memory", "dynamodb"])
def configs(request: pytest.FixtureRequest) -> ConfigStore:
    if request.param == "memory":
        return MemoryConfigStore()
    return DynamoConfigStore(request.getfixturevalue("dynamodb_client"), request.getfixturevalue("table"))


@pytest.fixture
def opensearch(opensearch_url: str) -> Iterator[OpenSearch]:
    client = opensearch_client(opensearch_url)
    yield client
    client.close()


@pytest.fixture(scope="session")
def standin(opensearch_url: str) -> Iterator[Standin]:
    """Serverless in front of that node; what is written shows after a while."""
    with Standin(opensearch_url, visible_after_s=0.2).serving() as server:
        yield server


@pytest.fixture
def serverless(standin: Standin) -> Iterator[OpenSearch]:
    credentials = Credentials("AKIDEXAMPLE", "secret")
    client = opensearch_client(standin.url, service="aoss", region=REGION, credentials=credentials)
    yield client
    client.close()


@pytest.fixture(params=["memory", "embedded over memory", "embedded over s3", "opensearch", "opensearch serverless"])
def new_vectors(request: pytest.FixtureRequest) -> Callable[[], VectorStore]:
    """Gives the same store again, as another process would open it."""
    if request.param.startswith("opensearch"):
        return _opensearch_vectors(request)
    if request.param == "memory":
        store = MemoryVectorStore()
        return lambda: store
    objects: ObjectStore = MemoryObjectStore()
    if request.param == "embedded over s3":
        objects = S3ObjectStore(request.getfixturevalue("s3_client"), request.getfixturevalue("bucket"))
    return lambda: EmbeddedVectorStore(objects)


def _opensearch_vectors(request: pytest.FixtureRequest) -> Callable[[], VectorStore]:
    if request.function.__name__ == "test_vectors_of_another_length_are_never_compared":
        # An index of OpenSearch is for one length: such vectors are refused and never come to be compared.
        request.applymarker(pytest.mark.xfail(raises=InvalidInput, strict=True))
    alias = request.getfixturevalue("opensearch_alias")
    if request.param == "opensearch":
        client = request.getfixturevalue("opensearch")
        return lambda: OpenSearchVectorStore(client, alias=alias, dimension=2)
    server, client = request.getfixturevalue("standin"), request.getfixturevalue("serverless")
    return lambda: Settled(OpenSearchVectorStore(client, alias=alias, dimension=2, serverless=True), server)


@pytest.fixture(params=["memory", "embedded over memory", "embedded over s3", "opensearch", "opensearch serverless"])
def new_index(request: pytest.FixtureRequest) -> NewIndex:
    """Gives the store of an embedder with that name and dimension; all of them are in one place."""
    if request.param == "memory":
        place = MemoryVectorStore()
        return lambda embedder, _: MemoryVectorStore(embedder, beside=place)
    if request.param == "embedded over memory":
        objects = MemoryObjectStore()
        return lambda embedder, _: EmbeddedVectorStore(objects, embedder=embedder)
    if request.param == "embedded over s3":
        s3 = S3ObjectStore(request.getfixturevalue("s3_client"), request.getfixturevalue("bucket"))
        return lambda embedder, _: EmbeddedVectorStore(s3, embedder=embedder)
    alias = request.getfixturevalue("opensearch_alias")
    if request.param == "opensearch":
        client = request.getfixturevalue("opensearch")
        return lambda embedder, dimension: OpenSearchVectorStore(
            client, alias=alias, dimension=dimension, embedder=embedder
        )
    server, client = request.getfixturevalue("standin"), request.getfixturevalue("serverless")

    def serverless_index(embedder: str, dimension: int) -> RebuildableVectorStore:
        store = OpenSearchVectorStore(
            client, alias=alias, dimension=dimension, embedder=embedder, serverless=True, visible_after_s=0.5
        )
        return Settled(store, server)

    return serverless_index


@pytest.fixture(params=["memory", "dynamodb"])
def tokens(request: pytest.FixtureRequest) -> TokensAndCallers:
    """An empty store of tokens, and the callers it makes known, by a clock that a test moves."""
    clock = Clock()
    if request.param == "memory":
        both = MemoryTokenStore(now=clock.now)
        return TokensAndCallers(both, both, clock)
    client, table = request.getfixturevalue("dynamodb_client"), request.getfixturevalue("table")
    callers = DynamoPrincipalStore(client, table, now_s=lambda: clock.now().timestamp())
    return TokensAndCallers(DynamoTokenStore(client, table), callers, clock)
