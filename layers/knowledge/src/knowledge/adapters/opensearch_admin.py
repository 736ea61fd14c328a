"""The indices behind an alias: made on first use, noted on, replaced whole. Knows nothing of what is stored in them.

With a base alias `knowledge`, the index of one embedder is `knowledge-1a2b3c4d-000001` behind `knowledge-1a2b3c4d`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from knowledge.adapters.index_names import NAME_CHARS, other_embedder
from knowledge.adapters.opensearch_calls import Backoff, ask, error_type, other_dimension, readable
from knowledge.adapters.opensearch_index import Document, Engine, alias_of, definition
from knowledge.domain.document import Json
from knowledge.errors import Conflict

_REBUILD = "rebuild"


@dataclass(frozen=True, slots=True)
class IndexAdmin:
    """Everything that concerns a whole index."""

    client: OpenSearch
    base: str
    """What the names of all embedders' indices begin with."""
    embedder: str | None
    """Whose index it is; None for one that shares `base` with no other."""
    engine: Engine
    dimension: int
    backoff: Backoff
    may_create: bool = True
    """False for an index that is being built: when it is gone, somebody else has finished with it."""

    @property
    def alias(self) -> str:
        """Names the current index."""
        return alias_of(self.base, self.embedder, self.dimension)

    @property
    def rebuild_alias(self) -> str:
        """Names the index that is being built to replace the current one."""
        return f"{self.alias}-{_REBUILD}"

    def ensure(self) -> None:
        """The alias names an index: one call when it did already, four otherwise. Others may do the same meanwhile.

        Raises:
            OtherEmbedder: there is none yet, but one of another embedder.
            Conflict: it was being built, and somebody else has finished with it.
        """
        if ask(lambda: self.client.indices.exists_alias(name=self.alias), self.backoff):
            return
        if not self.may_create:
            raise Conflict("the index that was being built is gone: somebody else has finished or removed it")
        self.refuse_other()
        self._create(1, self.alias)

    def refuse_other(self) -> None:
        """Where our own index is absent: raises OtherEmbedder when another embedder has one. One call."""
        if self.embedder is None:
            return
        for index in self._indices(of_others=True).values():
            if any(not alias.endswith(f"-{_REBUILD}") for alias in index["aliases"]):
                raise other_embedder(index["mappings"].get("_meta", {}), self.embedder)

    def check_dimension(self) -> None:
        """The index is absent or for vectors as long as ours; raises CorruptState otherwise. One call."""
        mapping = self._mapping()
        with readable():
            stored = mapping["properties"]["vector"]["dimension"] if mapping else self.dimension
        if stored != self.dimension:
            raise other_dimension(self.dimension, stored)

    def notes(self) -> Mapping[str, Json]:
        """What was noted with the current index; one call, two without one. Raises OtherEmbedder."""
        mapping = self._mapping()
        if mapping is None:
            self.refuse_other()
        with readable():
            return dict(mapping.get("_meta", {})) if mapping is not None else {}

    def note(self, notes: Mapping[str, Json]) -> None:
        """These are the notes of the current index, which is made if there is none: one call, five then."""
        put = lambda: self.client.indices.put_mapping(index=self.alias, body={"_meta": dict(notes)})  # noqa: E731
        if ask(put, self.backoff) is None:
            self.ensure()
            ask(put, self.backoff)

    def begin_rebuild(self) -> None:
        """`rebuild_alias` names an index that nobody searches: what an earlier rebuild left, or a new one."""
        known = self._indices()
        unfinished = {name: index for name, index in known.items() if self.rebuild_alias in index["aliases"]}
        for name, index in unfinished.items():
            with readable():
                if index["mappings"]["properties"]["vector"]["dimension"] == self.dimension:
                    return
            self._delete(name)
        # The first is for whoever writes before there is an index.
        self._create(max(map(self._number, known), default=1) + 1, self.rebuild_alias)

    def finish_rebuild(self) -> None:
        """The alias names the rebuilt index, from one moment to the next; every other one of ours is gone afterwards.

        Raises:
            Conflict: no rebuild was begun, or somebody else has finished it.
        """
        known = self._indices()
        rebuilt = [name for name, index in known.items() if self.rebuild_alias in index["aliases"]]
        if not rebuilt:
            raise Conflict("there is no rebuilt index to change to: begin a rebuild first")
        old = [name for name, index in known.items() if self.alias in index["aliases"] and name not in rebuilt]
        changes = [{"remove": {"index": name, "alias": self.alias}} for name in old]
        changes += [{"add": {"index": name, "alias": self.alias}} for name in rebuilt]
        changes += [{"remove": {"index": name, "alias": self.rebuild_alias}} for name in rebuilt]
        if ask(lambda: self.client.indices.update_aliases(body={"actions": changes}), self.backoff) is None:
            raise Conflict("somebody else has changed to a rebuilt index")
        for name in known.keys() - set(rebuilt):
            self._delete(name)

    def remove_others(self) -> None:
        """No index of another embedder is left: one call, and one for each."""
        for name in self._indices(of_others=True) if self.embedder is not None else ():
            self._delete(name)

    def _delete(self, name: str) -> None:
        ask(lambda: self.client.indices.delete(index=name), self.backoff)

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

    def _indices(self, *, of_others: bool = False) -> dict[str, Document]:
        """Our indices by name, each with aliases and mappings; or those of other embedders."""
        found = ask(lambda: self.client.indices.get(index=f"{self.base}-*"), self.backoff) or {}
        any_of_them = re.compile(rf"{re.escape(self.base)}(-[0-9a-f]{{{NAME_CHARS}}})?-\d{{6,}}")
        with readable():
            return {
                name: index
                for name, index in found.items()
                if any_of_them.fullmatch(name) and bool(self._number(name)) is not of_others
            }

    def _number(self, name: str) -> int:
        """Which of our indices `name` is, from 1; 0 for somebody else's."""
        found = re.fullmatch(rf"{re.escape(self.alias)}-(\d{{6,}})", name)
        return int(found[1]) if found else 0
