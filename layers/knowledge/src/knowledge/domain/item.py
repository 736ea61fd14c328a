"""What a knowledge item is: a small reusable lesson that agents may read once a person has published it."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType
from uuid import uuid4

from knowledge.domain.document import EXTENSION, KnowledgeBasePath
from knowledge.domain.text import is_encodable, normalise
from knowledge.errors import InvalidInput

ItemId = NewType("ItemId", str)

# Own choices. A title is one line of a list; a lesson of more than 20,000 characters is a document; an item with its
# timeline entry, in which a change of the content stands twice, stays far under the 400 KB of a DynamoDB item.
MAX_TITLE_CHARS = 200
MAX_CONTENT_CHARS = 20_000
MAX_TAGS = 20
MAX_TAG_CHARS = 64
MAX_SOURCE_CHARS = 200

_ID = re.compile(r"[0-9a-f]{32}")
# Source: specification K1.
_SOURCE = re.compile(r"manual|(?:conv|mcp):[\x21-\x7e]+")

# Where a keyword of a document would be parted. Source: parsing/declared.
_PARTS_A_KEYWORD = frozenset(",，、")

# Control characters, line and paragraph separators, halves of surrogate pairs. Source: Unicode, general categories.
_NOT_IN_A_LINE = frozenset({"Cc", "Zl", "Zp", "Cs"})


class KnowledgeKind(StrEnum):
    """The seven kinds. Source: specification K1."""

    PITFALL = "pitfall"
    REVIEW_RULE = "review_rule"
    PROMPT_TEMPLATE = "prompt_template"
    ARCHITECTURE_PATTERN = "architecture_pattern"
    DIAGNOSIS = "diagnosis"
    DEPLOYMENT_NOTE = "deployment_note"
    WORKFLOW_OPTIMIZATION = "workflow_optimization"


class ItemStatus(StrEnum):
    """Where an item is in its life; only what is published is ever shown to an agent."""

    CANDIDATE = "candidate"
    PENDING_REVIEW = "pending_review"
    PUBLISHED = "published"
    ARCHIVED = "archived"


class EmbeddingState(StrEnum):
    """How far a published item is on its way into the semantic tier."""

    PENDING = "pending"
    READY = "ready"
    FAILED = "failed"
    """The last attempt failed; there is a next one."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """The embedding of a published item."""

    state: EmbeddingState
    attempts: int = 0
    """Failures since it was last ready or published."""
    reason: str | None = None
    """Of the last failure."""
    next_try_at: datetime | None = None
    """When the sweep tries again; None when it is ready."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What the author of an item says; checked when it is made.

    Each tag is a keyword of the document exactly as it is written: one that could not be is refused.
    """

    kind: KnowledgeKind
    title: str
    content: str
    tags: tuple[str, ...] = ()
    confidence: float = 0.5
    """How sure the author is, 0 to 1; it orders the inbox and decides nothing."""
    source_ref: str = "manual"
    """`manual`, `conv:<id>` or `mcp:<client>`."""

    def __post_init__(self) -> None:
        """Raises InvalidInput, naming the field."""
        _check_line("title", self.title, MAX_TITLE_CHARS)
        if not self.content.strip():
            raise InvalidInput("content is empty", field="content")
        if len(self.content) > MAX_CONTENT_CHARS:
            message = f"content is {len(self.content)} characters long; at most {MAX_CONTENT_CHARS} are possible"
            raise InvalidInput(message, field="content")
        if "\0" in self.content or not is_encodable(self.content):
            raise InvalidInput("content holds a character that cannot be stored", field="content")
        _check_tags(self.tags)
        if not 0 <= self.confidence <= 1:  # not a number is refused too
            raise InvalidInput(f"confidence is {self.confidence}; it must be from 0 to 1", field="confidence")
        if len(self.source_ref) > MAX_SOURCE_CHARS or not _SOURCE.fullmatch(self.source_ref):
            message = "source_ref must be manual, conv:<id> or mcp:<client>, of visible ASCII characters"
            raise InvalidInput(message, field="source_ref")


@dataclass(frozen=True, slots=True)
class Item:
    """A knowledge item as it is stored. `version` counts what its readers and reviewers see: content and status."""

    item_id: ItemId
    draft: Draft
    status: ItemStatus
    created_by: str
    created_at: datetime
    updated_at: datetime
    """When `version` was written; later for each version, whatever the clocks say."""
    updated_by: str
    version: int = 1
    settled_version: int = 1
    """The version whose document is in place, or away; behind `version` while that is being done."""
    embedding: Embedding | None = None
    """None unless it is published."""
    reuse_count: int = 0

    @property
    def is_settled(self) -> bool:
        """True when the documents say what this item says."""
        return self.settled_version == self.version

    @property
    def due_at(self) -> datetime | None:
        """When the sweep has to see to it; None when nothing is left to do."""
        if not self.is_settled:
            # Whoever wrote the version is most likely still at it.
            return self.updated_at + SETTLING
        return self.embedding.next_try_at if self.embedding else None

    def file_path(self, base: KnowledgeBasePath) -> str:
        """Where its document is while it is published."""
        return f"{base.prefix}{self.draft.kind}/{self.item_id}{EXTENSION}"

    def next(self, *, by: str, at: datetime, draft: Draft | None = None, status: ItemStatus | None = None) -> "Item":
        """The following version; its document has to be seen to when it is published, or was."""
        after = status or self.status
        is_published = after is ItemStatus.PUBLISHED
        return replace(
            self,
            draft=draft or self.draft,
            status=after,
            version=self.version + 1,
            settled_version=self.settled_version + (not is_published and self.is_settled and not self.is_published),
            updated_by=by,
            updated_at=max(at, self.updated_at + timedelta(microseconds=1)),
            embedding=Embedding(EmbeddingState.PENDING) if is_published else None,
        )

    @property
    def is_published(self) -> bool:
        """True when agents may read it."""
        return self.status is ItemStatus.PUBLISHED


# How long after a version was written nobody else sees to its document. Source: own choice; a function ends in 28 s.
SETTLING = timedelta(minutes=1)
# Source: as in adapters/dynamodb_calls, a bound that doubles; the bounds are our choice: a model that is away comes
# back in minutes or in hours.
_FIRST_RETRY = timedelta(minutes=1)
_LONGEST_RETRY = timedelta(hours=6)


def failed(embedding: Embedding | None, reason: str, *, at: datetime) -> Embedding:
    """One more failure, `at` that time: the next try comes after one minute, then two, four, and six hours at most."""
    attempts = (embedding.attempts if embedding else 0) + 1
    wait = min(_FIRST_RETRY * 2 ** min(attempts - 1, 20), _LONGEST_RETRY)
    return Embedding(EmbeddingState.FAILED, attempts, reason, at + wait)


def new_item_id() -> ItemId:
    """128 bits, of which 122 are random: nobody meets or guesses another one."""
    return ItemId(uuid4().hex)


def is_item_id(text: str) -> bool:
    """True when `text` has the form of an id; no other text needs to be looked up."""
    return _ID.fullmatch(text) is not None


def item_named_by(path: str, base: KnowledgeBasePath) -> ItemId | None:
    """The item whose document would be at `path`, whether there is such an item or not; None for any other path."""
    kind, _, name = path.removeprefix(base.prefix).partition("/")
    item_id = name.removesuffix(EXTENSION)
    names_one = path.startswith(base.prefix) and name.endswith(EXTENSION) and is_item_id(item_id)
    return ItemId(item_id) if names_one and kind in set(KnowledgeKind) else None


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Without blanks at the ends, each once, in order; blank ones are left out."""
    return tuple(dict.fromkeys(tag for tag in map(str.strip, tags) if tag))


def _check_tags(tags: Sequence[str]) -> None:
    if len(tags) > MAX_TAGS:
        raise InvalidInput(f"there are {len(tags)} tags; at most {MAX_TAGS} are possible", field="tags")
    for tag in tags:
        _check_line("tags", tag, MAX_TAG_CHARS)
        if not _PARTS_A_KEYWORD.isdisjoint(tag):
            raise InvalidInput(f"tags: {tag!r} holds a comma; write two tags", field="tags")
    if len({normalise(tag) for tag in tags}) < len(tags):
        raise InvalidInput("tags: two of them differ only in case, width or blanks", field="tags")


def _check_line(field: str, text: str, most: int) -> None:
    if not normalise(text):
        raise InvalidInput(f"{field}: a text is empty, or nothing of it can be seen", field=field)
    if text != text.strip():
        raise InvalidInput(f"{field}: {text[:100]!r} begins or ends with a blank", field=field)
    if len(text) > most:
        raise InvalidInput(f"{field}: {text[:40]!r}... is longer than {most} characters", field=field)
    if any(unicodedata.category(character) in _NOT_IN_A_LINE for character in text):
        raise InvalidInput(f"{field}: {text[:100]!r} holds a line break or a control character", field=field)
