"""What every DocumentRegistry with its CatalogLog does."""

import threading
from dataclasses import replace
from itertools import chain

import pytest

from knowledge.domain.document import DocumentRecord, DocumentStatus, Generation, doc_id_for
from knowledge.errors import InvalidInput, VersionConflict
from knowledge.ports import MAX_CHANGES, CatalogChange, DocumentChange, DocumentRegistry, DocumentState
from tests.contract.builders import Registry, change, entry, record

FIRST, SECOND = Generation("g1"), Generation("g2")


def paths_page_by_page(documents: DocumentRegistry, *, limit: int, prefix: str = "") -> list[list[str]]:
    pages: list[list[str]] = []
    cursor: str | None = None
    while True:
        page = documents.list(path_prefix=prefix, status=None, cursor=cursor, limit=limit)
        pages.append([item.file_path for item in page.records])
        cursor = page.next_cursor
        if cursor is None:
            return pages


class TestDocumentRegistry:
    def test_an_unknown_document_has_no_record(self, registry: Registry) -> None:
        assert registry.documents.read(doc_id_for("kb/none.md")) == DocumentState(None)

    @pytest.mark.parametrize(
        "stored",
        [
            record(),
            record(
                "kb/文档/部署 指南+%#.md", title="部署", warnings=("第一行", "line 2"), chunk_count=3, embedded_count=2
            ),
            record(metadata=None, reason="the embedder was down", status=DocumentStatus.PENDING, generation=FIRST),
            record(metadata={"a": [1, 2.5, 1e-3, True, None, {"b": "é", "": ""}], "n": 10**30}, title=""),
        ],
    )
    def test_a_record_comes_back_as_it_was_C02(self, registry: Registry, stored: DocumentRecord) -> None:
        registry.documents.commit([change(None, stored)])
        assert registry.documents.read(stored.doc_id) == DocumentState(stored)

    def test_a_commit_for_an_outdated_record_conflicts_and_changes_nothing(self, registry: Registry) -> None:
        first, second = record(generation=FIRST), record(generation=SECOND)
        registry.documents.commit([change(None, first)])
        registry.documents.commit([change(first, second)])
        before = registry.documents.read(first.doc_id), registry.log.head().version
        for stale in (change(None, record()), change(first, record()), change(first, None)):
            with pytest.raises(VersionConflict):
                registry.documents.commit([stale])
        assert (registry.documents.read(first.doc_id), registry.log.head().version) == before

    def test_a_record_that_came_and_went_meanwhile_conflicts_with_one_made_for_its_absence(
        self, registry: Registry
    ) -> None:
        late, first, second = record(), record(), record()
        absent = registry.documents.read(late.doc_id)
        registry.documents.commit([change(None, first)])
        registry.documents.commit([change(first, None)])
        with pytest.raises(VersionConflict):
            registry.documents.commit([replace(change(None, late), deleted=absent.deleted)])
        again = registry.documents.read(late.doc_id)
        assert (again.record, again.deleted) == (None, first.revision)
        registry.documents.commit([replace(change(None, second), deleted=again.deleted)])
        registry.documents.commit([change(second, None)])
        with pytest.raises(VersionConflict):
            registry.documents.commit([replace(change(None, late), deleted=again.deleted)])
        assert registry.documents.read(late.doc_id).record is None
        assert registry.log.head().version == 4

    def test_deleting_nothing_makes_whoever_found_nothing_before_lose(self, registry: Registry) -> None:
        """Somebody who has read a file that is gone by now, and has not committed it yet."""
        late = record()
        for _ in range(2):
            absent = registry.documents.read(late.doc_id)
            nothing = DocumentChange(late.doc_id, late.file_path, None, None, None, absent.deleted)
            registry.documents.commit([nothing])
            for stale in (nothing, replace(change(None, late), deleted=absent.deleted)):
                with pytest.raises(VersionConflict):
                    registry.documents.commit([stale])
        state = registry.documents.read(late.doc_id)
        assert state.record is None
        registry.documents.commit([replace(change(None, late), deleted=state.deleted)])
        assert registry.documents.read(late.doc_id).record == late

    def test_deleting_a_record_that_is_gone_conflicts(self, registry: Registry) -> None:
        stored = record()
        registry.documents.commit([change(None, stored)])
        registry.documents.commit([change(stored, None)])
        with pytest.raises(VersionConflict):
            registry.documents.commit([change(stored, None)])
        assert registry.log.head().version == 2

    def test_a_set_is_committed_whole_under_one_number(self, registry: Registry) -> None:
        first, second = record("kb/b.md", generation=FIRST), record("kb/b.md", generation=SECOND)
        gone, new, known = record("kb/c.md"), record("kb/a.md"), entry("kb/a.md")
        registry.documents.commit([change(None, first), change(None, gone)])
        registry.documents.commit([change(gone, None), change(None, new, entry=known), change(first, second)])
        assert registry.documents.read(new.doc_id) == DocumentState(new)
        assert registry.documents.read(first.doc_id) == DocumentState(second, (FIRST,))
        assert registry.documents.read(gone.doc_id) == DocumentState(None, (), gone.revision)
        assert registry.log.head().version == 2
        assert list(registry.log.changes_after(1)) == [
            CatalogChange(2, {"kb/c.md": None, "kb/a.md": known, "kb/b.md": None})
        ]

    def test_a_set_in_which_some_lost_names_them_and_changes_nothing(self, registry: Registry) -> None:
        stale, current, new = record("kb/stale.md"), record("kb/current.md"), record("kb/new.md")
        registry.documents.commit([change(None, record("kb/stale.md")), change(None, current)])
        with pytest.raises(VersionConflict) as caught:
            registry.documents.commit(
                [
                    change(stale, record("kb/stale.md")),
                    change(None, new),
                    change(None, record("kb/current.md")),
                    change(record("kb/never.md"), None),
                ]
            )
        assert sorted(caught.value.paths) == ["kb/current.md", "kb/never.md", "kb/stale.md"]
        assert registry.documents.read(new.doc_id) == DocumentState(None)
        assert registry.documents.read(current.doc_id) == DocumentState(current)
        assert registry.log.head().version == 1

    def test_the_largest_set_of_the_costliest_changes_is_one_transaction(self, registry: Registry) -> None:
        records = [record(f"kb/{number}.md", generation=FIRST) for number in range(MAX_CHANGES)]
        registry.documents.commit([change(None, item) for item in records])
        registry.documents.commit([change(item, None) for item in records])
        assert registry.log.head().version == 2
        assert registry.documents.read(records[-1].doc_id) == DocumentState(None, (FIRST,), records[-1].revision)

    def test_replaced_generations_wait_until_they_are_forgotten(self, registry: Registry) -> None:
        first, second = record(generation=FIRST), record(generation=SECOND)
        same = replace(second, revision="later")
        for step in (change(None, first), change(first, second), change(second, same), change(same, None)):
            registry.documents.commit([step])
        assert registry.documents.read(first.doc_id) == DocumentState(None, (FIRST, SECOND), "later")
        registry.documents.forget_discarded(first.doc_id, FIRST)
        registry.documents.forget_discarded(first.doc_id, FIRST)
        assert registry.documents.read(first.doc_id) == DocumentState(None, (SECOND,), "later")

    def test_generations_are_those_of_documents_that_have_one(self, registry: Registry) -> None:
        with_one, without = record("kb/a.md", generation=FIRST), record("kb/b.md")
        registry.documents.commit([change(None, with_one)])
        registry.documents.commit([change(None, without)])
        asked = [without.doc_id, with_one.doc_id, with_one.doc_id, doc_id_for("kb/none.md")]
        assert registry.documents.generations(asked) == {with_one.doc_id: FIRST}
        assert registry.documents.generations([]) == {}

    @pytest.mark.parametrize(("limit", "sizes"), [(1, [1] * 7), (3, [3, 3, 1]), (7, [7]), (100, [7])])
    def test_pages_neither_skip_nor_repeat(self, registry: Registry, limit: int, sizes: list[int]) -> None:
        paths = ["kb/a b.md", "kb/a.md", "kb/a/b.md", "kb/B.md", "kb/é.md", "kb/中.md", "kb/\U0001f600.md"]
        for path in paths:
            registry.documents.commit([change(None, record(path))])
        pages = paths_page_by_page(registry.documents, limit=limit)
        assert [len(page) for page in pages] == sizes
        assert list(chain.from_iterable(pages)) == sorted(paths, key=str.encode)

    def test_a_page_goes_on_after_its_last_record_was_deleted(self, registry: Registry) -> None:
        records = [record(f"kb/{name}.md") for name in "abcd"]
        for item in records:
            registry.documents.commit([change(None, item)])
        page = registry.documents.list(path_prefix="", status=None, cursor=None, limit=2)
        registry.documents.commit([change(records[1], None)])
        rest = registry.documents.list(path_prefix="", status=None, cursor=page.next_cursor, limit=2)
        assert [item.file_path for item in rest.records] == ["kb/c.md", "kb/d.md"]

    def test_a_list_is_narrowed_by_prefix_and_status(self, registry: Registry) -> None:
        registry.documents.commit([change(None, record("kb/api/a.md"))])
        registry.documents.commit([change(None, record("kb/api/b.md", status=DocumentStatus.PENDING))])
        registry.documents.commit([change(None, record("kb/ops/c.md", status=DocumentStatus.PENDING))])

        def paths(prefix: str, status: DocumentStatus | None) -> list[str]:
            page = registry.documents.list(path_prefix=prefix, status=status, cursor=None, limit=10)
            assert page.next_cursor is None
            return [item.file_path for item in page.records]

        assert paths("kb/api/", None) == ["kb/api/a.md", "kb/api/b.md"]
        assert paths("", DocumentStatus.PENDING) == ["kb/api/b.md", "kb/ops/c.md"]
        assert paths("kb/ops/", DocumentStatus.PENDING) == ["kb/ops/c.md"]
        assert paths("kb/", DocumentStatus.FAILED) == []

    def test_a_record_with_a_new_status_moves_to_the_other_list(self, registry: Registry) -> None:
        pending = record(status=DocumentStatus.PENDING)
        indexed = record()
        registry.documents.commit([change(None, pending)])
        registry.documents.commit([change(pending, indexed)])
        for status, expected in ((DocumentStatus.PENDING, ()), (DocumentStatus.INDEXED, (indexed,))):
            page = registry.documents.list(path_prefix="", status=status, cursor=None, limit=1)
            assert (page.records, page.next_cursor) == (expected, None)

    def test_pages_of_one_status_follow_their_own_cursor(self, registry: Registry) -> None:
        for name in "abc":
            registry.documents.commit([change(None, record(f"kb/{name}.md", status=DocumentStatus.FAILED))])
            registry.documents.commit([change(None, record(f"kb/{name}-fine.md"))])
        first = registry.documents.list(path_prefix="kb/", status=DocumentStatus.FAILED, cursor=None, limit=2)
        second = registry.documents.list(
            path_prefix="kb/", status=DocumentStatus.FAILED, cursor=first.next_cursor, limit=2
        )
        assert [item.file_path for item in (*first.records, *second.records)] == ["kb/a.md", "kb/b.md", "kb/c.md"]
        assert second.next_cursor is None

    @pytest.mark.parametrize("cursor", ["", "x", "????", "AAAA", "a" * 5000, "中文", "eyJwayI6MX0", "YS8", "L2E"])
    def test_a_foreign_cursor_is_refused(self, registry: Registry, cursor: str) -> None:
        with pytest.raises(InvalidInput) as caught:
            registry.documents.list(path_prefix="", status=None, cursor=cursor, limit=10)
        assert caught.value.field == "cursor"

    def test_a_cursor_of_another_prefix_is_refused(self, registry: Registry) -> None:
        for name in "abc":
            registry.documents.commit([change(None, record(f"kb/api/{name}.md"))])
        page = registry.documents.list(path_prefix="kb/api/", status=None, cursor=None, limit=1)
        with pytest.raises(InvalidInput):
            registry.documents.list(path_prefix="kb/ops/", status=None, cursor=page.next_cursor, limit=1)


