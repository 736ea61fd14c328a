"""The functions are killed amid their work, again and again, and afterwards the stores say what the bucket says.

A dead process answers nothing and cleans nothing up: uploads fail for their callers, events come back after a while,
and those that came back too often are made up for by one reconciliation.
SEED makes the same choices again; which line a process dies at is the machine's choice.
"""

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from hashlib import md5
from typing import Any

import boto3
import psutil
import pytest

from knowledge import bootstrap
from knowledge.domain.document import DocumentStatus, doc_id_for
from knowledge.services.reconcile_progress import Report
from tests.e2e.conftest import Stack, eventually
from tests.services.world import markdown
from tools.local_cloud import functions, running
from tools.local_cloud import stack as local_stack

pytestmark = pytest.mark.e2e
THREADS, DOCUMENTS_EACH, OPERATIONS_EACH = 3, 4, 10
# On a quick machine the operations are through before so many processes were killed; then the writers go on, this long.
LEAST_KILLED, LONGEST_S = 5, 90
FOLDER = "knowledge_base/killed/"
# Those that change something; the others are as dead when they are killed, and show less.
VICTIMS = ("UploadFunction", "DeleteFunction", "IndexerFunction")
# How soon a message comes back whose indexer died; the template's minutes are too long for a test.
VISIBILITY_TIMEOUT_S = "4"
IN_FLIGHT_S = 0.5


@pytest.fixture
def dice() -> random.Random:
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(10**6))
    print(f"\nSEED={seed}")
    return random.Random(seed)  # noqa: S311 - repeatable


@pytest.fixture
def hasty_queue() -> Any:
    client, url = boto3.client("sqs"), local_stack.physical_id("EventQueue")
    attributes = client.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])["Attributes"]
    client.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": VISIBILITY_TIMEOUT_S})
    yield
    client.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": attributes["VisibilityTimeout"]})
    # Those that were given up have been judged; the doctor, whom other tests ask, would go on to warn of them.
    client.purge_queue(QueueUrl=local_stack.physical_id("DeadLetterQueue"))


def queue_is_empty() -> bool:
    names: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    url = local_stack.physical_id("EventQueue")
    counts = boto3.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return not any(map(int, counts.values()))


def reconciled() -> Report:
    """One pass when nobody is at work any more: then nothing has to wait for an hour."""
    environment = functions.configuration("maintenance")["Environment"]["Variables"]
    return bootstrap.reconcile(environment, settled_after=timedelta(0)).resume()


def is_victim(process: psutil.Process) -> bool:
    try:
        return any(name in " ".join(process.cmdline()) for name in VICTIMS)
    except psutil.NoSuchProcess:  # also of one that was killed and is not buried yet
        return False


def kill(stop: threading.Event, enough: threading.Event, dice: random.Random) -> int:
    """Every second or two one of the functions' processes is killed; returns how many were, and says when enough."""
    cloud, killed = running.read(), 0
    assert cloud is not None
    assert cloud.ministack is not None
    while not stop.wait(dice.uniform(0.5, 2.0)):
        victims = [process for process in cloud.ministack.children() if is_victim(process)]
        if victims:
            dice.choice(victims).kill()
            killed += 1
        if killed >= LEAST_KILLED:
            enough.set()
    return killed


def keyword(writer: int, serial: int) -> str:
    """None is a part of another one."""
    return f"KILL-{writer}-{serial:03}"


