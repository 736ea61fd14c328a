"""What a person is shown of a base, and what counts as wrong. The deployed stack is in tests/e2e/test_reconcile.py."""

from datetime import UTC, datetime, timedelta

import pytest

from knowledge.domain.item import ItemStatus
from knowledge.domain.timeline import status_changed
from knowledge.errors import DependencyUnavailable
from knowledge.ports import CatalogHead, SnapshotPointer
from knowledge.services.reconcile_progress import Report
from tests.services.items_world import ItemsWorld
from tests.services.world import World, markdown
from tools import doctor


def looked_at(world: World, *, fix: bool = False) -> Report:
    return doctor.followed(world.reconcile(later=timedelta(hours=2)).run(repair=fix), total=1)


def shown(world: World, capsys: pytest.CaptureFixture[str], *, fix: bool = False) -> tuple[str, int]:
    """What is printed, and the exit code."""
    report = looked_at(world, fix=fix)
    findings = [doctor.documents(report), doctor.items(report), doctor.vectors(report)]
    code = doctor.told(findings, report, is_fixing=fix)
    return capsys.readouterr().out, code


def test_a_base_whose_stores_agree_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    world.upload("kb/a.md", markdown("A"))
    output, code = shown(world, capsys)
    assert code == 0
    assert "1 INDEXED" in output
    assert "1 documents were compared: no differences." in output


def test_a_difference_is_told_with_its_path_changes_nothing_and_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    path = "knowledge_base/文档/" + "long " * 40 + "[red]name[/red] (v2).md"
    world.drop(path, markdown("A"))
    for _ in range(2):
        output, code = shown(world, capsys)
        assert code == 1
        assert path in output
        assert "1 differences, 0 repaired" in output
        assert "make doctor FIX=1" in output
    output, code = shown(world, capsys, fix=True)
    assert code == 0
    assert "1 differences, 1 repaired" in output
    assert shown(world, capsys)[1] == 0


def test_a_document_that_cannot_be_repaired_stays_wrong_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    world.drop("knowledge_base/latin.md", b"caf\xe9")
    output, code = shown(world, capsys, fix=True)
    assert code == 1
    assert "1 FAILED" in output
    assert "not UTF-8" in output


def test_an_item_whose_document_was_removed_or_left_undone_is_wrong_until_it_is_repaired(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = ItemsWorld()
    removed, undone = world.published(), world.published()
    world.objects.delete(removed.file_path(world.base))
    now = world.now() - timedelta(minutes=5)
    world.items.write(
        undone, archived := undone.next(by="a", at=now, status=ItemStatus.ARCHIVED), status_changed(undone, archived)
    )
    output, code = shown(world, capsys)
    assert code == 1
    assert "1 wait for their documents" in output
    assert f"{removed.file_path(world.base)}" in output
    assert "2 item" in output
    assert shown(world, capsys, fix=True)[1] == 0
    output, code = shown(world, capsys)
    assert code == 0
    assert "items         well  all have" in output


def test_an_item_that_is_not_embedded_yet_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    world = ItemsWorld()
    world.embedder.broken.add("embed_passages")
    world.published()
    assert "1 published ones are not found by meaning yet" in shown(world, capsys)[0]


def test_a_vector_store_that_does_not_answer_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    world.vectors.broken.add("generations")
    output, code = shown(world, capsys)
    assert code == 1
    assert "injected" in output


def test_a_part_that_does_not_answer_is_wrong_and_keeps_no_other_from_being_looked_at() -> None:
    def fail() -> tuple[bool, str]:
        raise DependencyUnavailable("S3", "did not answer")

    assert doctor.examined("bucket", fail) == doctor.Finding("bucket", is_well=False, text="S3: did not answer")


def test_the_catalog_tells_how_far_it_is_from_its_snapshot() -> None:
    assert doctor.catalog(CatalogHead(7)) == (True, "version 7, no snapshot yet")
    at = datetime(2026, 11, 30, 7, 5, tzinfo=UTC)
    head = CatalogHead(120, (SnapshotPointer(100, "_index/catalog/x", "0" * 64, 10, at),))
    assert doctor.catalog(head) == (True, "version 120; snapshot of 2026-11-30 07:05 UTC, 20 changes after it")
