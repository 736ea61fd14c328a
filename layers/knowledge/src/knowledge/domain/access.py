"""Who is calling and what they may do."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from knowledge.domain.text import normalise
from knowledge.errors import NotPermitted


class Role(StrEnum):
    """What a token may do; each role includes what the ones before it may."""

    READER = "reader"
    WRITER = "writer"
    REVIEWER = "reviewer"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        """Position in the order reader < writer < reviewer < admin."""
        return list(Role).index(self)


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller, as the authorizer found it."""

    name: str
    role: Role

    def require(self, needed: Role, to: str) -> None:
        """Raises NotPermitted, naming the role needed `to` do this, unless this caller's role includes it."""
        if self.role.rank < needed.rank:
            raise NotPermitted(f"the role {needed} is needed to {to}; {self.name!r} has the role {self.role}")


@dataclass(frozen=True, slots=True)
class ReplacedToken:
    """The token that a name had before, and until when it is still good."""

    token_hash: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a name's bearer token; the token itself is kept nowhere."""

    name: str
    role: Role
    token_hash: str
    """SHA-256 of the token, hex."""
    created_at: datetime
    expires_at: datetime | None
    """None when it does not expire."""
    replaced: ReplacedToken | None = None

    @property
    def key(self) -> str:
        """See `name_key`."""
        return name_key(self.name)

    def is_expired(self, at: datetime) -> bool:
        """True from `expires_at` on."""
        return self.expires_at is not None and self.expires_at <= at

    def good_until(self) -> dict[str, datetime | None]:
        """Every hash under which the caller is known, and until when; None is for ever."""
        replaced = {self.replaced.token_hash: self.replaced.until} if self.replaced else {}
        return {**replaced, self.token_hash: self.expires_at}


def name_key(name: str) -> str:
    """The same for names that a reader takes for one: the names of two tokens never have the same."""
    return normalise(name)
