import math

import pytest

from knowledge.domain.age import is_fresh


@pytest.mark.parametrize(
    ("read_at", "expected"),
    [
        (1000.0, True),
        (990.1, True),
        (990.0, False),
        (1000.1, False),
        (-math.inf, False),
    ],
    ids=["now", "just young enough", "too old", "from the future", "never"],
)
def test_a_copy_is_fresh_while_its_age_is_known_and_small(read_at: float, expected: bool) -> None:
    assert is_fresh(read_at, 1000.0, 10.0) is expected


def test_no_copy_is_fresh_when_none_may_be_used_unasked() -> None:
    assert not is_fresh(1000.0, 1000.0, 0.0)
