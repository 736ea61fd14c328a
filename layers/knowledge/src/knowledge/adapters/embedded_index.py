"""Where the embedded store of each embedder keeps its objects, and the notes that say that they are an index."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from knowledge.adapters.index_names import index_name, other_embedder
from knowledge.domain.document import Json
from knowledge.errors import Conflict
from knowledge.ports import ObjectStore

_logger = logging.getLogger(__name__)

_MAX_NOTES_BYTES = 1024 * 1024
_NOTES = ".json"


@dataclass(frozen=True, slots=True)
class EmbeddedIndex:
    """Everything that concerns a whole index but its vectors."""

    objects: ObjectStore
    root: str
    """Under it are the folders of all embedders."""
    embedder: str | None
    """Whose index it is; None for one that is alone under `root`."""
    suffix: str = _NOTES

    @property
    def folder(self) -> str:
        """Where the vectors are."""
        return self.root if self.embedder is None else f"{self.root}{index_name(self.embedder)}/"

    @property
    def _all_notes(self) -> str:
        # Beside the root and not under it, so that a listing of vectors holds vectors alone.
        return f"{self.root.rstrip('/')}.notes/"

    @property
    def _notes_key(self) -> str:
        name = "index" if self.embedder is None else index_name(self.embedder)
        return f"{self._all_notes}{name}{self.suffix}"

    def is_there(self) -> bool:
        """False when no embedder has an index; raises OtherEmbedder when only another one has. One look."""
        if self.embedder is None or self.objects.stat(self._notes_key) is not None:
            return True
        self._refuse_other()
        return False

    def ensure(self) -> None:
        """The index is there; raises OtherEmbedder when only that of another embedder is. One look."""
        if not self.is_there():
            self._put({})

    def notes(self) -> Mapping[str, Json]:
        """What was noted with the index; one read. Raises OtherEmbedder."""
        notes = self._read(self._notes_key)
        if notes is None:
            self._refuse_other()
        return notes or {}

    def note(self, notes: Mapping[str, Json]) -> None:
        """These are the notes of the index, which is there from now on. Raises OtherEmbedder."""
        self.is_there()
        self._put(notes)

    def begin_rebuild(self) -> "EmbeddedIndex":
        """The same folder with notes of its own, which nobody takes for those of the index."""
        building = self._building()
        if self.objects.stat(building._notes_key) is None:
            building._put({})
        return building

    def finish_rebuild(self) -> None:
        """The notes of the rebuild are those of the index. Raises Conflict when there is no rebuild."""
        key = self._building()._notes_key
        notes = self._read(key)
        if notes is None:
            raise Conflict("there is no rebuilt index to change to: begin a rebuild first")
        self._put(notes)
        self.objects.delete(key)

    def remove_others(self) -> None:
        """Nothing is left of other embedders' indices."""
        if self.embedder is None:
            return
        own = (self._notes_key, self._building()._notes_key, self.folder)
        # The notes first: from then on nobody writes to that index.
        for prefix in (self._all_notes, self.root):
            for info in list(self.objects.list(prefix)):
                if not info.key.startswith(own):
                    self.objects.delete(info.key)

    def _building(self) -> "EmbeddedIndex":
        return replace(self, suffix=f"{_NOTES}.building")

    def _refuse_other(self) -> None:
        if self.embedder is None or self.suffix != _NOTES:
            return
        for info in self.objects.list(self._all_notes):
            if info.key.endswith(_NOTES) and info.key != self._notes_key:
                raise other_embedder(self._read(info.key) or {}, self.embedder)

    def _read(self, key: str) -> dict[str, Json] | None:
        """None when there are none; empty when they cannot be read."""
        stored = self.objects.read(key, max_bytes=_MAX_NOTES_BYTES)
        if stored is None:
            return None
        try:
            notes: dict[str, Json] = json.loads(stored.body)
        except ValueError:
            _logger.warning("notes_unreadable", extra={"key": key})
            return {}
        return notes

    def _put(self, notes: Mapping[str, Json]) -> None:
        body = json.dumps(dict(notes), ensure_ascii=False).encode()
        self.objects.put(self._notes_key, body, content_type="application/json")
