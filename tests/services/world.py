"""A whole knowledge base in memory, with faults to inject and calls to count: what the service tests stand on."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from knowledge.adapters.hashing_embedder import HashingEmbedder
from knowledge.adapters.memory import MemoryDocumentRegistry, MemoryEventQueue, MemoryVectorStore
from knowledge.adapters.memory_items import MemoryItemStore
from knowledge.adapters.memory_objects import MemoryObjectStore
from knowledge.domain.access import Principal, Role
from knowledge.domain.document import KnowledgeBasePath
from knowledge.domain.lookup import LookupAnswer
from knowledge.errors import DependencyUnavailable
from knowledge.ports import ChunkHit, Embedder, ItemStore, ObjectStore, VectorStore
from knowledge.services.catalog import KnowledgeIndex
from knowledge.services.catalog_source import CatalogSource
from knowledge.services.compaction import Compaction
from knowledge.services.converge import Converger
from knowledge.services.document_reader import DocumentReader
from knowledge.services.documents import Documents, UploadResult
from knowledge.services.item_documents import ItemDocuments
from knowledge.services.item_sweep import ItemSweep
from knowledge.services.lookup import Lookup
from knowledge.services.preparation import Preparation
from knowledge.services.reconcile import Reconcile
from knowledge.services.reconcile_items import ReconciledItems
from knowledge.services.reconcile_rules import SETTLED_AFTER
from knowledge.services.semantic import SemanticSearch

ADMIN = Principal("tester", Role.ADMIN)
READER = Principal("agent", Role.READER)


class Port:
    """A port's adapter with its calls counted, and with faults: a name in `broken` makes that method fail.

    `before` and `after` hold functions called around a method, for what happens meanwhile.
    """

    def __init__(self, adapter: object) -> None:
        self._adapter = adapter
        self.calls: Counter[str] = Counter()
        self.broken: set[str] = set()
        self.broken_after_effect: set[str] = set()
        self.before: dict[str, Callable[[], None]] = {}

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._adapter, name)
        if not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            if name in self.before:
                self.before.pop(name)()
            if name in self.broken:
                raise DependencyUnavailable(type(self._adapter).__name__, "injected")
            result = value(*args, **kwargs)
            if name in self.broken_after_effect:
                raise DependencyUnavailable(type(self._adapter).__name__, "injected after effect")
            return result

        return call


class Died(BaseException):
    """The process is gone: nothing it would still do happens."""


class MortalPort(Port):
    """A port of a process that dies after a number of calls, shared by all its ports."""

    def __init__(self, adapter: object, life: list[int | None]) -> None:
        super().__init__(adapter)
        self._life = life

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        if not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._life[0] is not None:
                if self._life[0] == 0:
                    raise Died
                self._life[0] -= 1
            return value(*args, **kwargs)

        return call


class World:
    """One set of stores; `instance()` makes what one warm Lambda would hold."""

    def __init__(
        self,
        *,
        prefix: str = "knowledge_base/",
        max_document_bytes: int = 1024 * 1024,
        embedder: Embedder | None = None,
        vectors: Callable[[ObjectStore], VectorStore] = lambda _: MemoryVectorStore(),
        items: Callable[[], ItemStore] = MemoryItemStore,
        port: Callable[[object], Port] = Port,
        beside: "World | None" = None,
    ) -> None:
        """With `beside`, the functions of another deployment over the same bucket and table."""
        self.base = KnowledgeBasePath.parse(prefix)
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        """What the clock of the services on items shows."""
        self.max_document_bytes = max_document_bytes
        self.objects: Any = beside.objects if beside else port(MemoryObjectStore())
        self.registry: Any = beside.registry if beside else port(MemoryDocumentRegistry())
        self.items: Any = beside.items if beside else port(items())
        self.vectors: Any = port(vectors(self.objects))
        self.embedder: Any = port(embedder or HashingEmbedder())
        self.queue = MemoryEventQueue()
        self.preparation = Preparation(self.objects, self.vectors, self.embedder, max_document_bytes=max_document_bytes)
        self.converger = Converger(self.objects, self.registry, self.preparation, self.base)
        self.documents = Documents(
            self.objects,
            self.registry,
            self.converger,
            self.base,
            self.items,
            max_document_bytes=max_document_bytes,
            embed_budget_s=60.0,
        )
        self.item_documents = ItemDocuments(
            self.items, self.objects, self.converger, self.base, embed_budget_s=60.0, now=lambda: self.now()
        )
        self.sweep = ItemSweep(self.items, self.item_documents, now=lambda: self.now())
        self.reader = DocumentReader(self.objects, self.registry, self.base, max_inline_bytes=max_document_bytes)
        self.semantic = SemanticSearch(self.embedder, self.vectors, self.registry, self.base)
        self.compaction = Compaction(self.objects, self.registry, self.base, max_document_bytes=max_document_bytes)
        self.index, self.lookup = self.instance()

    def instance(self, *, semantic_timeout_s: float = 5.0) -> tuple[KnowledgeIndex, Lookup]:
        """A fresh index and lookup over the same stores."""
        index = KnowledgeIndex(self.objects, self.registry, self.base, max_document_bytes=self.max_document_bytes)
        return index, Lookup(index, self.semantic, load_wait_s=5.0, semantic_timeout_s=semantic_timeout_s)

    def reconcile(
        self, *, later: timedelta = timedelta(), settled_after: timedelta = SETTLED_AFTER, **options: Any
    ) -> Reconcile:
        """What the scheduled function holds, with a clock that is ahead by `later`."""
        return Reconcile(
            self.objects,
            self.registry,
            self.converger,
            self.vectors,
            self.base,
            CatalogSource(self.objects, self.registry, self.base, max_document_bytes=self.max_document_bytes),
            ReconciledItems(self.items, self.item_documents, self.sweep, self.registry, self.base),
            embedder=self.embedder.name,
            settled_after=settled_after,
            now=lambda: datetime.now(UTC) + later,
            **options,
        )

    def upload(self, path: str, text: str | bytes) -> UploadResult:
        """Upload to `category/name.md` as the API would."""
        category, _, name = path.rpartition("/")
        content = text.encode() if isinstance(text, str) else text
        return self.documents.upload_document(ADMIN, category=category, file_name=name, content=content)

    def drop(self, key: str, text: str | bytes) -> None:
        """Put a file into the bucket, as any S3 client would; no event is delivered."""
        self.objects.put(key, text.encode() if isinstance(text, str) else text, content_type="text/markdown")

    def ask(self, query: str, **options: Any) -> LookupAnswer:
        """A lookup by an agent."""
        return self.lookup.lookup_knowledge(READER, query, **options)

    def chunks(self, query: str) -> list[ChunkHit]:
        """Everything in the vector store, of any generation."""
        return list(self.vectors.search(query, self.embedder.embed_query(query), limit=1000).hits)

    def reset_counts(self) -> None:
        """Forget the calls made so far."""
        for port in (self.objects, self.registry, self.vectors, self.embedder):
            port.calls.clear()


def markdown(*keywords: str, title: str = "A title", body: str = "Some text.", summary: str | None = None) -> str:
    """A document with frontmatter."""
    listed = ", ".join(f'"{keyword}"' for keyword in keywords)
    lines = ["---", f"title: {title}", f"keywords: [{listed}]"]
    if summary:
        lines.append(f"summary: {summary}")
    return "\n".join([*lines, "---", "", body, ""])
