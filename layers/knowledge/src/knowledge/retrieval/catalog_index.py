"""The exact tier's index of a whole catalog, and how it changes. Pure: no store, no clock."""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence

from knowledge.domain.document import KnowledgeEntry
from knowledge.errors import CorruptState
from knowledge.retrieval.keyword_index import KeywordIndex, Match


class CatalogIndex:
    """Every entry of the catalog, matched by keyword. Immutable: a change makes another one."""

    def __init__(self, entries: Iterable[KnowledgeEntry] = ()) -> None:
        """Index `entries`; at most one for each path, in any order."""
        self._keywords = KeywordIndex(entries)

    def __len__(self) -> int:
        """Number of documents."""
        return len(self._keywords)

    @property
    def entries(self) -> Sequence[KnowledgeEntry]:
        """Every entry, in key order."""
        return self._keywords.entries

    def match(self, query: str) -> Sequence[Match]:
        """Every document whose keyword the query contains, or that has a keyword containing the query, in key order."""
        return self._keywords.match(query)

    def changed(self, latest: Mapping[str, KnowledgeEntry | None]) -> "CatalogIndex":
        """The index in which each path of `latest` has the entry given there, or none where that is None."""
        entries = {entry.file_path: entry for entry in self.entries}
        for path, entry in latest.items():
            if entry is None:
                entries.pop(path, None)
            else:
                entries[path] = entry
        return CatalogIndex(entries.values())

    def dump(self) -> bytes:
        """The index as bytes that `load` reads in any process."""
        rows = [[entry.file_path, entry.title, entry.keywords, entry.summary] for entry in self.entries]
        return zlib.compress(json.dumps(rows, ensure_ascii=False).encode())

    @classmethod
    def load(cls, data: bytes) -> "CatalogIndex":
        """The index that `dump` wrote. Raises CorruptState when `data` was not written by it, or by another format."""
        try:
            rows = json.loads(zlib.decompress(data))
            return cls(KnowledgeEntry(path, title, tuple(words), summary) for path, title, words, summary in rows)
        except (ValueError, TypeError, zlib.error) as error:
            raise CorruptState("the snapshot of the catalog cannot be read") from error
