"""YAML nodes as JSON values, every scalar as its author typed it, within limits that aliases cannot get around."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from knowledge.domain.document import Json

# Two levels are left for the record around the block.
# Source: Amazon DynamoDB developer guide, "Quotas": nested attributes are at most 32 levels deep.
MAX_DEPTH = 30
# Nodes and characters that aliases may repeat. Small beside the largest block, so that the expanded block still fits
# the item; real anchors repeat a list of tags or an address.
MAX_ALIAS_EXPANSION = 16 * 1024

TOO_DEEP = f"values are nested too deep; {MAX_DEPTH} levels are allowed"

NULL_TAG = "tag:yaml.org,2002:null"


class BlockError(ValueError):
    """The block cannot be read; `index` is the character of the block where that shows, None when it is everywhere.

    `is_data` says that the block is no prose between two rules, whatever else it is.
    """

    def __init__(self, reason: str, index: int | None = None, *, is_data: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.index = index
        self.is_data = is_data


@dataclass(frozen=True, slots=True)
class Note:
    """Something in a readable block that its author should know."""

    index: int
    reason: str


@dataclass(slots=True)
class Expansion:
    """Nodes to JSON. Counts what aliases repeat, so that a small block cannot become a large one."""

    notes: list[Note] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)
    _open: list[int] = field(default_factory=list)
    _repeated: int = 0

    def value(self, node: Node) -> Json:
        """Plain null as None, other scalars as text, lists and mappings likewise. Raises BlockError."""
        if isinstance(node, ScalarNode):
            self._count(node, 1 + len(node.value))
            return None if node.tag == NULL_TAG else str(node.value)
        if isinstance(node, MappingNode):
            return self.mapping(node)
        return [self.value(item) for item in self._items(node)] if isinstance(node, SequenceNode) else None

    def mapping(self, node: MappingNode) -> dict[str, Json]:
        """The mapping with its keys as text; of a repeated key the last value, and a note. Raises BlockError."""
        fields: dict[str, Json] = {}
        for key, value in self._items(node):
            name = self.key(key)
            if name in fields:
                reason = f"the key {name!r} is given more than once; the last one counts"
                self.notes.append(Note(key.start_mark.index, reason))
            if _is_template(value):
                reason = f"the value of {name!r} is a template that nothing fills; a text with {{{{ needs quotes"
                raise BlockError(reason, value.start_mark.index)
            fields[name] = self.value(value)
        return fields

    def key(self, node: Node) -> str:
        """The key as text: a scalar as typed, anything else as its JSON."""
        return str(node.value) if isinstance(node, ScalarNode) else json.dumps(self.value(node), ensure_ascii=False)

    def _items(self, node: CollectionNode) -> Iterator[Any]:
        self._count(node, 1)
        if id(node) in self._open:
            raise BlockError("an alias refers to the value it stands in", node.start_mark.index)
        if len(self._open) == MAX_DEPTH:
            raise BlockError(TOO_DEEP, node.start_mark.index)
        self._open.append(id(node))
        yield from node.value
        self._open.pop()

    def _count(self, node: Node, size: int) -> None:
        if id(node) in self._seen:
            self._repeated += size
            if self._repeated > MAX_ALIAS_EXPANSION:
                raise BlockError("its aliases repeat too much: an alias may not multiply the block")
        self._seen.add(id(node))


def _is_template(node: Node) -> bool:
    """True for `{{ name }}`, which YAML takes for a mapping whose key is a mapping."""
    if not (isinstance(node, MappingNode) and node.flow_style):
        return False
    return any(isinstance(key, MappingNode) and key.flow_style for key, _ in node.value)
