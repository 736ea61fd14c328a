"""Whatever happens in whatever order, the stores end up saying what the bucket says. The model is a plain dict."""

from collections.abc import Callable
from datetime import timedelta
from hashlib import md5

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from knowledge.domain.document import DocumentStatus, doc_id_for
from knowledge.errors import KnowledgeError
from knowledge.services.compaction import Compaction
from tests.services.world import ADMIN, READER, Died, MortalPort, World, markdown

FOLDER = "knowledge_base/kb/"
PATHS = ("a.md", "b.md", "team/支付.md")
# Two texts share a chunk, one has no frontmatter, one is broken, one is not UTF-8.
CONTENTS = (
    markdown("ERR_ONE", body="Shared text.").encode(),
    markdown("ERR_TWO", body="Shared text.").encode(),
    markdown("ERR_LONG", body="\n\n".join(f"## Part {n}\n\nText {n}." for n in range(4))).encode(),
    b"No frontmatter here.",
    b"---\ntitle: [unclosed\n---\nBroken.",
    b"\xff\xfe",
)
KEYWORDS = dict(zip(CONTENTS, ("ERR_ONE", "ERR_TWO", "ERR_LONG"), strict=False))
paths = st.sampled_from(PATHS)
contents = st.sampled_from(CONTENTS)
# How many calls to any store succeed before the process dies; None: it lives.
lifetimes = st.one_of(st.none(), st.integers(0, 12))