class TestCatalogLog:
    def test_an_empty_log_is_at_zero(self, registry: Registry) -> None:
        assert registry.log.head().version == 0
        assert list(registry.log.changes_after(0)) == []

    def test_changes_come_in_order_with_their_entries(self, registry: Registry) -> None:
        first, second = record(), record()
        known, bare = entry(), entry(keywords=(), summary=None, title="中")
        registry.documents.commit([change(None, first, entry=known)])
        registry.documents.commit([change(first, second, entry=bare)])
        registry.documents.commit([change(second, None)])
        path = first.file_path
        everything = [CatalogChange(n, {path: it}) for n, it in enumerate((known, bare, None), start=1)]
        assert list(registry.log.changes_after(0)) == everything
        assert list(registry.log.changes_after(-1)) == everything
        assert list(registry.log.changes_after(2)) == everything[2:]
        assert list(registry.log.changes_after(3)) == []
        assert registry.log.head().version == 3

    def test_the_log_keeps_the_order_of_numbers_beyond_nine(self, registry: Registry) -> None:
        for number in range(12):
            registry.documents.commit([change(None, record(f"kb/{number}.md"))])
        assert [item.version for item in registry.log.changes_after(8)] == [9, 10, 11, 12]

    def test_a_large_log_is_read_whole(self, registry: Registry) -> None:
        keywords = tuple(f"{number:04}" + "k" * 96 for number in range(1000))
        for number in range(12):
            path = f"kb/{number}.md"
            registry.documents.commit([change(None, record(path), entry=entry(path, keywords=keywords))])
        changes = registry.log.changes_after(0)
        assert [item.version for item in changes] == list(range(1, 13))
        assert {one.keywords for item in changes for one in item.entries.values() if one} == {keywords}


