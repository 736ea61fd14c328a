"""Whenever it is compacted, whatever dies and whoever restarts: the catalog is what a rebuild from the log would be."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from knowledge.domain.document import DocumentRecord, KnowledgeEntry, doc_id_for
from knowledge.errors import KnowledgeError
from knowledge.ports import DocumentChange, SnapshotPointer
from knowledge.services.catalog import KnowledgeIndex
from knowledge.services.compaction import Compaction
from tests.contract.builders import record
from tests.services.test_compaction import DAMAGES
from tests.services.world import Died, MortalPort, World

PATHS = tuple(f"knowledge_base/{name}.md" for name in ("a", "b", "c", "支付"))
changes_of_paths = st.dictionaries(
    st.sampled_from(PATHS), st.one_of(st.none(), st.integers(0, 9)), min_size=1, max_size=len(PATHS)
)
# How many calls to any store succeed before the process dies; None: it lives.
lifetimes = st.one_of(st.none(), st.integers(0, 9))


class Snapshots(RuleBasedStateMachine):
    """Commits, compactions that die anywhere or overtake each other, damaged objects, instances old and new."""

    def __init__(self) -> None:
        super().__init__()
        self.life: list[int | None] = [None]
        self.world = World(port=lambda adapter: MortalPort(adapter, self.life))
        self.model: dict[str, KnowledgeEntry] = {}
        self.records: dict[str, DocumentRecord] = {}
        self.readers = [self.started()]

    def started(self) -> KnowledgeIndex:
        reader, _ = self.world.instance()
        reader.load()
        return reader

    @rule(changes=changes_of_paths)
    def commit(self, changes: dict[str, int | None]) -> None:
        self.world.registry.commit([self.change(path, number) for path, number in changes.items()])

    def change(self, path: str, number: int | None) -> DocumentChange:
        before, entry = self.records.pop(path, None), None
        deleted = self.world.registry.read(doc_id_for(path)).deleted
        if number is None:
            self.model.pop(path, None)
            self.world.objects.delete(path)
            return DocumentChange(doc_id_for(path), path, before, None, None, deleted)
        text = f"---\ntitle: T{number}\nkeywords: [K{number}]\n---\n"
        self.world.objects.put(path, text.encode(), content_type="text/markdown")
        entry = self.model[path] = KnowledgeEntry(path, f"T{number}", (f"K{number}",))
        after = self.records[path] = record(path)
        return DocumentChange(doc_id_for(path), path, before, after, entry, deleted)

    @rule(calls=lifetimes, least=st.sampled_from([1, 3]))
    def compact(self, calls: int | None, least: int) -> None:
        self.life[0] = calls
        try:
            self.compaction().compact(least_changes=least)
        except (Died, KnowledgeError):
            pass
        finally:
            self.life[0] = None

    @rule(step=st.sampled_from(["head", "changes_after", "publish", "forget_before"]), changes=changes_of_paths)
    def overtake(self, step: str, changes: dict[str, int | None]) -> None:
        """While one compacts, something is committed and another one compacts."""

        def meanwhile() -> None:
            self.commit(changes)
            self.compaction().compact()

        self.world.registry.before[step] = meanwhile
        self.compaction().compact()
        self.world.registry.before.clear()

    @rule(which=st.integers(0, 1), damage=st.sampled_from(["missing", "torn", "longer", "tampered"]))
    def damage(self, which: int, damage: str) -> None:
        for pointer in self.world.registry.head().snapshots[which : which + 1]:
            if self.is_there(pointer):
                DAMAGES[damage][0](self.world, pointer)

    def is_there(self, pointer: SnapshotPointer) -> bool:
        return self.world.objects.stat(pointer.key) is not None

    @rule()
    def start(self) -> None:
        self.readers = [*self.readers[-3:], self.started()]

    @rule()
    def look(self) -> None:
        for reader in self.readers:
            reader.refresh()
            self.agrees(reader)

    def compaction(self) -> Compaction:
        world: Any = self.world
        return Compaction(world.objects, world.registry, world.base, max_document_bytes=world.max_document_bytes)

    def agrees(self, reader: KnowledgeIndex) -> None:
        assert list(reader.entries) == [self.model[path] for path in sorted(self.model)]

    @invariant()
    def who_starts_now_knows_everything(self) -> None:
        self.agrees(self.started())

    @invariant()
    def whoever_is_behind_finds_that_out(self) -> None:
        head = self.world.registry.head().version
        assert all(self.world.registry.changes_after(version) for version in range(head))

    def teardown(self) -> None:
        """However much was left lying about, three more runs clear it up."""
        self.look()
        for _ in range(3):
            self.commit({PATHS[0]: 1})
            self.compaction().compact()
        snapshots = self.world.registry.head().snapshots
        assert len(snapshots) == 2
        assert [info.key for info in self.world.objects.list("_index/")] == sorted(one.key for one in snapshots)
        assert next(change.version for change in self.world.registry.changes_after(0)) == snapshots[1].version
        self.look()


TestSnapshots = Snapshots.TestCase
TestSnapshots.settings = settings(
    max_examples=80, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
