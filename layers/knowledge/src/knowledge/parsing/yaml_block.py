"""The YAML block of a document as JSON values, every scalar as its author typed it. Knows nothing of delimiters.

PyYAML scans and composes; nothing is resolved or constructed, so no text becomes a number, a date or an object.
"""

import re
from dataclasses import dataclass
from typing import Any

from yaml.composer import Composer
from yaml.cyaml import CBaseLoader
from yaml.error import Mark, MarkedYAMLError
from yaml.events import CollectionStartEvent, ScalarEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import Reader

from knowledge.domain.document import Json
from knowledge.parsing.yaml_values import MAX_DEPTH, NULL_TAG, TOO_DEEP, BlockError, Expansion, Note

# The metadata item of a document holds the block twice (once as JSON, once as catalog entry) beside everything else.
# Source: Amazon DynamoDB developer guide, "Quotas": an item is at most 400 KB.
MAX_BLOCK_BYTES = 64 * 1024
# Source: YAML 1.2.2, section 10.3.2, core schema; the empty plain scalar is null in 10.2.1.1.
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
# Source: yaml.org/type, the language-independent types of YAML 1.1, and section 10 of YAML 1.2.2.
_STANDARD_TAG = re.compile(
    r"tag:yaml\.org,2002:(?:binary|bool|float|int|map|merge|null|omap|pairs|seq|set|str|timestamp|value|yaml)"
)


@dataclass(frozen=True, slots=True)
class Block:
    """A block that is a mapping: its JSON, and the node of each top-level key (of the last one where it repeats)."""

    fields: dict[str, Json]
    nodes: dict[str, Node]
    notes: tuple[Note, ...]


def load_block(text: str) -> Block | None:
    """The mapping that `text` holds, or None when it is one scalar or nothing at all.

    Raises BlockError for everything else: bad YAML, a list, a tag that is not standard, a limit exceeded.
    """
    size_bytes = len(text.encode("utf-8", "surrogatepass"))
    if size_bytes > MAX_BLOCK_BYTES:
        raise BlockError(f"the block has {size_bytes} bytes; {MAX_BLOCK_BYTES} are allowed")
    if unprintable := Reader.NON_PRINTABLE.search(text):
        raise BlockError(f"character U+{ord(unprintable[0]):04X} is not allowed in YAML", unprintable.start())
    root = _compose(text)
    if isinstance(root, SequenceNode):
        raise BlockError("the block is a list, not a mapping of keys to values", root.start_mark.index, is_data=True)
    if not isinstance(root, MappingNode):
        return None
    expansion = Expansion()
    fields = expansion.mapping(root)
    nodes = {expansion.key(key): value for key, value in root.value}
    return Block(fields, nodes, tuple(expansion.notes))


def _compose(text: str) -> Node | None:
    try:
        return _Loader(text).get_single_node()
    except BlockError:
        raise
    except MarkedYAMLError as error:
        raise _described(error, text) from error
    except Exception as error:  # an author's YAML raises far more than YAMLError
        raise BlockError(f"it cannot be read as YAML ({type(error).__name__})") from error


def _described(error: MarkedYAMLError, text: str) -> BlockError:
    """What PyYAML says in one sentence: the problem, then the context with its own line when that is another one."""
    mark = error.problem_mark or error.context_mark
    # What is missing at the end is missing behind the last character, not on the closing line.
    index = min(mark.index, len(text.rstrip())) if mark else None
    before = text[:index]
    if sum(map(before.count, "[{")) - sum(map(before.count, "]}")) > MAX_DEPTH:  # the scanner has a limit of its own
        return BlockError(TOO_DEEP, index, is_data=True)
    reason = ", ".join(part for part in (error.problem, error.context) if part)
    return BlockError(f"{reason or 'it is not YAML'} (a value with special characters needs quotes)", index)


class _Loader(Composer, CBaseLoader):
    """Composes nodes without implicit types, except that plain null is null; stops at a limit before recursing."""

    def __init__(self, text: str) -> None:
        CBaseLoader.__init__(self, text)
        Composer.__init__(self)
        self._depth = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event = self.peek_event()
        if isinstance(event, ScalarEvent | CollectionStartEvent) and not _is_allowed(event.tag):
            raise BlockError(f"the tag {event.tag!r} is not allowed", _index(event.start_mark))
        nested = isinstance(event, CollectionStartEvent)
        self._depth += nested
        if event is not None and self._depth > MAX_DEPTH:
            raise BlockError(TOO_DEEP, _index(event.start_mark), is_data=True)
        node = super().compose_node(parent, index)
        self._depth -= nested
        return node

    def resolve(self, kind: type[Node], value: str | None, implicit: object) -> str:
        is_plain = isinstance(implicit, tuple) and implicit[0]
        if kind is ScalarNode and is_plain and value in _NULLS:
            return NULL_TAG
        return str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]


def _is_allowed(tag: str | None) -> bool:
    return tag is None or tag == "!" or _STANDARD_TAG.fullmatch(tag) is not None


def _index(mark: Mark | Any | None) -> int:
    return int(mark.index) if mark else 0
