"""The exact tier's catalog: loaded once, brought up to date on every lookup. Must not know how answers are routed."""

import codecs
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from knowledge.domain.document import KnowledgeBasePath, KnowledgeEntry, ParsedDocument
from knowledge.domain.lookup import MAX_CONTENT_CHARS, excerpt
from knowledge.errors import AccessRefused, CorruptState, DependencyUnavailable
from knowledge.parsing.frontmatter import FrontmatterParser, frontmatter_is_complete
from knowledge.parsing.sections import display_title
from knowledge.ports import CatalogLog, ObjectInfo, ObjectStore
from knowledge.retrieval.catalog_index import CatalogIndex
from knowledge.retrieval.keyword_index import Match

_logger = logging.getLogger(__name__)

# A block of frontmatter is rarely over 2 KiB; one ranged read of this many bytes holds nearly all of them.
_HEAD_BYTES = 16 * 1024
# Source: Amazon S3 user guide, "Performance guidelines": latency is hidden by concurrent requests. 32 matches the
# client's connection pool.
_SCAN_THREADS = 32
# UTF-8 takes at most four bytes for a code point (Source: RFC 3629), and a byte order mark three.
_MAX_BYTES_PER_CHAR = 4
# After a failed load the next attempt waits this long, so that an outage is not hammered by every lookup.
_RETRY_LOAD_AFTER_S = 2.0


@dataclass(frozen=True, slots=True)
class _Snapshot:
    version: int
    index: CatalogIndex


