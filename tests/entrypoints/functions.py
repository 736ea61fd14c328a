"""The functions as Lambda runs them, behind a gateway that knows the template's routes; AWS is moto."""

import functools
import importlib.util
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from samtranslator.yaml_helper import yaml_parse

from knowledge import bootstrap
from knowledge.adapters.embedded_vectors import EmbeddedVectorStore
from knowledge.adapters.hashing_embedder import HashingEmbedder
from knowledge.config import KnowledgeSettings
from knowledge.domain.access import Principal
from knowledge.ports import Embedder, ObjectStore, RebuildableVectorStore
from tests.api import Answer
from tests.entrypoints.events import Context, api_event
from tests.routes import Route, routes

ROOT = Path(__file__).parents[2]
BUCKET, TABLE = "kb-bucket", "kb-table"
Function = Callable[[dict[str, Any]], dict[str, Any]]


def load(name: str) -> Function:
    """The function's handler, imported anew as in a new execution environment."""
    spec = importlib.util.spec_from_file_location(f"handler_{name}", ROOT / "functions" / name / "handler.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def function(event: dict[str, Any]) -> dict[str, Any]:
        # As the template has it; who serves a person has less.
        remaining_ms = 300_000 if name == "maintenance" else 28_000
        answer: dict[str, Any] = module.handler(event, Context(remaining_ms=remaining_ms))
        return answer

    return function


@contextmanager
def moto_stack() -> Iterator[SimpleNamespace]:
    """Bucket and table as the template has them, and the environment of a function."""
    environment = {
        "BUCKET_NAME": BUCKET,
        "TABLE_NAME": TABLE,
        "QUEUE_URL": "http://127.0.0.1/queue",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    template = yaml_parse((ROOT / "template.yaml").read_text())
    (table,) = [item for item in template["Resources"].values() if item["Type"] == "AWS::DynamoDB::Table"]
    wanted = ("BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        for name, value in environment.items():
            patch.setenv(name, value)
        s3, dynamodb = boto3.client("s3"), boto3.client("dynamodb")
        s3.create_bucket(Bucket=BUCKET)
        s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        dynamodb.create_table(TableName=TABLE, **{name: table["Properties"][name] for name in wanted})
        yield SimpleNamespace(s3=s3, dynamodb=dynamodb)


@contextmanager
def hashing_embedder() -> Iterator[None]:
    """Functions that are loaded embed without a model, in no time; texts without a word in common are not near."""

    def semantics(_: KnowledgeSettings, objects: ObjectStore) -> tuple[Embedder, RebuildableVectorStore]:
        embedder = HashingEmbedder()
        return embedder, EmbeddedVectorStore(objects, embedder=embedder.name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bootstrap, "semantics", semantics)
        yield


class Gateway:
    """Calls the function that the template names for a route, each function in one execution environment."""

    def __init__(self) -> None:
        self._load = functools.cache(load)
        # As the gateway does: what stands in the path before what may be anything there.
        self._routes = sorted(routes(), key=lambda route: route.path.replace("{", "~"))

    def call(
        self,
        caller: Principal | None,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        """See tests.api.Api."""
        route, variables = self._matched(method, path)
        authorizer = {"principalId": caller.name, "actor": caller.name, "role": caller.role.value} if caller else None
        event = api_event(
            method,
            path,
            body=None if body is None else json.dumps(body),
            content_type=None if body is None else content_type,
            query=dict(query) if query else None,
            authorizer=authorizer,
        )
        answer = self._load(route.function)({**event, "resource": route.path, "pathParameters": variables or None})
        return Answer(answer["statusCode"], answer["body"] or "")

    def _matched(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        for route in self._routes:
            pattern = re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", route.path)
            if route.method == method and (match := re.fullmatch(pattern, path)):
                return route, match.groupdict()
        raise AssertionError(f"the template has no route {method} {path}")
