"""The knowledge base itself as one of the systems: its own services, over stores in memory and a real vector store."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from knowledge.adapters.memory import MemoryDocumentRegistry
from knowledge.adapters.memory_items import MemoryItemStore
from knowledge.adapters.memory_objects import MemoryObjectStore
from knowledge.domain.access import Principal, Role
from knowledge.domain.document import DocumentStatus, KnowledgeBasePath
from knowledge.domain.lookup import Confidence, Tier
from knowledge.errors import InvalidQuery, KnowledgeError
from knowledge.ports import Embedder, ObjectStore, VectorStore
from knowledge.services.calibration import Calibration
from knowledge.services.catalog import KnowledgeIndex
from knowledge.services.converge import Converger
from knowledge.services.documents import Documents
from knowledge.services.lookup import Lookup
from knowledge.services.own_sentences import OwnSentences
from knowledge.services.preparation import Preparation
from knowledge.services.semantic import SemanticSearch
from tools.eval.baselines import Found
from tools.eval.sets import Document, Query
from tools.local_cloud.places import Problem

_WHO = Principal("evaluation", Role.ADMIN)
_BASE = KnowledgeBasePath.parse("knowledge_base")
# Documents that have no folder of their own need one.
_CATEGORY = "documents"
# Above what any deployment accepts. Source: Amazon API Gateway quota for a request body, 10 MB.
_MAX_DOCUMENT_BYTES = 10 * 1024 * 1024
# Nothing is given up for being slow: time is measured here, not promised.
_PATIENCE_S = 600.0
_DEPTH = 10


@dataclass(slots=True)
class _Watch:
    """Passes every call on, and keeps how long those of one method took, in milliseconds."""

    port: object
    method: str
    elapsed_ms: list[float] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.port, name)
        if name != self.method:
            return value

        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return value(*args, **kwargs)
            finally:
                self.elapsed_ms.append(_ms(started))

        return timed


class KnowledgeBase:
    """One set as a knowledge base of its own."""

    def __init__(self, embedder: Embedder, make_store: Callable[[ObjectStore], VectorStore]) -> None:
        """An empty base; `make_store` may use the object store that holds the documents."""
        objects, registry = MemoryObjectStore(), MemoryDocumentRegistry()
        self._embedding = _Watch(embedder, "embed_query")
        self._searching = _Watch(make_store(objects), "search")
        watched, vectors = cast(Embedder, self._embedding), cast(VectorStore, self._searching)
        preparation = Preparation(objects, vectors, watched, max_document_bytes=_MAX_DOCUMENT_BYTES)
        self._documents = Documents(
            objects,
            registry,
            Converger(objects, registry, preparation, _BASE),
            _BASE,
            MemoryItemStore(),
            max_document_bytes=_MAX_DOCUMENT_BYTES,
            embed_budget_s=math.inf,
        )
        self._index = KnowledgeIndex(objects, registry, _BASE, max_document_bytes=_MAX_DOCUMENT_BYTES)
        self._semantic = SemanticSearch(watched, vectors, registry, _BASE)
        own = OwnSentences(objects, _BASE, max_document_bytes=_MAX_DOCUMENT_BYTES)
        self._calibration = Calibration(self._semantic, own)
        self._lookup = Lookup(self._index, self._semantic, load_wait_s=_PATIENCE_S, semantic_timeout_s=_PATIENCE_S)
        self.semantic: dict[str, Sequence[str]] = {}
        """By query, what the semantic tier alone ranks."""
        self._ids: dict[str, str] = {}
        self._stages_ms: dict[str, list[float]] = {"exact": [], "search": [], "fuse": []}
        self._asked = 0
        self._certain: list[bool] = []

    def upload(self, document: Document) -> None:
        """The document is indexed in both tiers. Raises Problem when the product refuses it."""
        folder, file_name = _place(document, len(self._ids))
        content = document.markdown if document.markdown is not None else markdown(document)
        try:
            record = self._documents.upload_document(_WHO, category=folder, file_name=file_name, content=content).record
        except KnowledgeError as error:
            raise Problem(f"the document {document.id!r} is refused: {error}") from error
        if record.status is not DocumentStatus.INDEXED:
            raise Problem(f"the document {document.id!r} is not indexed: {record.reason}")
        self._ids[record.file_path] = document.id

    def calibrate(self) -> None:
        """As a deployed base is once a day, on its own documents."""
        self._calibration.calibrate()

    def find(self, query: Query) -> Found:
        """What the product ranks and decides.

        A certain exact hit comes first, then the semantic tier's documents. Whatever the exact tier finds counts as
        an answer, as in the product; else the semantic tier decides.
        """
        try:
            answer = self._lookup.lookup_knowledge(_WHO, query.text, explain=True)
        except InvalidQuery:
            return Found([], -math.inf, is_answer=False)
        if answer.degraded:
            raise Problem(f"a tier failed on the query {query.id!r}: {', '.join(answer.degraded)}")
        self._asked += 1
        self._stages_ms["exact"].append(_timing(answer.explanation, Tier.EXACT))
        is_certain = answer.primary is not None and answer.primary.confidence is Confidence.HIGH
        started, before = time.perf_counter(), len(self._searching.elapsed_ms)
        ranking = self._semantic.rank(query.text, top_k=_DEPTH)
        total_ms, search_ms = _ms(started), math.fsum(self._searching.elapsed_ms[before:])
        self._stages_ms["search"].append(search_ms)
        self._stages_ms["fuse"].append(total_ms - search_ms - self._embedding.elapsed_ms[-1])
        semantic = [self._ids[hit.chunk.file_path] for hit in ranking.hits]
        self.semantic[query.id] = semantic
        first = [self._ids[answer.primary.source]] if answer.primary and is_certain else []
        self._certain.extend(doc_id in query.relevant for doc_id in first)
        score = math.inf if answer.primary else ranking.evidence
        return Found(list(dict.fromkeys([*first, *semantic])), score, is_answer=answer.found)

    @property
    def stages_ms(self) -> Mapping[str, Sequence[float]]:
        """How long each stage of each query took, in milliseconds; the query's embedding is not among them."""
        return self._stages_ms

    @property
    def certain_share(self) -> float:
        """Share of the queries that the exact tier answered for certain, without a vector call."""
        return len(self._certain) / self._asked if self._asked else 0.0

    @property
    def certain_precision(self) -> float | None:
        """Share of those whose document is a relevant one; None when there was none."""
        return sum(self._certain) / len(self._certain) if self._certain else None


def markdown(document: Document) -> bytes:
    """The document as its author would write it: title and keywords in frontmatter, then the text.

    A document of a title alone says its title, since only text below the frontmatter is searched by meaning.
    """
    declared = {"title": document.title, "keywords": list(document.keywords)}
    fields = {name: value for name, value in declared.items() if value}
    block = f"---\n{yaml.safe_dump(fields, allow_unicode=True, sort_keys=False)}---\n" if fields else ""
    return f"{block}\n{document.text.strip() or document.title}\n".encode("utf-8", "replace")


def _place(document: Document, number: int) -> tuple[str, str]:
    """Folder and file name: a file's own, or a numbered folder for what is made from a set: no id helps to find it.

    A document without title shows its file name, which therefore is the same for all.
    """
    if document.markdown is None:
        return f"{_CATEGORY}/{number:06d}", "document.md"
    folder, _, file_name = document.id.rpartition("/")
    return folder or _CATEGORY, file_name


def _timing(explanation: object, tier: Tier) -> float:
    timings = explanation.get("timings_ms") if isinstance(explanation, Mapping) else None
    return float(timings[str(tier)]) if isinstance(timings, Mapping) else math.nan


def _ms(started: float) -> float:
    return (time.perf_counter() - started) * 1000
