"""The shapes of stored knowledge items, events and settings, and the functions between them and the domain."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, PlainSerializer

from knowledge.adapters.dynamodb_item_rows import item_pk, new_event_sk, time_text
from knowledge.adapters.dynamodb_items import META, SETTINGS_PK, StoredItem, item_of, key_text, read_item
from knowledge.adapters.dynamodb_items import Item as TableItem
from knowledge.domain.item import Draft, Embedding, EmbeddingState, Item, ItemId, ItemStatus, KnowledgeKind
from knowledge.domain.knowledge_config import KnowledgeConfig, TriggerMode, VersionedConfig
from knowledge.domain.timeline import Event, EventType
from knowledge.errors import CorruptState, InvalidInput

# One text for one time: a condition on a stored time compares texts.
_Time = Annotated[AwareDatetime, PlainSerializer(time_text)]
# As text: DynamoDB has no floats, and its decimals are not as small as the smallest of them.
_Fraction = Annotated[float, PlainSerializer(repr)]


class _StoredEmbedding(StoredItem):
    state: EmbeddingState
    attempts: int
    reason: str | None = None
    next_try_at: _Time | None = None


class _StoredVersion(StoredItem):
    """What a new version of an item replaces."""

    kind: KnowledgeKind
    title: str
    content: str
    tags: tuple[str, ...]
    confidence: _Fraction
    source_ref: str
    status: ItemStatus
    updated_at: _Time
    updated_by: str
    version: int
    settled_version: int
    embedding: _StoredEmbedding | None = None


class _StoredKnowledge(_StoredVersion):
    pk: str
    sk: str
    item_id: str
    created_by: str
    created_at: _Time
    reuse_count: int


class _StoredEvent(StoredItem):
    pk: str
    sk: str
    item_id: str
    type: EventType
    actor: str
    at: _Time
    version: int
    details: str


class _StoredConfig(StoredItem):
    pk: str
    sk: str
    version: int
    auto_extract: bool
    trigger_mode: TriggerMode
    min_messages: int
    auto_inject: bool
    vector_enabled: bool
    actor: str
    at: _Time


def item_to_table(item: Item) -> TableItem:
    """The META item of `item`."""
    whole = _StoredKnowledge(
        pk=item_pk(item.item_id),
        sk=META,
        item_id=item.item_id,
        created_by=item.created_by,
        created_at=item.created_at,
        reuse_count=item.reuse_count,
        **dict(_version_of(item)),
    )
    return item_of(whole)


def version_attributes(item: Item) -> TableItem:
    """What of the META item a new version replaces: everything but who made it, when, and how often it was reused."""
    return item_of(_version_of(item))


def item_from_table(stored: TableItem) -> Item:
    """The item. Raises CorruptState."""
    read = read_item(_StoredKnowledge, stored)
    try:
        draft = Draft(read.kind, read.title, read.content, read.tags, read.confidence, read.source_ref)
    except InvalidInput as error:
        raise CorruptState(f"{key_text(stored)} cannot be read: {error.field}") from error
    return Item(
        item_id=ItemId(read.item_id),
        draft=draft,
        status=read.status,
        created_by=read.created_by,
        created_at=read.created_at.astimezone(UTC),
        updated_at=read.updated_at.astimezone(UTC),
        updated_by=read.updated_by,
        version=read.version,
        settled_version=read.settled_version,
        embedding=_embedding_of(read.embedding),
        reuse_count=read.reuse_count,
    )


def event_to_table(event: Event) -> TableItem:
    """A new item for `event`; details as JSON text, so that no number changes."""
    return item_of(
        _StoredEvent(
            pk=item_pk(event.item_id),
            sk=new_event_sk(event),
            item_id=event.item_id,
            type=event.type,
            actor=event.actor,
            at=event.at,
            version=event.version,
            details=json.dumps(dict(event.details), ensure_ascii=False),
        )
    )


def event_from_table(stored: TableItem) -> Event:
    """The event. Raises CorruptState."""
    read = read_item(_StoredEvent, stored)
    try:
        details: Any = json.loads(read.details)
    except ValueError as error:
        raise CorruptState(f"{key_text(stored)} cannot be read: details") from error
    if not isinstance(details, dict):
        raise CorruptState(f"{key_text(stored)} cannot be read: details")
    return Event(ItemId(read.item_id), read.type, read.actor, read.at.astimezone(UTC), read.version, details)


def config_to_table(settings: VersionedConfig, *, sk: str, actor: str, at: datetime) -> TableItem:
    """The item of that version of the settings, who wrote it and when, under this sort key."""
    fields = asdict(settings.config)
    return item_of(_StoredConfig(pk=SETTINGS_PK, sk=sk, version=settings.version, actor=actor, at=at, **fields))


def config_from_table(stored: TableItem) -> VersionedConfig:
    """That version of the settings. Raises CorruptState."""
    read = read_item(_StoredConfig, stored)
    try:
        config = KnowledgeConfig(
            read.auto_extract, read.trigger_mode, read.min_messages, read.auto_inject, read.vector_enabled
        )
    except InvalidInput as error:
        raise CorruptState(f"{key_text(stored)} cannot be read: {error.field}") from error
    return VersionedConfig(config, read.version)


def _version_of(item: Item) -> _StoredVersion:
    return _StoredVersion(
        **asdict(item.draft),
        status=item.status,
        updated_at=item.updated_at,
        updated_by=item.updated_by,
        version=item.version,
        settled_version=item.settled_version,
        embedding=None if item.embedding is None else _StoredEmbedding(**asdict(item.embedding)),
    )


def _embedding_of(stored: _StoredEmbedding | None) -> Embedding | None:
    if stored is None:
        return None
    next_try_at = None if stored.next_try_at is None else stored.next_try_at.astimezone(UTC)
    return Embedding(stored.state, stored.attempts, stored.reason, next_try_at)