class TestRaces:
    @pytest.mark.parametrize("size", [1, 5])
    def test_twelve_writers_of_different_documents_all_get_in_without_a_gap_C05(
        self, registry: Registry, size: int
    ) -> None:
        barrier, errors = threading.Barrier(12), list[Exception]()
        paths = [[f"kb/{number}-{n}.md" for n in range(size)] for number in range(12)]

        def write(number: int) -> None:
            barrier.wait()
            try:
                registry.documents.commit([change(None, record(path)) for path in paths[number]])
            except Exception as error:  # noqa: BLE001 - a thread's error has to be shown by the test
                errors.append(error)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        changes = registry.log.changes_after(0)
        assert errors == []
        assert [item.version for item in changes] == list(range(1, 13))
        assert sorted(list(item.entries) for item in changes) == sorted(paths)
        assert registry.log.head().version == 12

    def test_of_twelve_writers_of_one_revision_exactly_one_wins_C05(self, registry: Registry) -> None:
        start = record()
        registry.documents.commit([change(None, start)])
        candidates = [record() for _ in range(12)]
        barrier, outcomes = threading.Barrier(12), list[DocumentRecord | type[Exception]]()

        def write(after: DocumentRecord) -> None:
            barrier.wait()
            try:
                registry.documents.commit([change(start, after)])
            except Exception as error:  # noqa: BLE001 - a thread's error has to be shown by the test
                outcomes.append(type(error))
            else:
                outcomes.append(after)

        threads = [threading.Thread(target=write, args=(after,)) for after in candidates]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        winners = [outcome for outcome in outcomes if isinstance(outcome, DocumentRecord)]
        assert len(winners) == 1
        assert outcomes.count(VersionConflict) == 11
        assert registry.documents.read(start.doc_id).record == winners[0]
        assert [item.version for item in registry.log.changes_after(0)] == [1, 2]
