"""The forty kinds of file that people really have, uploaded and dropped."""

import json
from pathlib import Path
from typing import Any

import pytest

from knowledge.domain.document import DocumentRecord, DocumentStatus
from tests.services.world import World

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "frontmatter.jsonl").read_text(encoding="utf-8").splitlines()
]
KEY = "knowledge_base/cases/case.md"


def upload(world: World, content: bytes) -> DocumentRecord:
    return world.upload("cases/case.md", content).record


def drop(world: World, content: bytes) -> DocumentRecord:
    world.drop(KEY, content)
    record = world.converger.converge(KEY)
    assert record is not None
    return record


@pytest.mark.parametrize("arrive", [upload, drop])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_file_is_understood_and_kept_byte_for_byte(case: dict[str, Any], arrive: Any) -> None:
    world, content, expected = World(), case["input"].encode(), case["expected"]
    record = arrive(world, content)
    assert record.status is DocumentStatus.INDEXED
    assert world.objects.read(KEY, max_bytes=1_000_000).body == content
    assert (record.metadata is not None) is expected["frontmatter"]
    world.index.refresh()
    entries = world.index.entries
    assert len(entries) == expected["frontmatter"]
    if expected["frontmatter"] and "keywords" in expected:
        assert list(entries[0].keywords) == expected["keywords"]
        assert entries[0].summary == expected["summary"]
    if expected.get("title"):
        assert record.title == expected["title"]
    assert any(expected.get("warning_mentions", "") in warning for warning in (*record.warnings, "")), record.warnings
    if "warning_mentions" in expected:
        assert any(expected["warning_mentions"] in warning for warning in record.warnings), record.warnings
