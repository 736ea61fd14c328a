import logging

import pytest

from knowledge.domain.document import KnowledgeEntry
from knowledge.errors import DependencyUnavailable
from knowledge.ports import CatalogChange
from tests.services.world import World, markdown


@pytest.fixture
def world() -> World:
    return World()


def paths(world: World) -> list[str]:
    return [entry.file_path for entry in world.index.entries]


def test_a_scan_takes_every_markdown_file_with_frontmatter_at_any_depth_D16(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world.drop("knowledge_base/b.md", markdown("k1"))
    world.drop("knowledge_base/a/deep/er/c.md", markdown("k2"))
    world.drop("knowledge_base/部署 指南+100%.md", markdown("k3"))
    world.drop("knowledge_base/plain.md", "no frontmatter")
    world.drop("knowledge_base/notes.txt", markdown("k4"))
    world.drop("knowledge_base/team/", b"")
    world.drop("_index/x.md", markdown("k5"))
    world.index.load()
    assert paths(world) == [
        "knowledge_base/a/deep/er/c.md",
        "knowledge_base/b.md",
        "knowledge_base/部署 指南+100%.md",
    ]
    (loaded,) = [record for record in caplog.records if record.message == "catalog_loaded"]
    assert loaded.levelno == logging.INFO
    assert vars(loaded)["document_count"] == 3


def test_one_broken_file_does_not_stop_the_scan_N5(world: World) -> None:
    world.drop("knowledge_base/a.md", b"\xff\xfe")
    world.drop("knowledge_base/b.md", "---\ntitle: [unclosed\n---\n")
    world.drop("knowledge_base/c.md", markdown("k"))
    world.index.load()
    assert paths(world) == ["knowledge_base/c.md"]


def test_a_block_longer_than_the_first_read_is_read_whole(world: World) -> None:
    filler = "\n".join(f"note{n}: {'支' * 100}" for n in range(100))
    world.drop("knowledge_base/a.md", f"---\ntitle: A\n{filler}\nkeywords: [last]\n---\nbody")
    world.index.load()
    assert [entry.keywords for entry in world.index.entries] == [("last",)]


def test_a_long_body_costs_one_small_read(world: World) -> None:
    world.drop("knowledge_base/a.md", markdown("k", body="text " * 50_000))
    world.reset_counts()
    world.index.load()
    assert world.objects.calls == {"list": 1, "read": 1}


def test_what_is_committed_during_a_scan_is_not_missed(world: World) -> None:
    world.drop("knowledge_base/a.md", markdown("k"))
    world.objects.before["list"] = lambda: world.upload("late/b.md", markdown("k2"))
    world.index.load()
    assert paths(world) == ["knowledge_base/a.md", "knowledge_base/late/b.md"]
    record = world.registry.read
    assert record
    doc_id = world.upload("late/c.md", markdown("k3")).record.doc_id
    world.objects.before["read"] = lambda: _delete(world, doc_id)
    world.index.load()
    assert paths(world) == ["knowledge_base/a.md", "knowledge_base/late/b.md"]


def _delete(world: World, doc_id: object) -> None:
    from tests.services.world import ADMIN

    world.documents.delete_document(ADMIN, doc_id)  # type: ignore[arg-type]


def test_a_gap_in_the_log_makes_the_index_load_anew(world: World) -> None:
    world.upload("a/a.md", markdown("k1"))
    world.index.load()
    world.upload("a/b.md", markdown("k2"))
    world.upload("a/c.md", markdown("k3"))
    world.registry._adapter._log[1:2] = [CatalogChange(0, {"gone": None})]
    world.index.refresh()
    assert len(paths(world)) == 3


def test_a_failed_load_is_logged_and_tried_again(world: World) -> None:
    world.drop("knowledge_base/a.md", markdown("k"))
    now = [0.0]
    world.index._clock = lambda: now[0]
    world.objects.broken.add("list")
    assert not world.index.wait_until_loaded(5)
    world.objects.broken.clear()
    assert not world.index.wait_until_loaded(5), "it waits before it asks again"
    now[0] = 10.0
    assert world.index.wait_until_loaded(5)


def test_refresh_leaves_the_index_as_it_was_when_the_log_is_down(world: World) -> None:
    world.upload("a/a.md", markdown("k1"))
    world.index.load()
    world.registry.broken.add("changes_after")
    with pytest.raises(DependencyUnavailable):
        world.index.refresh()
    assert len(paths(world)) == 1


def test_staleness_may_be_allowed_and_then_saves_the_read(world: World) -> None:
    now = [0.0]
    world.index._clock = lambda: now[0]
    world.index._max_staleness_s = 10.0
    world.index.load()
    world.upload("a/a.md", markdown("k1"))
    world.reset_counts()
    now[0] = 9.0
    world.index.refresh()
    assert world.registry.calls == {}
    now[0] = 11.0
    world.index.refresh()
    assert len(paths(world)) == 1


def test_add_puts_an_entry_in_place_of_the_earlier_one(world: World) -> None:
    world.index.add(KnowledgeEntry("a.md", "A", ("one",)))
    world.index.add(KnowledgeEntry("a.md", "A", ("two",)))
    assert world.index.exact_match("one") == []
    assert [entry.file_path for entry in world.index.exact_match("two")] == ["a.md"]


@pytest.mark.parametrize(("length", "expected"), [(1999, 1999), (2000, 2000), (2001, 2003)])
def test_read_document_gives_2000_characters_and_an_ellipsis_D12(world: World, length: int, expected: int) -> None:
    world.drop("knowledge_base/a.md", "支" * length)
    text = world.index.read_document("knowledge_base/a.md", 2000)
    assert text is not None
    assert len(text) == expected
    assert text.endswith("...") is (expected == 2003)


def test_a_missing_file_is_logged_as_an_error_and_none_D12(world: World, caplog: pytest.LogCaptureFixture) -> None:
    assert world.index.read_document("knowledge_base/none.md", 2000) is None
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_who_scans_while_a_file_is_away_for_a_moment_without_an_event_knows_it_all_the_same_B10(world: World) -> None:
    key = "knowledge_base/api/errors.md"
    world.upload("api/errors.md", markdown("ERR_77"))
    world.objects.delete(key)
    world.index.load()
    world.objects.delete_version(key, world.objects.version_ids(key)[-1])
    world.converger.converge(key)
    assert world.ask("ERR_77").primary is not None


def test_who_scans_a_version_that_is_taken_back_does_not_answer_by_its_keywords(world: World) -> None:
    key = "knowledge_base/api/errors.md"
    world.upload("api/errors.md", markdown("ERR_77"))
    world.drop(key, markdown("ERR_78"))
    world.index.load()
    world.objects.delete_version(key, world.objects.version_ids(key)[-1])
    world.converger.converge(key)
    assert world.ask("ERR_77").primary is not None
    assert world.ask("ERR_78").primary is None
