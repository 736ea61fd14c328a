"""What every PrincipalStore does."""

import hashlib
from collections.abc import Callable

import pytest

from knowledge.domain.access import Principal, Role
from knowledge.ports import PrincipalStore

NewPrincipals = Callable[[str, Principal], PrincipalStore]


class TestPrincipalStore:
    @pytest.mark.parametrize("role", list(Role))
    def test_a_known_token_has_its_principal(self, new_principals: NewPrincipals, role: Role) -> None:
        principal = Principal("王芳", role)
        principals = new_principals("secret", principal)
        assert principals.find(hashlib.sha256(b"secret").hexdigest()) == principal

    @pytest.mark.parametrize("token_hash", ["", "secret", hashlib.sha256(b"other").hexdigest()])
    def test_whatever_else_has_none(self, new_principals: NewPrincipals, token_hash: str) -> None:
        principals = new_principals("secret", Principal("agent", Role.READER))
        assert principals.find(token_hash) is None
