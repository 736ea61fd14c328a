"""Every document's entry, read from the files themselves. Knows nothing of the log and of snapshots."""

import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from knowledge.domain.document import KnowledgeBasePath, KnowledgeEntry, ParsedDocument
from knowledge.domain.text import decode_head
from knowledge.errors import AccessRefused
from knowledge.parsing.frontmatter import FrontmatterParser, frontmatter_is_complete
from knowledge.parsing.sections import display_title
from knowledge.ports import ObjectInfo, ObjectStore

_logger = logging.getLogger(__name__)

# A block of frontmatter is rarely over 2 KiB; one ranged read of this many bytes holds nearly all of them.
_HEAD_BYTES = 16 * 1024
# Source: Amazon S3 user guide, "Performance guidelines": latency is hidden by concurrent requests. 32 matches the
# client's connection pool.
_SCAN_THREADS = 32


def scan(objects: ObjectStore, base: KnowledgeBasePath, *, max_document_bytes: int) -> Iterable[KnowledgeEntry]:
    """The entry of every document under the prefix that has frontmatter, in key order.

    One list call for each 1,000 objects, one ranged read for each document, 32 at a time. A file that is broken,
    refused or larger than `max_document_bytes` is left out.
    """
    documents = [
        info for info in objects.list(base.prefix) if base.holds(info.key) and 0 < info.size_bytes <= max_document_bytes
    ]
    if not documents:
        _logger.info("knowledge_base_empty", extra={"path": base.prefix})
        return []

    def read(info: ObjectInfo) -> KnowledgeEntry | None:
        """One object that is refused (archived, encrypted with a foreign key) must not take the others with it."""
        try:
            return _read_entry(objects, info, max_document_bytes)
        except AccessRefused as error:
            _logger.error("document_unreadable", extra={"path": info.key, "reason": str(error)})
            return None

    with ThreadPoolExecutor(max_workers=_SCAN_THREADS, thread_name_prefix="catalog-scan") as threads:
        return [entry for entry in threads.map(read, documents) if entry is not None]


def catalog_entry(path: str, parsed: ParsedDocument) -> KnowledgeEntry | None:
    """The exact tier's entry for a document; None for one without valid frontmatter."""
    if parsed.frontmatter is None:
        return None
    return KnowledgeEntry(
        file_path=path,
        title=display_title(parsed.frontmatter, parsed.prose, path),
        keywords=parsed.frontmatter.keywords,
        summary=parsed.frontmatter.summary,
    )


def _read_entry(objects: ObjectStore, info: ObjectInfo, max_document_bytes: int) -> KnowledgeEntry | None:
    stored = objects.read(info.key, max_bytes=_HEAD_BYTES)
    text = decode_head(stored.body) if stored else None
    if stored and stored.truncated and text is not None and not frontmatter_is_complete(text):
        stored = objects.read(info.key, max_bytes=max_document_bytes)
        text = decode_head(stored.body) if stored else None
    if text is None:
        return None
    return catalog_entry(info.key, FrontmatterParser(log_problems=False).read(text, path=info.key))
