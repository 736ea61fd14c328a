"""Which keywords are codes: what a program prints so that people can look it up."""

import functools
import re

# Letters and then at least three digits, with at most one mark between them (`c2065`, `pay-2003`, `ora-00001`), a name
# after `err_` (`err_timeout`), or a hexadecimal number of at least four digits (`0x80070005`). Source: own choice; what
# compilers, databases and systems print looks like one of them, and `utf8`, `int32`, `http2` and `size_t` like none.
_CODE = re.compile(r"[^\W\d_]+[-_]?\d{3,}|err_\w+|0x[0-9a-f]{4,}")


# Asked for every keyword inside a query.
@functools.lru_cache(maxsize=1024)
def is_code(keyword: str) -> bool:
    """True when `keyword` (normalised) is a code: in a message with it, the message is about nothing else."""
    return _CODE.fullmatch(keyword) is not None
