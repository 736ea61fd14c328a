"""Who may call, by the hash of a token. No port ever sees a token."""

from collections.abc import Iterator
from typing import Protocol

from knowledge.domain.access import Principal, Token


class PrincipalStore(Protocol):
    """Knows callers by the hash of their token."""

    def find(self, token_hash: str) -> Principal | None:
        """The principal whose token has this SHA-256 (hex) and is still good, or None: one strongly consistent call."""


class TokenStore(Protocol):
    """The tokens there are, one for each name; what is written here a PrincipalStore finds from then on."""

    def read(self, key: str) -> Token | None:
        """The token whose name has this `name_key`, or None; strongly consistent; one call."""

    def all(self) -> Iterator[Token]:
        """Every token, by `name_key`; strongly consistent; a call for each megabyte.

        Expired ones are among them for a while: they go by themselves, days later.
        """

    def put(self, token: Token, *, instead_of: Token | None) -> None:
        """`token` is what is known of its name; hashes that only `instead_of` has are known no more. One transaction.

        Raises Conflict when what is stored of that name is not `instead_of`.
        """

    def remove(self, token: Token) -> None:
        """Its name and hashes are known no more. One transaction. Raises Conflict when something else is stored."""
