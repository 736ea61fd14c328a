"""What every CatalogLog does with snapshots, and with what they make useless."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from knowledge.adapters.dynamodb_catalog_log import DynamoCatalogLog
from knowledge.adapters.dynamodb_registry import DynamoDocumentRegistry
from knowledge.errors import Conflict
from knowledge.ports import CatalogHead, SnapshotPointer
from tests.contract.builders import Registry, change, record

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def pointer(version: int, name: str = "a") -> SnapshotPointer:
    key = f"_index/catalog/{version:012d}-{name}.snapshot"
    return SnapshotPointer(
        version, key, "0f" * 32, 10**9 + version, datetime(2026, 4, 14, 8, 30, 0, 123456, tzinfo=UTC)
    )


def commit(registry: Registry, count: int, *, folder: str = "kb") -> None:
    for number in range(count):
        registry.documents.commit([change(None, record(f"{folder}/{number}.md"))])


def versions(registry: Registry, after: int = 0) -> list[int]:
    return [item.version for item in registry.log.changes_after(after)]


class TestSnapshots:
    def test_the_head_has_none_until_one_is_published(self, registry: Registry) -> None:
        assert registry.log.head() == CatalogHead(0, ())
        commit(registry, 2)
        assert registry.log.head() == CatalogHead(2, ())
        registry.log.publish([pointer(2)], instead_of=[])
        assert registry.log.head() == CatalogHead(2, (pointer(2),))
        registry.log.publish([pointer(2, "b"), pointer(2)], instead_of=[pointer(2)])
        assert registry.log.head() == CatalogHead(2, (pointer(2, "b"), pointer(2)))

    def test_commits_leave_them_alone_and_they_leave_the_version_alone(self, registry: Registry) -> None:
        commit(registry, 3)
        registry.log.publish([pointer(3), pointer(1)], instead_of=[])
        commit(registry, 2, folder="later")
        assert registry.log.head() == CatalogHead(5, (pointer(3), pointer(1)))
        assert versions(registry) == [1, 2, 3, 4, 5]

    @pytest.mark.parametrize("seen", [[], [pointer(1, "other")], [pointer(2, "other"), pointer(1)]])
    def test_who_saw_other_ones_loses_and_changes_nothing_I08(
        self, registry: Registry, seen: list[SnapshotPointer]
    ) -> None:
        commit(registry, 2)
        registry.log.publish([pointer(2), pointer(1)], instead_of=[])
        with pytest.raises(Conflict):
            registry.log.publish([pointer(2, "late")], instead_of=seen)
        assert registry.log.head() == CatalogHead(2, (pointer(2), pointer(1)))

    def test_nothing_can_be_published_before_anything_was_committed(self, registry: Registry) -> None:
        with pytest.raises(Conflict):
            registry.log.publish([pointer(0)], instead_of=[])
        commit(registry, 1)
        assert registry.log.head() == CatalogHead(1, ())

    def test_of_eight_compactors_one_publishes_while_commits_go_on_I08(self, registry: Registry) -> None:
        commit(registry, 1)
        barrier, outcomes = threading.Barrier(12), list[str]()

        def run(work: Callable[[], None], name: str) -> None:
            barrier.wait()
            try:
                work()
            except Conflict:
                outcomes.append("lost")
            else:
                outcomes.append(name)

        def publish(number: int) -> None:
            registry.log.publish([pointer(1, f"{number}")], instead_of=[])

        threads = [
            threading.Thread(target=run, args=(lambda n=number: publish(n), f"{number}")) for number in range(8)
        ] + [
            threading.Thread(target=run, args=(lambda n=number: commit(registry, 3, folder=f"t{n}"), "committed"))
            for number in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes)[1:] == ["committed"] * 4 + ["lost"] * 7
        head = registry.log.head()
        assert head == CatalogHead(13, (pointer(1, sorted(outcomes)[0]),))
        assert versions(registry) == list(range(1, 14))


class TestForgetting:
    def test_the_oldest_entries_go_and_the_named_one_stays(self, registry: Registry) -> None:
        commit(registry, 6)
        assert registry.log.forget_before(5, limit=3) == 3
        assert versions(registry) == [4, 5, 6]
        assert registry.log.forget_before(5, limit=3) == 1
        assert registry.log.forget_before(5, limit=3) == 0
        assert versions(registry) == [5, 6]
        assert versions(registry, after=2) == [5, 6], "who is at 2 sees that it does not go on there"
        assert registry.log.head().version == 6

    @pytest.mark.parametrize("version", [-1, 0, 1])
    def test_before_the_first_entry_there_is_nothing_to_remove(self, registry: Registry, version: int) -> None:
        commit(registry, 2)
        assert registry.log.forget_before(version, limit=10) == 0
        assert versions(registry) == [1, 2]

    def test_more_than_one_call_takes_are_removed(self, registry: Registry) -> None:
        commit(registry, 60)
        assert registry.log.forget_before(56, limit=1000) == 55
        assert versions(registry) == [56, 57, 58, 59, 60]

    def test_the_log_goes_on_behind_what_was_removed(self, registry: Registry) -> None:
        commit(registry, 3)
        registry.log.forget_before(3, limit=10)
        commit(registry, 2, folder="later")
        assert versions(registry) == [3, 4, 5]


class TestUnreadable:
    """In DynamoDB only: the memory twin holds values."""

    def test_one_bad_item_is_a_change_that_says_so_and_the_others_are_read_I08(
        self, dynamodb_client: "DynamoDBClient", table: str
    ) -> None:
        both = Registry(DynamoDocumentRegistry(dynamodb_client, table), DynamoCatalogLog(dynamodb_client, table))
        commit(both, 3)
        key = {"pk": {"S": "CATALOG"}, "sk": {"S": "LOG#000000000002"}}
        dynamodb_client.put_item(TableName=table, Item={**key, "version": {"S": "two"}})
        for other in ("LOG#", "LOG#x", "LOG#000000000004x"):
            dynamodb_client.put_item(TableName=table, Item={"pk": {"S": "CATALOG"}, "sk": {"S": other}})
        changes = both.log.changes_after(0)
        assert [item.version for item in changes] == [1, 2, 3]
        assert [list(item.entries) for item in changes] == [["kb/0.md"], [], ["kb/2.md"]]
        assert [item.problem is None for item in changes] == [True, False, True]
        assert "LOG#000000000002" in (changes[1].problem or "")

    def test_pointers_that_cannot_be_read_are_none_and_stop_neither_readers_nor_commits(
        self, dynamodb_client: "DynamoDBClient", table: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        both = Registry(DynamoDocumentRegistry(dynamodb_client, table), DynamoCatalogLog(dynamodb_client, table))
        commit(both, 1)
        dynamodb_client.update_item(
            TableName=table,
            Key={"pk": {"S": "CATALOG"}, "sk": {"S": "HEAD"}},
            UpdateExpression="SET snapshots = :broken",
            ExpressionAttributeValues={":broken": {"L": [{"M": {"key": {"S": "x"}}}]}},
        )
        assert both.log.head() == CatalogHead(1, ())
        commit(both, 1, folder="later")
        assert both.log.head() == CatalogHead(2, ())
        assert {record.levelname for record in caplog.records} == {"ERROR"}
