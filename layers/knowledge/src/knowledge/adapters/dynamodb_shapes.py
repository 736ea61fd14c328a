"""The shapes of stored items, and the functions between them and the domain. Makes no call."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC
from typing import TYPE_CHECKING, Any

from pydantic import AwareDatetime

from knowledge.adapters import dynamodb_items as layout
from knowledge.adapters.dynamodb_items import Item, StoredItem, item_of, key_text, read_item
from knowledge.domain.document import DocId, DocumentRecord, DocumentStatus, Generation, Json, KnowledgeEntry
from knowledge.errors import CorruptState
from knowledge.ports import CatalogChange, DocumentChange, SnapshotPointer

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef


class _StoredDocument(StoredItem):
    pk: str
    sk: str
    listing_pk: str
    status_pk: str
    doc_id: str
    file_path: str
    status: DocumentStatus
    etag: str
    version_id: str | None = None
    size_bytes: int
    title: str
    metadata: str | None = None
    warnings: tuple[str, ...]
    reason: str | None = None
    generation: str | None = None
    chunk_count: int
    embedded_count: int
    embedder: str
    pipeline_version: int
    revision: str
    created_at: AwareDatetime
    updated_at: AwareDatetime


class _StoredGeneration(StoredItem):
    doc_id: str
    generation: str | None = None


class _StoredEntry(StoredItem):
    title: str
    keywords: tuple[str, ...]
    summary: str | None = None


class _StoredChange(StoredItem):
    doc_id: str
    file_path: str
    generation: str | None = None
    entry: _StoredEntry | None = None


class _StoredChanges(StoredItem):
    pk: str
    sk: str
    version: int
    commit_id: str
    changes: tuple[_StoredChange, ...]


class _StoredDeletion(StoredItem):
    revision: str


class _StoredHead(StoredItem):
    version: int


class _StoredSnapshot(StoredItem):
    version: int
    key: str
    sha256: str
    size_bytes: int
    written_at: AwareDatetime


class _StoredSnapshots(StoredItem):
    snapshots: tuple[_StoredSnapshot, ...] = ()


def document_to_item(record: DocumentRecord) -> Item:
    """The META item of `record`; metadata as JSON text, so that no number changes and no depth limit counts."""
    metadata = None if record.metadata is None else json.dumps(record.metadata, ensure_ascii=False)
    return item_of(
        _StoredDocument(
            pk=layout.document_pk(record.doc_id),
            sk=layout.META,
            listing_pk=layout.LISTING_PK,
            status_pk=layout.status_pk(record.status),
            doc_id=record.doc_id,
            file_path=record.file_path,
            status=record.status,
            etag=record.etag,
            version_id=record.version_id,
            size_bytes=record.size_bytes,
            title=record.title,
            metadata=metadata,
            warnings=record.warnings,
            reason=record.reason,
            generation=record.generation,
            chunk_count=record.chunk_count,
            embedded_count=record.embedded_count,
            embedder=record.embedder,
            pipeline_version=record.pipeline_version,
            revision=record.revision,
            created_at=record.created_at,
            updated_at=record.updated_at,
        )
    )


def deleted_from_item(item: Item) -> str:
    """The revision that was deleted. Raises CorruptState."""
    return read_item(_StoredDeletion, item).revision


def document_from_item(item: Item) -> DocumentRecord:
    """The record. Raises CorruptState."""
    stored = read_item(_StoredDocument, item)
    return DocumentRecord(
        doc_id=DocId(stored.doc_id),
        file_path=stored.file_path,
        status=stored.status,
        etag=stored.etag,
        version_id=stored.version_id,
        size_bytes=stored.size_bytes,
        title=stored.title,
        metadata=None if stored.metadata is None else _json_object(stored.metadata, item),
        warnings=stored.warnings,
        reason=stored.reason,
        generation=None if stored.generation is None else Generation(stored.generation),
        chunk_count=stored.chunk_count,
        embedded_count=stored.embedded_count,
        embedder=stored.embedder,
        pipeline_version=stored.pipeline_version,
        revision=stored.revision,
        created_at=stored.created_at.astimezone(UTC),
        updated_at=stored.updated_at.astimezone(UTC),
    )


def generation_from_item(item: Item) -> tuple[DocId, Generation | None]:
    """The document and its generation, from the part of a META item that holds them. Raises CorruptState."""
    stored = read_item(_StoredGeneration, item)
    return DocId(stored.doc_id), None if stored.generation is None else Generation(stored.generation)


def changes_to_item(changes: Sequence[DocumentChange], version: int, commit_id: str) -> Item:
    """The log item of `changes` as number `version`; `commit_id` is what its writer knows it by."""
    return item_of(
        _StoredChanges(
            pk=layout.CATALOG_PK,
            sk=layout.log_sk(version),
            version=version,
            commit_id=commit_id,
            changes=tuple(map(_stored_change, changes)),
        )
    )


def changes_from_item(item: Item) -> CatalogChange:
    """What the log item says. Raises CorruptState."""
    stored = read_item(_StoredChanges, item)
    return CatalogChange(stored.version, {change.file_path: _entry_of(change) for change in stored.changes})


def _stored_change(change: DocumentChange) -> _StoredChange:
    entry = None
    if change.entry is not None:
        entry = _StoredEntry(title=change.entry.title, keywords=change.entry.keywords, summary=change.entry.summary)
    generation = change.after.generation if change.after else None
    return _StoredChange(doc_id=change.doc_id, file_path=change.file_path, generation=generation, entry=entry)


def _entry_of(stored: _StoredChange) -> KnowledgeEntry | None:
    if stored.entry is None:
        return None
    return KnowledgeEntry(stored.file_path, stored.entry.title, stored.entry.keywords, stored.entry.summary)


def head_from_item(item: Item | None) -> int:
    """The number of the newest log entry, 0 without an item. Raises CorruptState."""
    return read_item(_StoredHead, item).version if item else 0


def snapshots_from_item(item: Item | None) -> tuple[SnapshotPointer, ...]:
    """The pointers that the head of the log has, none without an item. Raises CorruptState."""
    stored = read_item(_StoredSnapshots, item).snapshots if item else ()
    return tuple(
        SnapshotPointer(one.version, one.key, one.sha256, one.size_bytes, one.written_at.astimezone(UTC))
        for one in stored
    )


def snapshots_to_attribute(snapshots: Sequence[SnapshotPointer]) -> "AttributeValueTypeDef":
    """The attribute `snapshots` of the head."""
    stored = tuple(_StoredSnapshot.model_validate(asdict(pointer)) for pointer in snapshots)
    return item_of(_StoredSnapshots(snapshots=stored))["snapshots"]


def _json_object(text: str, item: Item) -> dict[str, Json]:
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        raise CorruptState(f"{key_text(item)} cannot be read: metadata") from error
    if not isinstance(value, dict):
        raise CorruptState(f"{key_text(item)} cannot be read: metadata")
    return value