class Writer:
    """Changes documents of its own, by the API and in the bucket, and keeps what the bucket must hold."""

    def __init__(self, stack: Stack, number: int, seed: float) -> None:
        self.stack, self.number = stack, number
        self.dice = random.Random(seed)  # noqa: S311 - repeatable
        self.content: dict[str, str | None] = {f"{number}-{n}.md": None for n in range(DOCUMENTS_EACH)}
        self.failed = self.serial = 0

    def work(self, enough: threading.Event) -> None:
        deadline, done = time.monotonic() + LONGEST_S, 0
        while done < OPERATIONS_EACH or not (enough.is_set() or time.monotonic() > deadline):
            done += 1
            path = self.dice.choice(list(self.content))
            self.dice.choices([self.upload, self.drop, self.delete, self.take_away], [4, 3, 2, 1])[0](path)

    def new_content(self) -> str:
        self.serial += 1
        return markdown(keyword(self.number, self.serial), body=f"Text {self.serial} of writer {self.number}.")

    def upload(self, path: str) -> None:
        content = self.new_content()
        form = {"data": {"category": "killed"}, "files": {"file": (path, content.encode(), "text/markdown")}}
        self.ask(path, content, "POST", "/documents", **form)

    def delete(self, path: str) -> None:
        self.ask(path, None, "DELETE", f"/documents/{doc_id_for(FOLDER + path)}")

    def ask(self, path: str, content: str | None, method: str, url: str, **options: Any) -> None:
        answer = self.stack.api.request(method, url, **options)
        if answer.status_code in (200, 201):
            self.content[path] = content
        elif answer.status_code != 404:
            assert answer.status_code >= 500, answer.text
            self.failed += 1
            # What the process had sent before it died may still be on its way.
            time.sleep(IN_FLIGHT_S)
            found = self.in_bucket(path)
            assert found in (self.content[path], content), f"{path} is neither what it was nor what it should be"
            self.content[path] = found

    def drop(self, path: str) -> None:
        self.content[path] = content = self.new_content()
        self.stack.drop(FOLDER + path, content.encode())

    def take_away(self, path: str) -> None:
        self.content[path] = None
        self.stack.s3.delete_object(Bucket=self.stack.bucket, Key=FOLDER + path)

    def in_bucket(self, path: str) -> str | None:
        try:
            answer = self.stack.s3.get_object(Bucket=self.stack.bucket, Key=FOLDER + path)
        except self.stack.s3.exceptions.NoSuchKey:
            return None
        return answer["Body"].read().decode()


def test_functions_killed_amid_their_work_leave_stores_that_agree(
    stack: Stack, dice: random.Random, hasty_queue: None
) -> None:
    writers = [Writer(stack, number, dice.random()) for number in range(THREADS)]
    stop, enough = threading.Event(), threading.Event()
    with ThreadPoolExecutor(THREADS + 1) as threads:
        killer = threads.submit(kill, stop, enough, dice)
        try:
            list(threads.map(lambda writer: writer.work(enough), writers))
        finally:
            stop.set()
    print(f"{killer.result()} processes killed, {sum(writer.failed for writer in writers)} requests failed")
    assert killer.result() >= LEAST_KILLED
    model = {FOLDER + path: text for writer in writers for path, text in writer.content.items() if text is not None}
    stack.dropped.update(model)
    registry, vectors = bootstrap.stores(functions.configuration("indexer")["Environment"]["Variables"])

    def indexed() -> dict[str, tuple[DocumentStatus, str]]:
        page = registry.list(path_prefix=FOLDER, status=None, cursor=None, limit=100)
        return {record.file_path: (record.status, record.etag) for record in page.records}

    expected = {
        key: (DocumentStatus.INDEXED, md5(text.encode(), usedforsecurity=False).hexdigest())
        for key, text in model.items()
    }
    listed = stack.s3.list_objects_v2(Bucket=stack.bucket, Prefix=FOLDER).get("Contents", [])
    assert {item["Key"]: item["ETag"].strip('"') for item in listed} == {
        key: etag for key, (_, etag) in expected.items()
    }
    eventually(lambda: indexed() == expected or queue_is_empty(), timeout_s=90)
    if indexed() != expected:
        # An event that processes died of at each of its deliveries is given up; what it told of is found all the same.
        print(f"reconciled: {reconciled().as_json()}")
    assert indexed() == expected
    for key, text in model.items():
        assert stack.lookup(text.split('"')[1])["primary"]["source"] == key
    for writer in writers:
        current = {text.split('"')[1] for text in writer.content.values() if text}
        for serial in range(1, writer.serial + 1):
            if (outdated := keyword(writer.number, serial)) not in current:
                assert stack.lookup(outdated)["primary"] is None
    records = registry.list(path_prefix=FOLDER, status=None, cursor=None, limit=100).records
    assert set(vectors.generations()) >= {(record.doc_id, record.generation) for record in records}
