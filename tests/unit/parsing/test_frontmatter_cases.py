import json
from pathlib import Path
from typing import Any

import pytest

from knowledge.domain.document import Frontmatter
from knowledge.parsing.frontmatter import FrontmatterParser
from tests.unit.parsing.reading import outcome, read, warnings_of

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "cases" / "frontmatter.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_each_kind_of_file_is_read_as_its_case_says(case: dict[str, Any]) -> None:
    expected = {name: value for name, value in case["expected"].items() if name != "warning_mentions"}

    result = outcome(case["input"])

    assert result == {**result, **expected}
    assert case["expected"].get("warning_mentions", "") in warnings_of(case["input"])


@pytest.mark.parametrize(
    "case", [case for case in CASES if "warning_mentions" not in case["expected"]], ids=lambda case: str(case["id"])
)
def test_a_file_with_nothing_wrong_gives_no_warning(case: dict[str, Any]) -> None:
    assert read(case["input"]).warnings == ()


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_the_stored_fields_are_json(case: dict[str, Any]) -> None:
    declared = FrontmatterParser().parse(case["input"]) or Frontmatter(None, (), None, {})

    assert json.loads(json.dumps(dict(declared.fields))) == declared.fields
