"""The catalog's entries in a few blocks of memory, in key order."""

import json
from collections.abc import Sequence

from knowledge.domain.document import KnowledgeEntry
from knowledge.retrieval.made_sequence import MadeSequence
from knowledge.retrieval.packed_texts import PackedTexts


class PackedEntries(MadeSequence[KnowledgeEntry]):
    """An immutable list of entries sorted by path, each made when it is asked for."""

    __slots__ = ("paths", "rests")

    def __init__(self, paths: PackedTexts, rests: PackedTexts) -> None:
        """`rests` holds the JSON list of title, summary and keywords of the entry with the same place in `paths`."""
        self.paths = paths
        self.rests = rests

    @classmethod
    def of(cls, entries: Sequence[KnowledgeEntry]) -> "PackedEntries":
        """`entries` packed; sorted by path, each path once."""
        rests = (
            json.dumps([entry.title, entry.summary, *entry.keywords], ensure_ascii=False, separators=(",", ":"))
            for entry in entries
        )
        return cls(PackedTexts.of(entry.file_path for entry in entries), PackedTexts.of(rests))

    def __len__(self) -> int:
        return len(self.paths)

    def made(self, place: int) -> KnowledgeEntry:
        """See MadeSequence."""
        title, summary, *keywords = json.loads(self.rests[place])
        return KnowledgeEntry(self.paths[place], title, tuple(keywords), summary)

    def place_of(self, path: str) -> int | None:
        """Where the entry of `path` is, or None."""
        wanted = path.encode("utf-8", "surrogatepass")
        place = self.paths.find(wanted)
        return place if place < len(self) and self.paths.bytes_at(place) == wanted else None
