"""The exact tier's catalog: loaded once, brought up to date on every lookup. Must not know how answers are routed."""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from knowledge.domain.age import is_fresh
from knowledge.domain.document import KnowledgeBasePath, KnowledgeEntry
from knowledge.domain.lookup import MAX_CONTENT_CHARS, excerpt
from knowledge.domain.text import decode_head
from knowledge.errors import AccessRefused, CorruptState, DependencyUnavailable, UnusableCatalog
from knowledge.ports import CatalogLog, ObjectStore
from knowledge.retrieval.catalog_index import CatalogIndex
from knowledge.retrieval.matches import Matches
from knowledge.services.catalog_snapshots import CatalogState
from knowledge.services.catalog_source import CatalogSource

_logger = logging.getLogger(__name__)

# UTF-8 takes at most four bytes for a code point (Source: RFC 3629), and a byte order mark three.
_MAX_BYTES_PER_CHAR = 4
# After a failed load the next attempt waits this long, so that an outage is not hammered by every lookup.
_RETRY_LOAD_AFTER_S = 2.0
# How long a lookup waits for a catalog that has to be loaded anew. Source: the default of CATALOG_LOAD_WAIT_S.
_RELOAD_WAIT_S = 5.0


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
        clock: Callable[[], float] = time.time,
    ) -> None:
        """An empty index that is not loaded yet. `clock` gives seconds since the epoch."""
        self._objects = objects
        self._source = CatalogSource(objects, log, base, max_document_bytes=max_document_bytes)
        self._max_staleness_s = max_staleness_s
        self._clock = clock
        self._state: CatalogState | None = None
        self._is_outdated = False
        self._checked_at = float("-inf")
        self._failed_at = float("-inf")
        self._changing = threading.Lock()
        self._loading: threading.Thread | None = None

    @property
    def entries(self) -> Sequence[KnowledgeEntry]:
        """Every entry, in key order; empty while not loaded."""
        return self._state.index.entries if self._state else ()

    def load(self) -> None:
        """Every committed change is in the index; without a snapshot, every document under the prefix with frontmatter.

        The calls and errors of `CatalogSource.load`; after an error the index is as it was. Loading again replaces
        everything.
        """
        with self._changing:
            self._load()

    def start_loading(self) -> None:
        """`load` runs in the background, once; a failure is logged and tried again by a later call."""
        is_loaded = self._state is not None and not self._is_outdated
        if is_loaded or (self._loading is not None and self._loading.is_alive()):
            return
        if is_fresh(self._failed_at, self._clock(), _RETRY_LOAD_AFTER_S):
            return
        loading = threading.Thread(target=self._load_in_background, name="catalog-load", daemon=True)
        # Started before it is shown: another lookup may wait for it at once.
        loading.start()
        self._loading = loading

    def wait_until_loaded(self, timeout_s: float) -> bool:
        """True as soon as the index is loaded; False when it is not after `timeout_s` seconds or the load failed."""
        self.start_loading()
        if self._loading is not None and self._state is None:
            self._loading.join(timeout_s)
        return self._state is not None

    def refresh(self) -> None:
        """Every change committed before this call is in the index, within `max_staleness_s`.

        One strongly consistent read when nothing changed. Where the log does not go on from this copy, the index is
        loaded anew in the background, which is waited for up to five seconds.

        Raises:
            DependencyUnavailable: the log did not answer; the index is as it was.
            CorruptState: the index is still being loaded anew, or that failed; it is as it was.
        """
        if is_fresh(self._checked_at, self._clock(), self._max_staleness_s):
            return
        if not self._is_outdated and self._caught_up():
            return
        self.start_loading()
        if self._loading is not None:
            self._loading.join(_RELOAD_WAIT_S)
        # What was committed after that load began, and before this call, has to be there too.
        if not self._is_outdated and self._caught_up():
            return
        raise CorruptState("the catalog is being loaded anew")

    def add(self, entry: KnowledgeEntry) -> None:
        """`entry` is in the index, in place of an earlier one of the same path; nothing is stored.

        Loads first where that was not done yet, with the errors of `load`.
        """
        with self._changing:
            if self._state is None:
                self._load()
            current = self._state or CatalogState(0, CatalogIndex())
            self._state = CatalogState(current.version, current.index.changed({entry.file_path: entry}))

    def match(self, query: str) -> Matches:
        """The documents the query hits and by what, in key order; empty while not loaded."""
        return (self._state.index if self._state else CatalogIndex()).match(query)

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
        text = decode_head(stored.body)
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
        loaded = self._source.load()
        self._state, self._is_outdated = loaded.state, False
        self._checked_at = checked_at
        _logger.info(
            "catalog_loaded",
            extra={
                "source": str(loaded.origin),
                "document_count": len(loaded.state.index),
                "version": loaded.state.version,
                "elapsed_ms": round((time.perf_counter() - started) * 1000),
            },
        )

    def _caught_up(self) -> bool:
        """True when the index holds what was committed; False when it has to be loaded anew."""
        with self._changing:
            if self._state is None:
                self._load()
                return True
            checked_at = self._clock()
            try:
                self._state = self._source.caught_up(self._state)
            except UnusableCatalog as error:
                _logger.warning(
                    "catalog_log_unusable",
                    extra={"version": self._state.version, "cause": error.cause, "reason": str(error)},
                )
                self._is_outdated = True
                return False
            self._checked_at = checked_at
            return True


def _is_expected(error: Exception) -> bool:
    return isinstance(error, DependencyUnavailable | CorruptState)