class KnowledgeIndex:
    """What the exact tier knows, in this process. Thread-safe: the index is immutable and swapped."""

    def __init__(
        self,
        objects: ObjectStore,
        log: CatalogLog,
        base: KnowledgeBasePath,
        *,
        max_document_bytes: int,
        max_staleness_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """An empty index that is not loaded yet. `clock` gives seconds, monotonic."""
        self._objects = objects
        self._log = log
        self._base = base
        self._max_document_bytes = max_document_bytes
        self._max_staleness_s = max_staleness_s
        self._clock = clock
        self._snapshot: _Snapshot | None = None
        self._checked_at = float("-inf")
        self._failed_at = float("-inf")
        self._changing = threading.Lock()
        self._loading: threading.Thread | None = None

    @property
    def entries(self) -> Sequence[KnowledgeEntry]:
        """Every entry, in key order; empty while not loaded."""
        return self._snapshot.index.entries if self._snapshot else ()

    def load(self) -> None:
        """Every document under the prefix that has frontmatter is in the index.

        Reads the log's head, scans (one list call for each 1,000 objects, one ranged read for each document, 32 at a
        time), then applies what was committed meanwhile. Loading again replaces everything.

        Raises:
            DependencyUnavailable: a store did not answer; the index is as it was.
        """
        with self._changing:
            self._load()

    def start_loading(self) -> None:
        """`load` runs in the background, once; a failure is logged and tried again by a later call."""
        if self._snapshot is not None or (self._loading is not None and self._loading.is_alive()):
            return
        if self._clock() - self._failed_at < _RETRY_LOAD_AFTER_S:
            return
        loading = threading.Thread(target=self._load_in_background, name="catalog-load", daemon=True)
        # Started before it is shown: another lookup may wait for it at once.
        loading.start()
        self._loading = loading

    def wait_until_loaded(self, timeout_s: float) -> bool:
        """True as soon as the index is loaded; False when it is not after `timeout_s` seconds or the load failed."""
        self.start_loading()
        if self._loading is not None and self._snapshot is None:
            self._loading.join(timeout_s)
        return self._snapshot is not None

    def refresh(self) -> None:
        """Every change committed before this call is in the index, within `max_staleness_s`.

        One strongly consistent read when nothing changed. A gap in the log means that this copy is too old: then the
        index is loaded anew.

        Raises:
            DependencyUnavailable: the log did not answer; the index is as it was.
        """
        if self._clock() - self._checked_at < self._max_staleness_s:
            return
        with self._changing:
            if self._snapshot is None:
                self._load()
            else:
                self._catch_up(self._snapshot)

    def add(self, entry: KnowledgeEntry) -> None:
        """`entry` is in the index, in place of an earlier one of the same path; nothing is stored.

        Loads first where that was not done yet, with the errors of `load`.
        """
        with self._changing:
            if self._snapshot is None:
                self._load()
            current = self._snapshot or _Snapshot(0, CatalogIndex())
            self._snapshot = _Snapshot(current.version, current.index.changed({entry.file_path: entry}))

    def match(self, query: str) -> Sequence[Match]:
        """The documents the query hits and by what, in key order; empty while not loaded."""
        return self._snapshot.index.match(query) if self._snapshot else ()

    def exact_match(self, query: str) -> list[KnowledgeEntry]:
        """The documents the query hits, in key order; an empty list when there are none."""
        return [match.entry for match in self.match(query)]

    def read_document(self, path: str, max_chars: int = MAX_CONTENT_CHARS) -> str | None:
        """The document's text, whole up to `max_chars` code points, else the first `max_chars` and `...`.

        One ranged read. A missing or unreadable file is logged as an error and gives None.
        """
        try:
            stored = self._objects.read(path, max_bytes=(max_chars + 1) * _MAX_BYTES_PER_CHAR)
        except AccessRefused as error:
            _logger.error("document_unreadable", extra={"path": path, "reason": str(error)})
            return None
        if stored is None:
            _logger.error("document_missing", extra={"path": path})
            return None
        text = _decode_head(stored.body)
        if text is None:
            _logger.error("document_unreadable", extra={"path": path})
            return None
        return excerpt(text, max_chars)

    def _load_in_background(self) -> None:
        try:
            self.load()
        except Exception as error:  # the outermost place of this thread; a lookup goes on without it
            self._failed_at = self._clock()
            _logger.error("catalog_load_failed", extra={"reason": str(error)}, exc_info=not _is_expected(error))

    def _load(self) -> None:
        started, checked_at = time.perf_counter(), self._clock()
        version = self._log.head()
        entries = {entry.file_path: entry for entry in self._scan()}
        index = CatalogIndex(entries.values())
        self._snapshot = self._replayed(_Snapshot(version, index))
        self._checked_at = checked_at
        _logger.info(
            "catalog_loaded",
            extra={
                "document_count": len(self._snapshot.index),
                "version": self._snapshot.version,
                "elapsed_ms": round((time.perf_counter() - started) * 1000),
            },
        )

    def _catch_up(self, snapshot: _Snapshot) -> None:
        checked_at = self._clock()
        try:
            self._snapshot = self._replayed(snapshot)
        except CorruptState as error:
            _logger.warning("catalog_log_unusable", extra={"version": snapshot.version, "reason": str(error)})
            self._load()
        self._checked_at = checked_at

    def _replayed(self, snapshot: _Snapshot) -> _Snapshot:
        changes = self._log.changes_after(snapshot.version)
        if not changes:
            return snapshot
        if [change.version for change in changes] != list(range(snapshot.version + 1, changes[-1].version + 1)):
            raise CorruptState(f"the catalog log has a gap after version {snapshot.version}")
        latest = {path: entry for change in changes for path, entry in change.entries.items()}
        return _Snapshot(changes[-1].version, snapshot.index.changed(latest))

    def _scan(self) -> Iterable[KnowledgeEntry]:
        documents = [info for info in self._objects.list(self._base.prefix) if self._may_hold_entry(info)]
        if not documents:
            _logger.info("knowledge_base_empty", extra={"path": self._base.prefix})
            return []
        with ThreadPoolExecutor(max_workers=_SCAN_THREADS, thread_name_prefix="catalog-scan") as threads:
            return [entry for entry in threads.map(self._read_or_skip, documents) if entry is not None]

    def _may_hold_entry(self, info: ObjectInfo) -> bool:
        return self._base.holds(info.key) and 0 < info.size_bytes <= self._max_document_bytes

    def _read_or_skip(self, info: ObjectInfo) -> KnowledgeEntry | None:
        """One object that is refused (archived, encrypted with a foreign key) must not take the others with it."""
        try:
            return self._read_entry(info)
        except AccessRefused as error:
            _logger.error("document_unreadable", extra={"path": info.key, "reason": str(error)})
            return None

    def _read_entry(self, info: ObjectInfo) -> KnowledgeEntry | None:
        stored = self._objects.read(info.key, max_bytes=_HEAD_BYTES)
        text = _decode_head(stored.body) if stored else None
        if stored and stored.truncated and text is not None and not frontmatter_is_complete(text):
            stored = self._objects.read(info.key, max_bytes=self._max_document_bytes)
            text = _decode_head(stored.body) if stored else None
        if text is None:
            return None
        return catalog_entry(info.key, FrontmatterParser(log_problems=False).read(text, path=info.key))


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


def _is_expected(error: Exception) -> bool:
    return isinstance(error, DependencyUnavailable | CorruptState)


def _decode_head(head: bytes) -> str | None:
    """The text of a file's first bytes without byte order mark; a code point cut at the end is left out."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(head).removeprefix("\ufeff")
    except UnicodeDecodeError:
        return None
