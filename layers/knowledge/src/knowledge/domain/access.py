"""Who is calling and what they may do."""

from dataclasses import dataclass
from enum import StrEnum

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
