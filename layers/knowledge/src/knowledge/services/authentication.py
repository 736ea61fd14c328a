"""Who a bearer token belongs to."""

import hashlib

from knowledge.domain.access import Principal
from knowledge.errors import NotAuthenticated
from knowledge.ports import PrincipalStore


class Authentication:
    """Knows callers by their token; only hashes are stored."""

    def __init__(self, principals: PrincipalStore) -> None:
        """`principals` finds a caller by hash."""
        self._principals = principals

    def authenticate(self, token: str) -> Principal:
        """The caller. One strongly consistent read, none for a blank token.

        Raises:
            NotAuthenticated: the token is blank, unknown, expired or revoked.
        """
        principal = self._principals.find(token_hash(token)) if token.strip() else None
        if principal is None:
            raise NotAuthenticated("the token is not known")
        return principal


def token_hash(token: str) -> str:
    """SHA-256 of the token, hex: enough for tokens of 256 random bits, which no list of guesses can hold.

    Source: NIST SP 800-63B, 5.1.2.2: secrets of at least 112 bits need no slow hash.
    """
    return hashlib.sha256(token.encode()).hexdigest()
