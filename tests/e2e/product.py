"""The product in this process, over a bucket, a table and a queue of its own in the local cloud.

`bootstrap` puts it together as in Lambda, from an environment; only the embedder is the hashing one, which needs no
model. Every service that is built has clients of its own, as every execution environment has.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch
from uuid import uuid4

import boto3
from samtranslator.yaml_helper import yaml_parse

from knowledge import bootstrap
from knowledge.adapters.embedded_vectors import EmbeddedVectorStore
from knowledge.adapters.hashing_embedder import HashingEmbedder
from knowledge.config import KnowledgeSettings
from knowledge.entrypoints import s3_events
from knowledge.entrypoints.read_http import ReadServices
from knowledge.ports import DocumentRegistry, Embedder, ObjectStore, RebuildableVectorStore, Vector
from knowledge.services.compaction import Compaction
from knowledge.services.documents import Documents
from knowledge.services.reconcile_progress import Report
from tests.entrypoints.events import Context

PREFIX = "knowledge_base/"
# As in template.yaml, but for the time a failed message stays away: a test cannot wait for minutes.
MAX_RECEIVE_COUNT, VISIBILITY_TIMEOUT_S = 8, 3

_T = TypeVar("_T")
BeforeSend = Callable[..., Any]
BeforeEmbedding = Callable[[], None]


class WatchedEmbedder(HashingEmbedder):
    """The hashing embedder, with a function called before each batch."""

    def __init__(self, before: BeforeEmbedding) -> None:
        super().__init__()
        self._before = before

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        """See Embedder."""
        self._before()
        return super().embed_passages(texts)


@dataclass
class Product:
    """Stores of its own, and what builds the services over them; `s3`, `dynamodb` and `sqs` meet no faults."""

    bucket: str
    table: str
    queue_url: str
    s3: Any
    dynamodb: Any
    sqs: Any
    environment: dict[str, str] = field(default_factory=dict)
    before_send: BeforeSend = lambda **_: None
    """Called with every request of the services that are built from now on."""
    before_embedding: BeforeEmbedding = lambda: None
    _session: Any = field(default_factory=boto3.session.Session)

    def documents(self) -> Documents:
        """What uploads and deletes."""
        return self._built(bootstrap.documents)

    def reader(self) -> ReadServices:
        """What answers lookups."""
        return self._built(bootstrap.read_services)

    def indexer(self) -> Callable[[dict[str, Any]], list[str]]:
        """The indexer function: it takes an event of the queue and names the messages that failed."""
        services = self._built(bootstrap.indexer)
        handler = s3_events.build_handler(lambda: services)

        def handle(event: dict[str, Any]) -> list[str]:
            return [failure["itemIdentifier"] for failure in handler(event, Context())["batchItemFailures"]]

        return handle

    def compaction(self) -> Compaction:
        """What writes the catalog down."""
        return self._built(lambda: bootstrap.maintenance().compaction())

    def reconcile(self) -> Report:
        """One pass, when nobody is at work any more: then what no record names may go at once."""
        return self._built(lambda: bootstrap.reconcile(os.environ, settled_after=timedelta(0))).resume()

    def stores(self) -> tuple[DocumentRegistry, RebuildableVectorStore]:
        """What is indexed, and the vectors there are."""
        with self._composed():
            return bootstrap.stores(os.environ)

    def client(self, service: str) -> Any:
        """A client of the services' kind."""
        with self._composed():
            return boto3.client(service)  # type: ignore[call-overload]

    def _built(self, build: Callable[[], _T]) -> _T:
        with self._composed():
            return build()

    @contextmanager
    def _composed(self) -> Iterator[None]:
        def semantics(_: KnowledgeSettings, objects: ObjectStore) -> tuple[Embedder, RebuildableVectorStore]:
            embedder = WatchedEmbedder(self.before_embedding)
            return embedder, EmbeddedVectorStore(objects, embedder=embedder.name)

        # Each client takes a copy of what is registered while it is made.
        self._session.events.register("before-send", self.before_send)
        try:
            with (
                patch.dict(os.environ, self.environment),
                patch.object(bootstrap, "semantics", semantics),
                patch.object(boto3, "DEFAULT_SESSION", self._session),
            ):
                yield
        finally:
            self._session.events.unregister("before-send", self.before_send)

    def deliver(self, handle: Callable[[dict[str, Any]], list[str]], *, batch_size: int = 5) -> int:
        """One batch of the queue goes to the indexer as Lambda does it; returns how many messages it held."""
        messages = self._received(batch_size)
        if messages:
            failed = handle({"Records": [_as_lambda_has_it(message) for message in messages]})
            for message in messages:
                if message["MessageId"] not in failed:
                    # Whoever took too long finds that the message was delivered again, and leaves it to that delivery.
                    with suppress(self.sqs.exceptions.ReceiptHandleIsInvalid):
                        self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])
        return len(messages)

    def _received(self, most: int) -> list[Any]:
        messages: list[Any] = []
        while len(messages) < most:
            found = self.sqs.receive_message(
                QueueUrl=self.queue_url,
                MaxNumberOfMessages=min(10, most - len(messages)),
                AttributeNames=["ApproximateReceiveCount"],
                WaitTimeSeconds=0,
            ).get("Messages", [])
            if not found:
                break
            messages += found
        return messages

    def waiting(self) -> int:
        """Messages in the queue, seen or not."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        answer = self.sqs.get_queue_attributes(QueueUrl=self.queue_url, AttributeNames=names)
        return sum(int(value) for value in answer["Attributes"].values())

    def drain(self, handle: Callable[[dict[str, Any]], list[str]]) -> None:
        """Every message has been handled, or is given up."""
        while self.waiting():
            if not self.deliver(handle):
                time.sleep(0.1)

    def in_bucket(self) -> dict[str, str]:
        """The documents that the bucket holds: key to ETag."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=PREFIX)
        return {item["Key"]: item["ETag"].strip('"') for page in pages for item in page.get("Contents", ())}


