"""The settings that people change while everything runs. Source: specification K7."""

from dataclasses import dataclass
from enum import StrEnum

from knowledge.errors import InvalidInput

# Own choice: a conversation of more messages than this is none.
_MOST_MESSAGES = 1000


class TriggerMode(StrEnum):
    """When lessons are extracted from a conversation."""

    ON_COMPLETE = "on_complete"
    MANUAL_ONLY = "manual_only"


@dataclass(frozen=True, slots=True)
class KnowledgeConfig:
    """One version of the settings."""

    auto_extract: bool = True
    """Lessons are extracted from conversations that end; without it nothing is ever extracted."""
    trigger_mode: TriggerMode = TriggerMode.ON_COMPLETE
    """`manual_only`: only when somebody asks for it."""
    min_messages: int = 4
    """Conversations with fewer messages, 1 to 1,000, teach nothing."""
    auto_inject: bool = True
    """Agents get a context; without it the context is empty."""
    vector_enabled: bool = True
    """Items are searched for by meaning too."""

    def __post_init__(self) -> None:
        """Raises InvalidInput for a number out of bounds."""
        if not 1 <= self.min_messages <= _MOST_MESSAGES:
            message = f"min_messages is {self.min_messages}; it must be from 1 to {_MOST_MESSAGES}"
            raise InvalidInput(message, field="min_messages")

    def wants_extraction(self, *, message_count: int, asked_for: bool) -> bool:
        """True when a conversation of so many messages teaches something, `asked_for` by somebody or just finished."""
        is_wanted = asked_for or (self.auto_extract and self.trigger_mode is TriggerMode.ON_COMPLETE)
        return is_wanted and message_count >= self.min_messages


@dataclass(frozen=True, slots=True)
class VersionedConfig:
    """The settings in force and the number of their version; 0 for the defaults that nobody has changed yet."""

    config: KnowledgeConfig
    version: int = 0
