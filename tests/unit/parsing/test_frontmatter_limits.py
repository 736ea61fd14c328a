import time

import pytest

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
