"""What the tests of the functions share."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tests.entrypoints.functions import moto_stack


@pytest.fixture
def aws() -> Iterator[SimpleNamespace]:
    """Bucket and table as the template has them, and the environment of a function."""
    with moto_stack() as stack:
        yield stack
