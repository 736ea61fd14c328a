"""Memory twin of the stores of tokens and of those who call with them."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from threading import Lock

from knowledge.domain.access import Principal, Token
from knowledge.errors import Conflict


def _now() -> datetime:
    return datetime.now(UTC)


class MemoryTokenStore:
    """TokenStore and PrincipalStore in one, because what the one writes the other finds."""

    def __init__(self, *, now: Callable[[], datetime] = _now) -> None:
        """An empty store."""
        self._lock = Lock()
        self._tokens: dict[str, Token] = {}
        self._now = now

    def find(self, token_hash: str) -> Principal | None:
        """See PrincipalStore."""
        at = self._now()
        for token in self.all():
            for known, until in token.good_until().items():
                if known == token_hash and (until is None or at < until):
                    return Principal(token.name, token.role)
        return None

    def read(self, key: str) -> Token | None:
        """See TokenStore."""
        return self._tokens.get(key)

    def all(self) -> Iterator[Token]:
        """See TokenStore."""
        with self._lock:
            return iter([token for _, token in sorted(self._tokens.items())])

    def put(self, token: Token, *, instead_of: Token | None) -> None:
        """See TokenStore."""
        with self._lock:
            self._require(token.key, instead_of)
            self._tokens[token.key] = token

    def remove(self, token: Token) -> None:
        """See TokenStore."""
        with self._lock:
            self._require(token.key, token)
            del self._tokens[token.key]

    def _require(self, key: str, stored: Token | None) -> None:
        if self._tokens.get(key) != stored:
            raise Conflict("the token was changed meanwhile")