def new_product() -> Product:
    """A product over empty stores; its table is that of template.yaml."""
    clients: Any = boto3
    s3, dynamodb, sqs = clients.client("s3"), clients.client("dynamodb"), clients.client("sqs")
    name = f"proof-{uuid4().hex[:16]}"
    template = yaml_parse((Path(__file__).parents[2] / "template.yaml").read_text(encoding="utf-8"))
    (table,) = [item for item in template["Resources"].values() if item["Type"] == "AWS::DynamoDB::Table"]
    wanted = ("BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")
    dynamodb.create_table(TableName=name, **{part: table["Properties"][part] for part in wanted})
    dead_url = sqs.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    dead = sqs.get_queue_attributes(QueueUrl=dead_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    anybody = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}
    attributes = {
        "VisibilityTimeout": str(VISIBILITY_TIMEOUT_S),
        "RedrivePolicy": json.dumps({"deadLetterTargetArn": dead, "maxReceiveCount": MAX_RECEIVE_COUNT}),
        "Policy": json.dumps({"Version": "2012-10-17", "Statement": [anybody]}),
    }
    queue_url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    s3.create_bucket(Bucket=name)
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    rules = [{"Name": "prefix", "Value": PREFIX}]
    followed = {
        "QueueArn": queue,
        "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"],
        "Filter": {"Key": {"FilterRules": rules}},
    }
    s3.put_bucket_notification_configuration(
        Bucket=name,
        NotificationConfiguration={"QueueConfigurations": [followed]},
    )
    environment = {
        "BUCKET_NAME": name,
        "TABLE_NAME": name,
        "QUEUE_URL": queue_url,
        "MAX_RECEIVE_COUNT": str(MAX_RECEIVE_COUNT),
        "LOG_LEVEL": "CRITICAL",
    }
    return Product(name, name, queue_url, s3, dynamodb, sqs, environment)


def _as_lambda_has_it(message: dict[str, Any]) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:queue",
        "awsRegion": "us-east-1",
    }
