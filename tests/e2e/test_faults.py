"""Whatever fails, the stores agree afterwards, and with a plain dict: nothing is lost, nothing double.

Eight threads, each with its own instances of the product and its own documents, upload, drop, delete, copy and look up,
while every tenth call to AWS and every tenth embedding fails. Meanwhile three indexers follow the bucket's events and
the log is compacted, through the same faults. Then the faults end, the queue runs dry, and the stores are reconciled
once.

FAULT_OPERATIONS says how many operations, SEED which faults: the seed that is printed makes the same run again, as far
as threads allow.
"""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import md5

import pytest
from botocore.exceptions import BotoCoreError, ClientError
from botocore.retries.standard import ExponentialBackoff

from knowledge.domain.document import DocumentStatus, doc_id_for
from knowledge.domain.lookup import Tier
from knowledge.errors import DependencyUnavailable, KnowledgeError, NotFound
from tests.e2e.faults import Faults
from tests.e2e.product import PREFIX, Product
from tests.services.world import ADMIN, READER, markdown

pytestmark = pytest.mark.e2e
OPERATIONS = int(os.environ.get("FAULT_OPERATIONS", "400"))
THREADS, INDEXERS, DOCUMENTS_EACH, SHARE = 8, 3, 5, 0.1
SHARED = tuple(f"shared-{number}.md" for number in range(3))


@dataclass
class Known:
    """What a document's only writer knows of it."""

    content: str | None = None
    """What the bucket holds; None when there is nothing."""
    is_told: bool = True
    """The product has acknowledged that state; otherwise it only learns of it by an event."""


@dataclass
class Writer:
    """One thread's instances, its documents and what they are known to be."""

    product: Product
    number: int
    dice: random.Random
    known: dict[str, Known] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.documents, self.services = self.product.documents(), self.product.reader()
        self.person = self.product.client("s3")
        self.known = {f"{self.number}-{name}.md": Known() for name in range(DOCUMENTS_EACH)}
        self.serial = 0

    def step(self) -> None:
        """One operation, of a kind and on a document that the dice choose."""
        kinds = {self.upload: 5, self.drop: 3, self.delete: 4, self.take_away: 1, self.copy: 2, self.look_up: 6}
        (kind,) = self.dice.choices(list(kinds), list(kinds.values()))
        path = self.dice.choice(list(self.known))
        if kind in (self.upload, self.drop, self.delete) and self.dice.random() < 0.15:
            # Of a document that everybody writes nothing is known but that the stores must agree on it.
            path = self.dice.choice(SHARED)
        kind(path)

    def content(self) -> str:
        """A new text, found by a keyword of its own; some have no frontmatter or no text."""
        self.serial += 1
        keyword = f"W{self.number}N{self.serial}"
        body = "\n\n".join(f"## Part {part}\n\nText {part}." for part in range(self.dice.randrange(4)))
        return markdown(keyword, body=body) if self.dice.random() < 0.9 else f"{keyword} without frontmatter"

    def upload(self, path: str) -> None:
        """By the API."""
        content = self.content()

        def work() -> None:
            self.documents.upload_document(ADMIN, category="kb", file_name=path, content=content.encode())

        self.changes(path, content, work, tells=True)

    def drop(self, path: str) -> None:
        """By any S3 client."""
        content = self.content()

        def work() -> None:
            self.person.put_object(Bucket=self.product.bucket, Key=key_of(path), Body=content.encode())

        self.changes(path, content, work)

    def copy(self, path: str) -> None:
        """By any S3 client; with the removal that follows at some time it is a renaming."""
        source = self.dice.choice(list(self.known))
        content = self.known[source].content
        if content is None or source == path:
            return
        where = {"Bucket": self.product.bucket, "Key": key_of(source)}

        def work() -> None:
            self.person.copy_object(Bucket=self.product.bucket, Key=key_of(path), CopySource=where)

        self.changes(path, content, work)

    def delete(self, path: str) -> None:
        """By the API."""
        self.changes(path, None, lambda: self.documents.delete_document(ADMIN, doc_id_for(key_of(path))), tells=True)

    def take_away(self, path: str) -> None:
        """By any S3 client."""
        where = {"Bucket": self.product.bucket, "Key": key_of(path)}
        self.changes(path, None, lambda: self.person.delete_object(**where))

    def changes(self, path: str, content: str | None, work: Callable[[], object], *, tells: bool = False) -> None:
        """`work` makes `content` the bucket's, or fails and leaves that or what was there before."""
        before = self.known.get(path, Known())
        try:
            work()
        except NotFound:
            self.counts["not found"] += 1
            return
        except (KnowledgeError, ClientError, BotoCoreError):
            self.counts["failed"] += 1
            if path in self.known:
                found = self.in_bucket(path)
                assert found in (before.content, content), f"{path} is neither what it was nor what it should be"
                self.known[path] = Known(found, is_told=False)
            return
        self.counts["done"] += 1
        if path in self.known:
            self.known[path] = Known(content, is_told=tells)

    def look_up(self, path: str) -> None:
        """What an instance answers is what the product has acknowledged, unless it says that it could not look."""
        known = self.known[path]
        keyword = keyword_of(known.content or self.content())
        answer = self.services.lookup.lookup_knowledge(READER, keyword)
        self.counts["degraded" if answer.degraded else "answered"] += 1
        if not known.is_told:
            return
        for found in (answer.primary, answer.supplement):
            if found is not None and found.source == key_of(path):
                assert known.content is not None, f"{path} was deleted and came back"
        if known.content and known.content.startswith("---") and Tier.EXACT not in answer.degraded:
            copies = {key_of(other) for other, state in self.known.items() if state.content == known.content}
            assert answer.primary is not None, f"{path} is not found by {keyword}"
            assert answer.primary.source in copies or not all(state.is_told for state in self.known.values())

    def in_bucket(self, path: str) -> str | None:
        """The content now, read without faults."""
        try:
            answer = self.product.s3.get_object(Bucket=self.product.bucket, Key=key_of(path))
        except self.product.s3.exceptions.NoSuchKey:
            return None
        return str(answer["Body"].read().decode())