class AnyOrderOfEvents(RuleBasedStateMachine):
    """Whatever anybody does, and deaths, events late, twice and out of order, snapshots, instances that come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.life: list[int | None] = [None]
        self.world = World(port=lambda adapter: MortalPort(adapter, self.life))
        self.files: dict[str, bytes] = {}
        """What the bucket holds: what an upload acknowledged, what a drop put there, and nothing that failed."""
        self.events: list[str] = []
        self.lookups = [self.world.instance()[1]]

    def while_alive(self, calls: int | None, work: Callable[[], object]) -> bool:
        """True when the work was done to its end."""
        self.life[0] = calls
        try:
            work()
        except (Died, KnowledgeError):
            return False
        finally:
            self.life[0] = None
        return True

    def changed(self, path: str, content: bytes | None, *, done: bool) -> None:
        """The file is `content` now; when that failed, it may also be what it was before, and nothing else."""
        before, stored = self.files.pop(path, None), self.world.objects.read(f"{FOLDER}{path}", max_bytes=10_000)
        found = stored.body if stored else None
        assert found in ((content,) if done else (before, content))
        if found is not None:
            self.files[path] = found

    @rule(path=paths, content=contents, calls=lifetimes)
    def upload(self, path: str, content: bytes, calls: int | None) -> None:
        self.events.append(path)
        category, _, name = f"kb/{path}".rpartition("/")
        done = self.while_alive(
            calls,
            lambda: self.world.documents.upload_document(ADMIN, category=category, file_name=name, content=content),
        )
        self.changed(path, content, done=done)

    @rule(path=paths, content=contents)
    def drop(self, path: str, content: bytes) -> None:
        self.events.append(path)
        self.world.drop(f"{FOLDER}{path}", content)
        self.changed(path, content, done=True)

    @precondition(lambda self: self.files)
    @rule(data=st.data(), path=paths, is_renaming=st.booleans())
    def copy(self, data: st.DataObject, path: str, is_renaming: bool) -> None:
        """S3 knows no renaming: it is a copy and then a removal, and each sends its event."""
        source = data.draw(st.sampled_from(sorted(self.files)))
        self.drop(path, self.files[source])
        if is_renaming and source != path:
            self.take_away(source)

    @rule(path=paths, calls=lifetimes)
    def delete(self, path: str, calls: int | None) -> None:
        self.events.append(path)
        state = self.world.registry.read(doc_id_for(f"{FOLDER}{path}"))
        done = self.while_alive(
            calls, lambda: self.world.documents.delete_document(ADMIN, doc_id_for(f"{FOLDER}{path}"))
        )
        # What is not indexed cannot be deleted: that is refused, and changes nothing.
        self.changed(path, self.files.get(path) if state.record is None else None, done=done)

    @rule(path=paths)
    def take_away(self, path: str) -> None:
        self.events.append(path)
        self.world.objects.delete(f"{FOLDER}{path}")
        self.changed(path, None, done=True)

    @rule(path=paths)
    def undo(self, path: str) -> None:
        """The newest version is removed for good; a delete marker goes without an event, and the file is back."""
        key = f"{FOLDER}{path}"
        if versions := self.world.objects.version_ids(key):
            if path in self.files:
                self.events.append(path)
            self.world.objects.delete_version(key, versions[-1])
            stored = self.world.objects.read(key, max_bytes=10_000)
            self.files.pop(path, None)
            if stored is not None:
                self.files[path] = stored.body

    @precondition(lambda self: self.events)
    @rule(data=st.data(), calls=lifetimes, keep=st.booleans())
    def deliver(self, data: st.DataObject, calls: int | None, keep: bool) -> None:
        position = data.draw(st.integers(0, len(self.events) - 1))
        path = self.events[position]
        self.while_alive(calls, lambda: self.world.converger.converge(f"{FOLDER}{path}"))
        if calls is None and not keep:
            del self.events[position]

    @rule(path=paths, content=contents, other=contents)
    def overtake(self, path: str, content: bytes, other: bytes) -> None:
        """While one process indexes a file, another one stores and indexes a newer version of it."""
        key = f"{FOLDER}{path}"
        self.drop(path, content)

        def newer() -> None:
            self.drop(path, other)
            self.world.converger.converge(key)

        self.world.objects.before["read"] = newer
        self.world.converger.converge(key)
        self.world.objects.before.clear()

    @rule(calls=lifetimes)
    def compact(self, calls: int | None) -> None:
        """Instances that are there go on with the log; those that come start from the snapshot."""
        compaction = Compaction(
            self.world.objects, self.world.registry, self.world.base, max_document_bytes=self.world.max_document_bytes
        )
        self.while_alive(calls, compaction.compact)

    @rule(calls=lifetimes)
    def reconcile(self, calls: int | None) -> None:
        self.while_alive(calls, self.world.reconcile().resume)

    @rule()
    def restart(self) -> None:
        self.lookups.append(self.world.instance()[1])

    @invariant()
    def an_exact_answer_is_a_file_that_is_in_the_bucket(self) -> None:
        primary = self.lookups[-1].lookup_knowledge(READER, "ERR_ONE").primary
        assert primary is None or self.world.objects.stat(primary.source) is not None

    def teardown(self) -> None:
        """Events that were not delivered until now are lost: the stores are reconciled once, and agree."""
        reports = list(self.world.reconcile(settled_after=timedelta(0)).run(repair=True))
        assert (reports[-1].unrepaired, reports[-1].waiting) == (reports[-1].statuses.get(DocumentStatus.FAILED, 0), 0)
        expected = {
            f"{FOLDER}{path}": md5(content, usedforsecurity=False).hexdigest() for path, content in self.files.items()
        }
        assert {info.key: info.etag for info in self.world.objects.list("knowledge_base/")} == expected
        records = {record.file_path: record for record in self.world.reader.list_documents(READER).records}
        assert {path: record.etag for path, record in records.items()} == expected
        fresh, _ = self.world.instance()
        fresh.load()
        for lookup in self.lookups:
            lookup.lookup_knowledge(READER, "anything")
            # An instance may have scanned a file that went before it was ever indexed: such an entry answers nothing.
            kept = [entry for entry in lookup._index.entries if entry.file_path in expected]
            assert kept == list(fresh.entries)
        keywords = {f"{FOLDER}{path}": KEYWORDS.get(content) for path, content in self.files.items()}
        assert {entry.file_path: entry.keywords for entry in fresh.entries} == {
            path: (keyword,) for path, keyword in keywords.items() if keyword
        }
        live = {(record.doc_id, record.generation) for record in records.values()}
        hits = self.world.chunks("text")
        assert {(hit.doc_id, hit.generation) for hit in hits} <= live
        assert len(hits) == sum(record.chunk_count for record in records.values())


TestAnyOrderOfEvents = AnyOrderOfEvents.TestCase
TestAnyOrderOfEvents.settings = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
