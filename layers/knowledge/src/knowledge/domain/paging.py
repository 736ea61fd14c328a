"""How many things one answer may hold."""

from typing import Final

from knowledge.errors import InvalidInput

# Source: own choice; the table reads at most a hundred by their keys in one call.
MAX_PAGE: Final = 100


def checked_limit(limit: int, *, most: int = MAX_PAGE) -> int:
    """`limit` itself. Raises InvalidInput unless it is from 1 to `most`."""
    if not 1 <= limit <= most:
        raise InvalidInput(f"limit is {limit}; it must be from 1 to {most}", field="limit")
    return limit
