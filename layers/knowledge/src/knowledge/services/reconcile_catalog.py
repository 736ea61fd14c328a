"""The catalog as it was committed, by path: what a reader has that begins with the newest snapshot."""

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter

from knowledge.domain.document import KnowledgeEntry
from knowledge.errors import CorruptState, DependencyUnavailable
from knowledge.services.catalog_snapshots import CatalogState
from knowledge.services.catalog_source import CatalogSource

_logger = logging.getLogger(__name__)

_path_of = attrgetter("file_path")


class CommittedCatalog:
    """One copy of the catalog, brought up to date whenever an entry is asked for."""

    def __init__(self, source: CatalogSource, state: CatalogState) -> None:
        """`state` is of `source`."""
        self._source = source
        self._state = state

    @classmethod
    def load(cls, source: CatalogSource) -> "CommittedCatalog | None":
        """From a snapshot or the whole log; None, with a warning, where neither can be used.

        A scan would only say what the files say.
        """
        try:
            loaded = source.load_committed()
        except (DependencyUnavailable, CorruptState) as error:
            _logger.warning("catalog_left_out", extra={"reason": str(error)})
            return None
        return cls(source, loaded.state) if loaded else None

    def after(self, path: str) -> Iterator[KnowledgeEntry]:
        """The entries of all paths greater than `path`, in order, as they were when it was last brought up to date."""
        entries = self._state.index.entries
        return (entries[place] for place in range(bisect_right(entries, path, key=_path_of), len(entries)))

    def entry(self, path: str) -> KnowledgeEntry | None:
        """What the exact tier has of `path` now; one read of the log.

        Raises:
            DependencyUnavailable: the log did not answer.
            CorruptState: the log no longer goes on from here, because compaction has overtaken this.
        """
        self._state = self._source.caught_up(self._state)
        entries = self._state.index.entries
        place = bisect_left(entries, path, key=_path_of)
        return entries[place] if place < len(entries) and entries[place].file_path == path else None
