"""Bearer tokens: made, rotated and revoked by whoever may write the table; no role of the API may."""

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from knowledge.domain.access import ReplacedToken, Role, Token, name_key
from knowledge.domain.timeline import SYSTEM
from knowledge.errors import Conflict, InvalidInput, NotFound
from knowledge.ports import TokenStore
from knowledge.services.authentication import token_hash

# How long a token is good unless told otherwise. Own choice: who decides what agents read is worth more to a thief, and
# is there to get a new token; an agent that stops at night is mended in the morning.
LIFETIMES = {
    Role.READER: timedelta(days=365),
    Role.WRITER: timedelta(days=365),
    Role.REVIEWER: timedelta(days=90),
    Role.ADMIN: timedelta(days=90),
}
# Bounds against a slip of the keyboard; own choice.
_LONGEST_LIFETIME = timedelta(days=3653)
_LONGEST_GRACE = timedelta(days=30)
# Shown wherever an actor is: letters and digits of any script, and what addresses and host names are made of.
_NAME = re.compile(r"\w(?:[\w .@+-]{0,62}[\w.@+-])?")


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token just made."""

    secret: str
    """The token itself, for the only time."""
    token: Token


def _now() -> datetime:
    return datetime.now(UTC)


class Tokens:
    """The token of each name. Callers are known under what is done here from the next call of the authorizer on."""

    def __init__(self, store: TokenStore, *, now: Callable[[], datetime] = _now) -> None:
        """`now` gives an aware UTC time; whole seconds count."""
        self._store = store
        self._now = now

    def list(self) -> Sequence[Token]:
        """Every token, by name, those among them that have expired not long ago."""
        return list(self._store.all())

    def create(self, name: str, role: Role, lifetime: timedelta | None) -> NewToken:
        """A token for a name that has none; without `lifetime` (up to ten years) it does not expire.

        Raises:
            InvalidInput: the name or the lifetime cannot be used.
            Conflict: the name has a token that is good; or somebody else gave it one at the same moment.
        """
        if not _NAME.fullmatch(name):
            raise InvalidInput("a name is 1 to 64 letters, digits and . @ + - _, with blanks only inside", field="name")
        if name_key(name) == SYSTEM:
            raise InvalidInput(
                f"{SYSTEM!r} is how timelines name what nobody asked for; take another name", field="name"
            )
        if lifetime is not None and not timedelta(0) < lifetime <= _LONGEST_LIFETIME:
            raise InvalidInput("a token is good for a time of up to ten years", field="expires")
        at, before = self._at(), self._store.read(name_key(name))
        if before is not None and not before.is_expired(at):
            raise Conflict(f"{before.name!r} has a token with the role {before.role}: rotate it, or revoke it first")
        return self._give(name, role, at, lifetime, before, replaced=None)

    def rotate(self, name: str, *, grace: timedelta) -> NewToken:
        """A new token for `name`, with the role and the lifetime of the one before, which is good for `grace` yet.

        `grace` is 0 to 30 days and never longer than either token is good anyway. A token that was itself replaced and
        in its grace ends at once.

        Raises:
            InvalidInput: `grace` cannot be used.
            NotFound: the name has no token, or one that has expired.
            Conflict: somebody else changed it at the same moment.
        """
        if not timedelta(0) <= grace <= _LONGEST_GRACE:
            raise InvalidInput("the old token may be good for 0 to 30 days yet", field="grace")
        at, before = self._at(), self._known(name)
        if before.is_expired(at):
            raise NotFound(f"the token of {before.name!r} has expired: make a new one")
        lifetime, until = None, at + grace
        if before.expires_at:
            lifetime = before.expires_at - before.created_at
            until = min(until, before.expires_at, at + lifetime)
        replaced = ReplacedToken(before.token_hash, until) if grace else None
        return self._give(before.name, before.role, at, lifetime, before, replaced)

    def revoke(self, name: str) -> Token:
        """The name has no token any more, nor one in its grace; returns what it had.

        Raises:
            NotFound: the name has no token.
            Conflict: somebody else changed it at the same moment.
        """
        token = self._known(name)
        self._store.remove(token)
        return token

    def state(self, token: Token) -> str:
        """`active` or `expired`, and until when the one that it replaced is good too."""
        at = self._at()
        if token.is_expired(at):
            return "expired"
        if token.replaced and at < token.replaced.until:
            return f"active; the one before until {token.replaced.until:%Y-%m-%d %H:%M} UTC"
        return "active"

    def _at(self) -> datetime:
        return self._now().replace(microsecond=0)

    def _known(self, name: str) -> Token:
        token = self._store.read(name_key(name))
        if token is None:
            raise NotFound(f"{name!r} has no token")
        return token

    def _give(
        self,
        name: str,
        role: Role,
        at: datetime,
        lifetime: timedelta | None,
        before: Token | None,
        replaced: ReplacedToken | None,
    ) -> NewToken:
        # 256 random bits: nobody can guess them. Source: Python documentation, `secrets`, "How many bytes".
        secret = secrets.token_urlsafe(32)
        token = Token(name, role, token_hash(secret), at, at + lifetime if lifetime else None, replaced)
        self._store.put(token, instead_of=before)
        return NewToken(secret, token)
