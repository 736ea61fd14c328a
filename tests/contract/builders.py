"""Values for the contract tests, each with sensible defaults."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from knowledge.domain.document import (
    Chunk,
    DocId,
    DocumentRecord,
    DocumentStatus,
    Generation,
    KnowledgeEntry,
    doc_id_for,
)
from knowledge.ports import CatalogLog, DocumentChange, DocumentRegistry, EmbeddedChunk, PrincipalStore, TokenStore


@dataclass(frozen=True)
class Registry:
    """A registry with the log that it writes."""

    documents: DocumentRegistry
    log: CatalogLog


@dataclass
class Clock:
    """A clock that stands still until a test moves it."""

    at: datetime = datetime(2026, 12, 1, 8, 30, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


@dataclass(frozen=True)
class TokensAndCallers:
    """A store of tokens, and what finds callers by them, going by the same clock."""

    store: TokenStore
    callers: PrincipalStore
    clock: Clock


_revisions = itertools.count(1)


def record(path: str = "knowledge_base/api/payment.md", **fields: Any) -> DocumentRecord:
    whole = DocumentRecord(
        doc_id=doc_id_for(path),
        file_path=path,
        status=DocumentStatus.INDEXED,
        etag="0f343b0931126a20f133d67c2b018a3b",
        version_id="3sL4kqtJlcpXroDTDmJ",
        size_bytes=1234,
        title="Payment errors",
        metadata={"title": "Payment errors", "keywords": ["ERR_TIMEOUT", "支付网关"]},
        warnings=(),
        reason=None,
        generation=None,
        chunk_count=0,
        embedded_count=0,
        embedder="hashing-3gram",
        pipeline_version=1,
        revision=f"revision-{next(_revisions)}",
        created_at=datetime(2026, 4, 14, 8, 30, 0, 123456, tzinfo=UTC),
        updated_at=datetime(2026, 4, 15, tzinfo=UTC),
    )
    return replace(whole, **fields)


def entry(path: str = "knowledge_base/api/payment.md", **fields: Any) -> KnowledgeEntry:
    return replace(KnowledgeEntry(path, "Payment errors", ("ERR_TIMEOUT", "支付网关"), "What to do"), **fields)


def change(
    before: DocumentRecord | None, after: DocumentRecord | None, *, entry: KnowledgeEntry | None = None
) -> DocumentChange:
    known = before or after
    assert known is not None
    return DocumentChange(known.doc_id, known.file_path, before, after, entry)


def chunk(text: str, vector: Sequence[float], *, ordinal: int = 0) -> EmbeddedChunk:
    length = math.hypot(*vector)
    return EmbeddedChunk(Chunk(ordinal, ("Heading",), text), [value / length for value in vector])


DOC = DocId("aaaaaaaaaaaaaaaaaaaaaaaaaa")
OTHER_DOC = DocId("bbbbbbbbbbbbbbbbbbbbbbbbbb")
GENERATION = Generation("generation-1")
OTHER_GENERATION = Generation("generation-2")
