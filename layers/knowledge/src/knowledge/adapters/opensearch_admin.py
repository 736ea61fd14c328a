"""The indices behind an alias: made on first use, noted on, replaced whole. Knows nothing of what is stored in them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from knowledge.adapters.opensearch_calls import Backoff, ask, error_type, other_dimension, readable
from knowledge.adapters.opensearch_index import Document, Engine, definition
from knowledge.domain.document import Json
from knowledge.errors import Conflict

_REBUILD = "rebuild"


@dataclass(frozen=True, slots=True)
class IndexAdmin:
    """Everything that concerns a whole index."""

    client: OpenSearch
    alias: str
    engine: Engine
    dimension: int
    backoff: Backoff

    @property
    def rebuild_alias(self) -> str:
        """Names the index that is being built to replace the current one."""
        return f"{self.alias}-{_REBUILD}"

    def ensure(self) -> None:
        """The alias names an index: one call when it did already, three otherwise. Others may do the same meanwhile."""
        if not ask(lambda: self.client.indices.exists_alias(name=self.alias), self.backoff):
            self._create(1, self.alias)

    def check_dimension(self) -> None:
        """The index is absent or for vectors as long as ours; raises CorruptState otherwise. One call."""
        mapping = self._mapping()
        with readable():
            stored = mapping["properties"]["vector"]["dimension"] if mapping else self.dimension
        if stored != self.dimension:
            raise other_dimension(self.dimension, stored)

    def notes(self) -> Mapping[str, Json]:
        """What was noted with the current index; one call."""
        mapping = self._mapping()
        with readable():
            return dict(mapping.get("_meta", {})) if mapping is not None else {}

    def note(self, notes: Mapping[str, Json]) -> None:
        """These are the notes of the current index, which is made if there is none: one call, five then."""
        put = lambda: self.client.indices.put_mapping(index=self.alias, body={"_meta": dict(notes)})  # noqa: E731
        if ask(put, self.backoff) is None:
            self.ensure()
            ask(put, self.backoff)

    def begin_rebuild(self) -> None:
        """`rebuild_alias` names a new, empty index. One that an earlier rebuild left unfinished is removed."""
        known = self._indices()
        for name in [name for name, aliases in known.items() if self.rebuild_alias in aliases]:
            ask(lambda name=name: self.client.indices.delete(index=name), self.backoff)  # type: ignore[misc]
        self._create(max((self._number(name) for name in known), default=0) + 1, self.rebuild_alias)

    def finish_rebuild(self) -> None:
        """The alias names the rebuilt index, from one moment to the next; the one before it is gone afterwards.

        Raises:
            Conflict: no rebuild was begun, or somebody else has finished it.
        """
        known = self._indices()
        rebuilt = [name for name, aliases in known.items() if self.rebuild_alias in aliases]
        if not rebuilt:
            raise Conflict("there is no rebuilt index to change to: begin a rebuild first")
        old = [name for name, aliases in known.items() if self.alias in aliases]
        changes = [{"remove": {"index": name, "alias": self.alias}} for name in old]
        changes += [{"add": {"index": name, "alias": self.alias}} for name in rebuilt]
        changes += [{"remove": {"index": name, "alias": self.rebuild_alias}} for name in rebuilt]
        if ask(lambda: self.client.indices.update_aliases(body={"actions": changes}), self.backoff) is None:
            raise Conflict("somebody else has changed to a rebuilt index")
        for name in old:
            ask(lambda name=name: self.client.indices.delete(index=name), self.backoff)  # type: ignore[misc]

    def _create(self, number: int, alias: str) -> None:
        """That index is there under `alias`; somebody else may have made it.

        The alias comes second, because the index can be searched once its creation has been answered, and not before.
        """
        name, body = f"{self.alias}-{number:06}", definition(self.engine, self.dimension)

        def create() -> Any:
            try:
                return self.client.indices.create(index=name, body=body)
            except RequestError as error:
                # Made by another process a moment ago, or by this one in a call whose answer was lost.
                kind = error_type(error.info.get("error") if isinstance(error.info, dict) else None)
                if kind == "resource_already_exists_exception":
                    return {}
                raise

        ask(create, self.backoff)
        changes = [{"add": {"index": name, "alias": alias}}]
        ask(lambda: self.client.indices.update_aliases(body={"actions": changes}), self.backoff)

    def _mapping(self) -> Document | None:
        found = ask(lambda: self.client.indices.get_mapping(index=self.alias), self.backoff)
        if found is None:
            return None
        with readable():
            (index,) = found.values()
            mapping: Document = index["mappings"]
            return mapping

    def _indices(self) -> dict[str, set[str]]:
        """The aliases of each index of ours by the index's name."""
        found = ask(lambda: self.client.indices.get(index=f"{self.alias}-*"), self.backoff) or {}
        with readable():
            return {name: set(index["aliases"]) for name, index in found.items() if self._number(name)}

    def _number(self, name: str) -> int:
        """Which of our indices `name` is, from 1; 0 for somebody else's."""
        found = re.fullmatch(rf"{re.escape(self.alias)}-(\d{{6,}})", name)
        return int(found[1]) if found else 0
