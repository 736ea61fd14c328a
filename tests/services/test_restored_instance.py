"""An instance that was frozen and goes on later, as Lambda SnapStart restores it: nothing it remembers is taken as new.

In this product services are made with the first request, so after a restore; these tests hold even if a function loaded
its catalog before it was frozen.
"""

from typing import Any

import pytest

from knowledge.adapters.secrets_manager import Secret
from knowledge.services.catalog import KnowledgeIndex
from knowledge.services.compaction import Compaction
from knowledge.services.index_notes import SPACED, IndexNotes, identity
from tests.services.world import ADMIN, READER, World, markdown


class Wall:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize("is_compacted", [False, True], ids=["log still there", "log items removed"])
def test_the_first_lookup_after_a_restore_sees_everything_that_was_committed_meanwhile(is_compacted: bool) -> None:
    world = World()
    compaction = Compaction(world.objects, world.registry, world.base, max_document_bytes=world.max_document_bytes)
    kept = world.upload("a/kept.md", markdown("KEPT_1"))
    gone = world.upload("a/gone.md", markdown("GONE_1"))
    changed = world.upload("a/changed.md", markdown("OLD_1"))
    frozen_index, frozen = world.instance()
    frozen_index.load()

    world.documents.delete_document(ADMIN, gone.record.doc_id)
    world.upload("a/changed.md", markdown("NEW_1"))
    for number in range(40):
        world.upload(f"b/{number}.md", markdown(f"LATER_{number}"))
        if is_compacted and number % 20 == 19:
            compaction.compact()
    # What was committed right after the restored copy is only in the log where that was not compacted.
    assert (world.registry.changes_after(0)[0].version > 4) is is_compacted

    world.reset_counts()
    assert primary(frozen, "NEW_1") == changed.record.file_path
    if not is_compacted:
        assert world.registry.calls["changes_after"] == 1
    assert primary(frozen, "KEPT_1") == kept.record.file_path
    assert primary(frozen, "LATER_39") == "knowledge_base/b/39.md"
    assert primary(frozen, "GONE_1") is None
    assert primary(frozen, "OLD_1") is None


def primary(lookup: Any, query: str) -> str | None:
    answer = lookup.lookup_knowledge(READER, query)
    assert not answer.degraded
    return answer.primary.source if answer.primary else None


@pytest.mark.parametrize("passed_s", [3600.0, -3600.0], ids=["an hour later", "on a clock that was set back"])
def test_a_catalog_that_may_be_stale_for_a_minute_is_read_anew_after_a_restore(passed_s: float) -> None:
    world, wall = World(), Wall()
    index = KnowledgeIndex(
        world.objects,
        world.registry,
        world.base,
        max_document_bytes=world.max_document_bytes,
        max_staleness_s=60.0,
        clock=wall,
    )
    index.load()
    world.upload("a/new.md", markdown("NEW_1"))
    index.refresh()
    assert not index.match("NEW_1")
    wall.now_s += passed_s
    index.refresh()
    assert [match.entry.file_path for match in index.match("NEW_1")] == ["knowledge_base/a/new.md"]


@pytest.mark.parametrize("passed_s", [3600.0, -3600.0])
def test_a_load_that_failed_before_is_tried_at_once_after_a_restore(passed_s: float) -> None:
    world, wall = World(), Wall()
    index = KnowledgeIndex(
        world.objects, world.registry, world.base, max_document_bytes=world.max_document_bytes, clock=wall
    )
    world.registry.broken.add("head")
    assert not index.wait_until_loaded(5.0)
    world.registry.broken.clear()
    assert not index.wait_until_loaded(5.0)
    wall.now_s += passed_s
    assert index.wait_until_loaded(5.0)


@pytest.mark.parametrize("passed_s", [3600.0, -3600.0])
def test_a_secret_and_the_notes_of_the_index_are_read_anew_after_a_restore(passed_s: float) -> None:
    wall, secrets = Wall(), Secrets("first")
    secret = Secret(secrets, "arn:aws:secretsmanager:eu-central-1:1:secret:key", clock=wall)
    world = World()
    notes = IndexNotes(world.vectors, world.embedder, wall)
    assert secret() == "first"
    default = notes.answer_threshold(SPACED)
    secrets.text = "second"
    world.vectors.note({**identity(world.embedder), "calibration": {"answer_thresholds": {SPACED: default / 2}}})
    assert (secret(), notes.answer_threshold(SPACED)) == ("first", default)
    wall.now_s += passed_s
    assert secret() == "second"
    assert notes.answer_threshold(SPACED) == pytest.approx(default / 2)


class Secrets:
    """A secret that somebody rotates."""

    def __init__(self, text: str) -> None:
        self.text = text

    def get_secret_value(self, *, SecretId: str) -> dict[str, str]:
        return {"SecretString": self.text}