def key_of(path: str) -> str:
    return f"{PREFIX}kb/{path}"


def keyword_of(content: str) -> str:
    return content.split('"')[1] if content.startswith("---") else content.split()[0]


@pytest.fixture
def seed() -> int:
    chosen = int(os.environ.get("SEED") or random.SystemRandom().randrange(10**6))
    print(f"\nSEED={chosen} FAULT_OPERATIONS={OPERATIONS} makes this run again", flush=True)
    return chosen


@pytest.fixture
def faults(seed: int, product: Product, monkeypatch: pytest.MonkeyPatch) -> Faults:
    """What every service of the product that is built from now on will meet."""
    wait = ExponentialBackoff.delay_amount
    # The SDK's waits of seconds after throttling are cut short; what it does after them is the same.
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda self, context: wait(self, context) * 0.02)
    faults = Faults(seed, SHARE)

    def fail_embedding() -> None:
        if faults.strikes():
            raise DependencyUnavailable("embedder", "injected")

    product.before_send, product.before_embedding = faults, fail_embedding
    return faults


class Meanwhile:
    """What goes on beside the writers until it is told to end: three indexers and the compaction of the log."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self._indexers = [product.indexer() for _ in range(INDEXERS)]
        self._compaction = product.compaction()
        self._end = threading.Event()
        self.snapshots = 0

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Inside, it does."""
        with ThreadPoolExecutor(INDEXERS + 1) as threads:
            work = [
                *(threads.submit(self._follow, number) for number in range(INDEXERS)),
                threads.submit(self._compact),
            ]
            try:
                yield
            finally:
                self._end.set()
        for one in work:
            one.result()

    def drain(self) -> None:
        """The queue is empty: every message has been handled, or is given up."""
        with ThreadPoolExecutor(INDEXERS) as threads:
            list(threads.map(self._product.drain, self._indexers))

    def _follow(self, number: int) -> None:
        threading.current_thread().name = f"indexer-{number}"
        while not self._end.is_set():
            if not self._product.deliver(self._indexers[number]):
                time.sleep(0.05)

    def _compact(self) -> None:
        threading.current_thread().name = "compaction"
        while not self._end.wait(0.5):
            with suppress(KnowledgeError):
                self.snapshots += self._compaction.compact().is_written


def write(writer: Writer) -> None:
    threading.current_thread().name = f"writer-{writer.number}"
    for _ in range(OPERATIONS // THREADS):
        writer.step()


def test_after_any_faults_all_stores_agree_with_a_plain_dict(product: Product, faults: Faults, seed: int) -> None:
    writers = [Writer(product, n, random.Random(f"{seed}/{n}")) for n in range(THREADS)]  # noqa: S311 - repeatable
    meanwhile, started = Meanwhile(product), time.perf_counter()
    with faults.on(), meanwhile.going_on(), ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(write, writers))
    counts = sum((writer.counts for writer in writers), Counter[str]())
    print(f"{time.perf_counter() - started:.0f} s: operations {dict(counts)}, faults {dict(faults.counts)}", flush=True)
    assert faults.counts.total() > OPERATIONS / 4
    meanwhile.drain()
    report = product.reconcile()
    print(f"{time.perf_counter() - started:.0f} s: {meanwhile.snapshots} snapshots were written; reconciled", end=" ")
    print(f"{dict(report.differences)} of {report.documents} documents and {report.generations} generations")
    assert (report.unrepaired, report.waiting, report.left_out) == (0, 0, None)
    model = {key_of(path): state.content for writer in writers for path, state in writer.known.items() if state.content}
    check(product, model, writers)


def check(product: Product, model: dict[str, str], writers: list[Writer]) -> None:
    """Bucket, registry, catalogs and vectors say the same, and it is what the model says."""
    in_bucket = product.in_bucket()
    own = {key: etag for key, etag in in_bucket.items() if "/shared-" not in key}
    assert own == {key: md5(text.encode(), usedforsecurity=False).hexdigest() for key, text in model.items()}
    registry, vectors = product.stores()
    records = registry.list(path_prefix="", status=None, cursor=None, limit=100).records
    assert {record.file_path: record.etag for record in records} == in_bucket
    assert {record.status for record in records} <= {DocumentStatus.INDEXED}
    assert all(record.chunk_count == record.embedded_count for record in records)
    fresh = product.reader().lookup._index
    fresh.load()
    product.compaction().compact()
    entries = {entry.file_path: entry.keywords for entry in fresh.entries}
    assert len(fresh.entries) == len(entries), "an entry is there twice"
    expected = {key: (keyword_of(text),) for key, text in model.items() if text.startswith("---")}
    assert {key: words for key, words in entries.items() if "/shared-" not in key} == expected
    for lookup in (product.reader().lookup, *(writer.services.lookup for writer in writers)):
        # Those that were there from the beginning, and one that starts from the snapshot written just now.
        assert not lookup.lookup_knowledge(READER, "anything").degraded
        assert list(lookup._index.entries) == list(fresh.entries)
    stored = list(vectors.generations())
    assert len(stored) == len(set(stored))
    assert set(stored) == {(record.doc_id, record.generation) for record in records if record.generation}
    for record in records:
        assert registry.read(record.doc_id).discarded == ()
