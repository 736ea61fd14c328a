"""SHA-256, without loading OpenSSL where the data is small."""

import importlib
from collections.abc import Callable
from typing import Any

# Python's own SHA-256, under the names that it has before and from 3.12 on; no public module gives it without OpenSSL.
# Source: CPython, Lib/random.py, which takes SHA-512 in the same way and for the same reason.
_BUILT_IN = ("_sha2", "_sha256")
# From here on OpenSSL, which takes a third of the time, is worth its four megabytes: Python's own takes 12 ms for as
# many bytes. Source: measured.
_LARGE_BYTES = 4 * 1024 * 1024


def sha256(data: bytes) -> bytes:
    """The digest of `data`, 32 bytes: the same whichever implementation makes it."""
    make: Callable[[bytes], Any] = _from_openssl() if len(data) >= _LARGE_BYTES else _built_in()
    digest: bytes = make(data).digest()
    return digest


def _built_in() -> Callable[[bytes], Any]:
    for name in _BUILT_IN:
        try:
            make: Callable[[bytes], Any] = importlib.import_module(name).sha256
        except ImportError:  # a Python built without it, as one that may use approved implementations only
            continue
        return make
    return _from_openssl()


def _from_openssl() -> Callable[[bytes], Any]:
    import hashlib

    return hashlib.sha256
