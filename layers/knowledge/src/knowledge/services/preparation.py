"""Turning the bucket's content into what is indexed: parse, chunk, embed, write vectors. Commits nothing."""

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from knowledge.domain.document import Chunk, DocId, DocumentRecord, DocumentStatus, Generation, ParsedDocument
from knowledge.domain.text import normalise
from knowledge.errors import AccessRefused, DependencyUnavailable, InvalidInput
from knowledge.parsing.chunks import chunk_document
from knowledge.parsing.frontmatter import FrontmatterParser
from knowledge.parsing.sections import display_title
from knowledge.ports import (
    DocumentChange,
    EmbeddedChunk,
    Embedder,
    ObjectInfo,
    ObjectStore,
    StoredObject,
    Vector,
    VectorStore,
)
from knowledge.retrieval.weak_keywords import is_weak
from knowledge.services.catalog import catalog_entry
from knowledge.services.index_notes import IndexNotes

_logger = logging.getLogger(__name__)

# Raised by one whenever parsing, chunking or the form of what is embedded changes: then every document is indexed anew
# the next time it is looked at.
PIPELINE_VERSION = 1
# Enough for a person to see what is wrong with a file, few enough that a page of 100 documents stays far under 6 MB.
_MAX_WARNINGS = 20
# A chunk should be about one thing also where the model could read far more. Source: own choice, the limit of the local
# model, for which chunks were measured.
_MAX_CHUNK_TOKENS = 512
# Texts embedded between two looks at the clock.
_EMBED_BATCH = 4


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
        self._vectors = vectors
        self._embedder = embedder
        self._max_document_bytes = max_document_bytes
        self._now = now
        self._clock = clock
        self._notes = IndexNotes(vectors, embedder)

    def is_current(self, record: DocumentRecord, etag: str) -> bool:
        """True when the record describes the content `etag`, as this pipeline and embedder would, and is finished.

        A failed document is looked at again each time: the limit may have been raised, the object restored.
        """
        return (
            record.etag == etag
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
        title = display_title(parsed.frontmatter, parsed.prose, path)
        chunks = chunk_document(parsed, title=title, max_tokens=min(self._embedder.max_tokens, _MAX_CHUNK_TOKENS))
        record = replace(
            record,
            title=title,
            metadata=dict(parsed.frontmatter.fields) if parsed.frontmatter else None,
            warnings=_warnings(parsed, chunks),
            chunk_count=len(chunks),
        )
        vectors, failure = self._embed(doc_id, chunks, before, deadline, embedded)
        generation = None
        try:
            generation = self._write_vectors(doc_id, path, chunks, vectors)
        except DependencyUnavailable as error:
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
        record = replace(record, generation=generation, embedded_count=embedded_count)
        return DocumentChange(doc_id, path, before, record, catalog_entry(path, parsed))

    def given_up(self, record: DocumentRecord, reason: str) -> DocumentChange:
        """The change that marks `record` FAILED with `reason`; its place in the exact tier stays."""
        stored = self._objects.read(record.file_path, max_bytes=self._max_document_bytes)
        entry = None
        if stored is not None and first_invalid_byte(stored.body) is None:
            path = record.file_path
            entry = catalog_entry(path, FrontmatterParser().read(stored.body.decode(), path=path))
        failed = replace(
            record, status=DocumentStatus.FAILED, reason=reason, revision=_unique(), updated_at=self._now()
        )
        return DocumentChange(record.doc_id, record.file_path, record, failed, entry)

    def remove_vectors(self, doc_id: DocId, generation: Generation) -> bool:
        """The generation is gone; False, with a warning logged, when the store did not answer."""
        try:
            self._vectors.delete(doc_id, generation)
        except DependencyUnavailable as error:
            extra = {"doc_id": doc_id, "generation": generation, "reason": str(error)}
            _logger.warning("vectors_not_removed", extra=extra)
            return False
        return True

    def _blank_record(
        self, doc_id: DocId, path: str, before: DocumentRecord | None, stored: StoredObject
    ) -> DocumentRecord:
        now = self._now()
        return DocumentRecord(
            doc_id=doc_id,
            file_path=path,
            status=DocumentStatus.FAILED,
            etag=stored.info.etag,
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
            revision=_unique(),
            created_at=before.created_at if before else now,
            updated_at=now,
        )

    def _embed(
        self,
        doc_id: DocId,
        chunks: Sequence[Chunk],
        before: DocumentRecord | None,
        deadline: float,
        vectors: dict[str, Vector],
    ) -> tuple[Mapping[str, Vector], DependencyUnavailable | InvalidInput | None]:
        """Vectors by content hash, and why some are missing. Chunks embedded before cost no embedding."""
        wanted = {chunk.content_hash: chunk.text for chunk in chunks}
        try:
            if before and before.generation and before.embedder == self._embedder.name:
                known = self._vectors.embeddings(doc_id, before.generation)
                vectors.update((content_hash, known[content_hash]) for content_hash in wanted.keys() & known.keys())
            missing = [content_hash for content_hash in wanted if content_hash not in vectors]
            for start in range(0, len(missing), _EMBED_BATCH):
                if self._clock() >= deadline:
                    message = f"{len(missing) - start} of {len(wanted)} chunks are still to be embedded"
                    raise DependencyUnavailable("embedder", message)
                batch = missing[start : start + _EMBED_BATCH]
                embedded = self._embedder.embed_passages([wanted[content_hash] for content_hash in batch])
                vectors.update(zip(batch, embedded, strict=True))
        except (DependencyUnavailable, InvalidInput) as error:
            return vectors, error
        return vectors, None

    def _write_vectors(
        self, doc_id: DocId, path: str, chunks: Sequence[Chunk], vectors: Mapping[str, Vector]
    ) -> Generation | None:
        """The chunks that have a vector are stored under a generation of their own; None when there is none."""
        embedded = [
            EmbeddedChunk(chunk, vectors[chunk.content_hash]) for chunk in chunks if chunk.content_hash in vectors
        ]
        if not embedded:
            return None
        generation = Generation(_unique())
        try:
            self._vectors.write(doc_id, generation, path, embedded)
        except DependencyUnavailable:
            self.remove_vectors(doc_id, generation)
            raise
        self._notes.claim()
        return generation


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


def first_invalid_byte(content: bytes) -> int | None:
    """The offset of the first byte that is not UTF-8, or None."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return None


def _unique() -> str:
    return uuid.uuid4().hex
