"""Both implementations of SHA-256 give the same digest."""

import hashlib
import subprocess
import sys

import pytest

from knowledge.domain import digest


@pytest.mark.parametrize("size", [0, 1, 55, 64, 1000, digest._LARGE_BYTES - 1, digest._LARGE_BYTES])
def test_it_is_sha_256_whatever_the_size(size: int) -> None:
    data = bytes(index % 251 for index in range(1000)) * (size // 1000 + 1)
    assert digest.sha256(data[:size]) == hashlib.sha256(data[:size]).digest()


def test_a_python_without_its_own_uses_openssl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "_BUILT_IN", ("no_such_module",))
    assert digest.sha256(b"x") == hashlib.sha256(b"x").digest()


def test_a_small_text_loads_no_openssl() -> None:
    program = "import sys; from knowledge.domain.digest import sha256; sha256(b'x'); print('_hashlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"
