"""The answer of a lookup and the rule that routes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from knowledge.domain.text import is_encodable, normalise
from knowledge.errors import InvalidQuery

# A query is a question or an error message with its context. The model reads 512 tokens; longer text only costs time.
MAX_QUERY_CHARS = 4000
# Source: specification D12: the first 2000 characters, then `...`.
MAX_CONTENT_CHARS = 2000


class Confidence(StrEnum):
    """How certain the exact tier is of its primary."""

    HIGH = "high"
    LOW = "low"


class Tier(StrEnum):
    """A tier of the lookup, by the name answers use."""

    EXACT = "exact_L0"
    SEMANTIC = "semantic_L1"


@dataclass(frozen=True, slots=True)
class TierFailure:
    """Why a tier gave no answer, or one that may be old."""

    tier: Tier
    cause: str
    """One of few: the dependency that failed, an error code, `timeout` or `not_loaded`."""
    reason: str
    """In words, for whoever has to remove it."""


@dataclass(frozen=True, slots=True)
class Primary:
    """The exact tier's answer."""

    content: str
    source: str
    confidence: Confidence
    available_sections: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Supplement:
    """The semantic tier's answer."""

    content: str
    source: str


@dataclass(frozen=True, slots=True)
class LookupAnswer:
    """What `lookup_knowledge` answers. `found` is true when there is a primary or a supplement."""

    primary: Primary | None
    supplement: Supplement | None
    failures: tuple[TierFailure, ...] = ()
    section_title: str | None = None
    """The heading whose section `primary.content` is, when one was asked for and exists."""
    explanation: Mapping[str, object] | None = field(default=None, compare=False)

    @property
    def found(self) -> bool:
        """True when either tier has an answer."""
        return self.primary is not None or self.supplement is not None

    @property
    def degraded(self) -> tuple[Tier, ...]:
        """The tiers that failed, each once."""
        return tuple(dict.fromkeys(failure.tier for failure in self.failures))


def check_query(query: str) -> None:
    """Raises InvalidQuery for one that is blank, longer than 4,000 characters, or cannot be UTF-8."""
    if not is_encodable(query):
        raise InvalidQuery("the query holds half a character and cannot be UTF-8", field="query")
    if len(query) > MAX_QUERY_CHARS:
        message = f"the query is {len(query)} characters long; at most {MAX_QUERY_CHARS} are accepted"
        raise InvalidQuery(message, field="query")
    if not normalise(query):
        raise InvalidQuery("the query is empty", field="query")


def excerpt(text: str, max_chars: int = MAX_CONTENT_CHARS) -> str:
    """`text` whole when it has at most `max_chars` code points, else the first `max_chars` and `...`."""
    return text if len(text) <= max_chars else text[:max_chars] + "..."
