"""Turning the bucket's content into what is indexed: parse, chunk, embed, write vectors. Commits nothing."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from knowledge.domain.document import Chunk, DocId, DocumentRecord, DocumentStatus, ParsedDocument
from knowledge.domain.text import first_invalid_byte, normalise
from knowledge.errors import (
    AccessRefused,
    CorruptState,
    DependencyUnavailable,
    InvalidInput,
    KnowledgeError,
)
from knowledge.parsing.chunks import chunk_document
from knowledge.parsing.frontmatter import FrontmatterParser
from knowledge.parsing.sections import display_title, first_heading
from knowledge.ports import (
    DocumentChange,
    Embedder,
    ObjectInfo,
    ObjectStore,
    StoredObject,
    Vector,
    VectorStore,
)
from knowledge.retrieval.weak_keywords import is_weak
from knowledge.services.bucket_scan import catalog_entry
from knowledge.services.chunk_vectors import ChunkVectors, unique

_logger = logging.getLogger(__name__)

# Raised by one whenever parsing, chunking or the form of what is embedded changes: then every document is indexed anew
# the next time it is looked at.
PIPELINE_VERSION = 1
# Enough for a person to see what is wrong with a file, few enough that a page of 100 documents stays far under 6 MB.
_MAX_WARNINGS = 20
# A chunk should be about one thing also where the model could read far more. Source: own choice, the limit of the local
# model, for which chunks were measured.
_MAX_CHUNK_TOKENS = 512


class Preparation:
    """Prepares the change that makes the index say what the bucket holds."""

    def __init__(
        self,
        objects: ObjectStore,
        vectors: VectorStore,
        embedder: Embedder,
        *,
        max_document_bytes: int,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now` is aware UTC, `clock` monotonic seconds, in which deadlines are given."""
        self._objects = objects
        self._embedder = embedder
        self.vectors = ChunkVectors(vectors, embedder, clock)
        self._max_document_bytes = max_document_bytes
        self._now = now

    def is_current(self, record: DocumentRecord, info: ObjectInfo) -> bool:
        """True when the record describes this very version of the object, and is finished.

        A failed document is looked at again each time: the limit may have been raised, the object restored. The same
        content in a new version is not current: an instance may have scanned the bucket while it was away.
        """
        return self._is_done(record, info) and record.version_id == info.version_id

    def _is_done(self, record: DocumentRecord | None, info: ObjectInfo) -> bool:
        """True when the record describes the content, as this pipeline and embedder would, and is finished."""
        return (
            record is not None
            and record.etag == info.etag
            and record.pipeline_version == PIPELINE_VERSION
            and record.embedder == self._embedder.name
            and record.status is DocumentStatus.INDEXED
        )

    def prepare(
        self,
        doc_id: DocId,
        path: str,
        before: DocumentRecord | None,
        deadline: float,
        embedded: dict[str, Vector],
    ) -> DocumentChange:
        """The change from `before` to what the bucket holds now; its vectors are written, nothing is committed.

        Content that cannot be had or indexed gives a FAILED record with the reason. Embedding that fails or is not
        finished by `deadline` gives a PENDING one that keeps what was embedded, so that the next try goes on there.
        `embedded` holds vectors by content hash that are known already; new ones are added to it.

        Raises:
            DependencyUnavailable: the bucket did not answer.
        """
        try:
            stored = self._objects.read(path, max_bytes=self._max_document_bytes)
        except AccessRefused as error:
            nothing = StoredObject(ObjectInfo(path, "", 0), b"")
            record = replace(self._blank_record(doc_id, path, before, nothing), reason=str(error))
            return DocumentChange(doc_id, path, before, record, None)
        if stored is None:
            return DocumentChange(doc_id, path, before, None, None)
        record = self._blank_record(doc_id, path, before, stored)
        if stored.truncated:
            reason = f"the file is {stored.info.size_bytes} bytes long; at most {self._max_document_bytes} are indexed"
            return DocumentChange(doc_id, path, before, replace(record, reason=reason), None)
        if (offset := first_invalid_byte(stored.body)) is not None:
            reason = f"the file is not UTF-8: byte {offset} cannot be decoded"
            return DocumentChange(doc_id, path, before, replace(record, reason=reason), None)
        parsed = FrontmatterParser().read(stored.body.decode(), path=path)
        if before is not None and self._is_done(before, stored.info):
            seen = replace(before, version_id=stored.info.version_id, revision=unique(), updated_at=self._now())
            return DocumentChange(doc_id, path, before, seen, catalog_entry(path, parsed))
        title = display_title(parsed.frontmatter, parsed.prose, path)
        chunks = cut(parsed, path, self._embedder)
        record = replace(
            record,
            title=title,
            metadata=dict(parsed.frontmatter.fields) if parsed.frontmatter else None,
            warnings=_warnings(parsed, chunks),
            chunk_count=len(chunks),
        )
        record = self._embedded(record, before, chunks, deadline, embedded)
        return DocumentChange(doc_id, path, before, record, catalog_entry(path, parsed))

    def _embedded(
        self,
        record: DocumentRecord,
        before: DocumentRecord | None,
        chunks: Sequence[Chunk],
        deadline: float,
        embedded: dict[str, Vector],
    ) -> DocumentRecord:
        """`record` with the generation that holds the chunks, as far as they could be embedded, and its status."""
        if before is not None and self._was_built(before, record, chunks):
            return replace(
                record,
                status=DocumentStatus.INDEXED,
                generation=before.generation,
                embedded_count=len(chunks),
            )
        path, doc_id = record.file_path, record.doc_id
        failure: KnowledgeError | None
        vectors, failure = self.vectors.embed(doc_id, chunks, before, deadline, embedded)
        generation = None
        try:
            generation = self.vectors.write(doc_id, path, chunks, vectors)
        except (DependencyUnavailable, CorruptState) as error:
            vectors, failure = {}, error
        if failure is None:
            record = replace(record, status=DocumentStatus.INDEXED)
        else:
            _logger.warning("document_embedding_failed", extra={"path": path, "doc_id": doc_id, "reason": str(failure)})
            # What the embedder refuses it will refuse again; anything else is worth another try.
            is_refused = isinstance(failure, InvalidInput)
            status = DocumentStatus.FAILED if is_refused else DocumentStatus.PENDING
            record = replace(record, status=status, reason=str(failure))
        embedded_count = sum(chunk.content_hash in vectors for chunk in chunks)
        return replace(record, generation=generation, embedded_count=embedded_count)

    def _was_built(self, before: DocumentRecord, record: DocumentRecord, chunks: Sequence[Chunk]) -> bool:
        """True when only the embedder is another, and a rebuild has stored this generation with its vectors."""
        return (
            before.generation is not None
            and before.etag == record.etag
            and before.embedder != record.embedder
            and self.vectors.holds(before.doc_id, before.generation, chunks)
        )

    def given_up(self, record: DocumentRecord, reason: str) -> DocumentChange:
        """The change that marks `record` FAILED with `reason`; its place in the exact tier stays."""
        stored = self._objects.read(record.file_path, max_bytes=self._max_document_bytes)
        entry = None
        if stored is not None and first_invalid_byte(stored.body) is None:
            path = record.file_path
            entry = catalog_entry(path, FrontmatterParser().read(stored.body.decode(), path=path))
        failed = replace(record, status=DocumentStatus.FAILED, reason=reason, revision=unique(), updated_at=self._now())
        return DocumentChange(record.doc_id, record.file_path, record, failed, entry)

    def _blank_record(
        self, doc_id: DocId, path: str, before: DocumentRecord | None, stored: StoredObject
    ) -> DocumentRecord:
        now = self._now()
        return DocumentRecord(
            doc_id=doc_id,
            file_path=path,
            status=DocumentStatus.FAILED,
            etag=stored.info.etag,
            version_id=stored.info.version_id,
            size_bytes=stored.info.size_bytes,
            title=path.rpartition("/")[2],
            metadata=None,
            warnings=(),
            reason=None,
            generation=None,
            chunk_count=0,
            embedded_count=0,
            embedder=self._embedder.name,
            pipeline_version=PIPELINE_VERSION,
            revision=unique(),
            created_at=before.created_at if before else now,
            updated_at=now,
        )


