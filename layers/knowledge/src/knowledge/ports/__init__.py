"""What the services need from outside, named by capability. Every port has a memory twin among the adapters.

Every method may raise `DependencyUnavailable`; other errors are named where they can occur.
"""

from typing import Protocol

from knowledge.ports.documents import (
    MAX_CHANGES,
    CatalogChange,
    CatalogHead,
    CatalogLog,
    DocumentChange,
    DocumentPage,
    DocumentRegistry,
    DocumentState,
    ObjectInfo,
    ObjectStore,
    SnapshotPointer,
    StoredObject,
)
from knowledge.ports.items import ConfigStore, ItemPage, ItemStore, TimelinePage
from knowledge.ports.tokens import PrincipalStore, TokenStore
from knowledge.ports.vectors import (
    ChunkHit,
    EmbeddedChunk,
    Embedder,
    RebuildableVectorStore,
    SearchResult,
    Vector,
    VectorStore,
)

__all__ = [
    "MAX_CHANGES",
    "CatalogChange",
    "CatalogHead",
    "CatalogLog",
    "ChunkHit",
    "ConfigStore",
    "DocumentChange",
    "DocumentPage",
    "DocumentRegistry",
    "DocumentState",
    "EmbeddedChunk",
    "Embedder",
    "EventQueue",
    "ItemPage",
    "ItemStore",
    "ObjectInfo",
    "ObjectStore",
    "PrincipalStore",
    "RebuildableVectorStore",
    "SearchResult",
    "SnapshotPointer",
    "StoredObject",
    "TimelinePage",
    "TokenStore",
    "Vector",
    "VectorStore",
]


class EventQueue(Protocol):
    """The queue that the bucket's events come through."""

    def put_again(self, body: str) -> None:
        """A message with this body is delivered soon, as a new one with its deliveries counted from one."""
