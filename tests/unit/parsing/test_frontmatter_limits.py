import time

import pytest

from knowledge.parsing.frontmatter import MAX_PROBLEMS, FrontmatterParser
from knowledge.parsing.yaml_block import MAX_BLOCK_BYTES
from knowledge.parsing.yaml_values import MAX_DEPTH
from tests.unit.parsing.reading import frontmatter_of, read, warnings_of


@pytest.mark.parametrize(
    ("block", "cause"),
    [
        ("\n".join(f"k{n}: &k{n} [{','.join([f'*k{n - 1}' if n else 'x'] * 9)}]" for n in range(9)), "alias"),
        ("a: &a [*a]", "alias"),
        ("a: &a {b: *a}", "alias"),
        ("a: &a " + "x" * 30_000 + "\nb: [" + "*a, " * 5000 + "]", "alias"),
        ("x: " + "[" * 3000, "deep"),
        ("[" * 3000 + "]" * 3000, "deep"),
        ("x: " + "{a: " * 3000, "deep"),
        ("\n".join(f"{' ' * n}k:" for n in range(60)), "deep"),
        ("k0: &k0 [x]\n" + "\n".join(f"k{n}: &k{n} [*k{n - 1}]" for n in range(1, 60)), "deep"),
        ("title: A\n" + "k: v\n" * (MAX_BLOCK_BYTES // 5), "bytes"),
    ],
    ids=lambda value: value[:12],
)
def test_bombs_are_refused_at_once_and_the_next_file_is_read_A09(block: str, cause: str) -> None:
    content = f"---\n{block}\n---\nbody"
    started = time.monotonic()

    assert read(content).frontmatter is None
    assert cause in warnings_of(content)
    assert time.monotonic() - started < 1
    assert frontmatter_of("---\ntitle: next\n---\n").title == "next"


def test_a_few_honest_aliases_work_A09() -> None:
    content = "---\ncommon: &common [vpn, 网络]\nkeywords: *common\ntags: *common\n---\nbody"

    assert frontmatter_of(content).keywords == ("vpn", "网络")


def test_the_deepest_allowed_block_is_read_A09() -> None:
    depth = MAX_DEPTH - 1

    assert "x" in frontmatter_of(f"---\nx: {'[' * depth}{']' * depth}\n---\n").fields


def test_thousands_of_problems_are_twenty_warnings_and_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    content = "---\n" + "key: value\n" * 3000 + "title: [a]\n---\nbody"

    warnings = read(content).warnings

    assert len(warnings) == len(caplog.records) == MAX_PROBLEMS == 20
    assert warnings[0].startswith("Frontmatter, line 3, column 1: the key 'key'")
    assert warnings[-1] == "Frontmatter, line 22, column 1: 2981 more problems from here on."


@pytest.mark.parametrize(("repeats", "last"), [(20, "the last one counts."), (21, "2 more problems from here on.")])
def test_only_more_than_twenty_problems_are_counted_instead_of_named(repeats: int, last: str) -> None:
    warnings = read("---\nkey: value\n" + "key: value\n" * repeats + "---\n").warnings

    assert len(warnings) == MAX_PROBLEMS
    assert warnings[-1].endswith(last)


@pytest.mark.parametrize("content", ["---\ntitle: [a]\n---\n", "---\ntitle: a: b\n---\n", "---\ntitle: a\n"])
def test_a_parser_that_only_looks_logs_nothing_and_reads_the_same(
    content: str, caplog: pytest.LogCaptureFixture
) -> None:
    parsed = FrontmatterParser(log_problems=False).read(content, path="kb/a.md")

    assert caplog.records == []
    assert parsed.warnings
    assert parsed == read(content)