def cut(parsed: ParsedDocument, path: str, embedder: Embedder) -> Sequence[Chunk]:
    """The document's chunks, of a length that `embedder` reads whole."""
    title = display_title(parsed.frontmatter, parsed.prose, path)
    # A file name in front of every chunk would only make unlike texts alike. Source: measured on tidb_faq_zh.
    has_title = (parsed.frontmatter is not None and parsed.frontmatter.title) or first_heading(parsed.prose)
    return chunk_document(
        parsed, title=title if has_title else "", max_tokens=min(embedder.max_tokens, _MAX_CHUNK_TOKENS)
    )


def _warnings(parsed: ParsedDocument, chunks: Sequence[Chunk]) -> tuple[str, ...]:
    warnings = list(parsed.warnings)
    if not chunks:
        if parsed.frontmatter is None:
            warnings.append("empty document: it has no text and no keywords, so no lookup can find it")
        else:
            warnings.append("the document has no text besides its frontmatter: only its keywords find it")
    if parsed.frontmatter:
        warnings.extend(
            f"keyword {keyword!r} is too common to decide alone: it never gives high confidence by itself"
            for keyword in parsed.frontmatter.keywords
            if is_weak(normalise(keyword))
        )
    if len(warnings) > _MAX_WARNINGS:
        warnings[_MAX_WARNINGS:] = [f"and {len(warnings) - _MAX_WARNINGS} more"]
    return tuple(warnings)
