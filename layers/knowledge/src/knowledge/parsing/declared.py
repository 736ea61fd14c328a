"""What the fields of a frontmatter block mean: title, summary, keywords. Knows YAML nodes, not delimiters or limits."""

import re
from collections.abc import Iterator, Mapping

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from knowledge.domain.document import Frontmatter
from knowledge.domain.text import normalise
from knowledge.parsing.yaml_block import Block
from knowledge.parsing.yaml_values import NULL_TAG, Note

# A keyword is a name or a phrase that a query contains. Nobody types a longer one, so it would only cost memory in
# every index; a longer one is nearly always a sentence, or a list with an unexpected separator.
MAX_KEYWORD_CHARACTERS = 200

# Lists that hold `no` and `NO`, a word and a country, mean both; only these words are read as booleans elsewhere, so
# only these are typed in capitals to be told apart. Matching ignores case anyway.
# Source: yaml.org/type/bool.html, without the single letters.
_WORDS_IN_CAPITALS = frozenset({"YES", "NO", "ON", "OFF", "TRUE", "FALSE"})
# ASCII comma, full-width comma, ideographic comma; line breaks for lists written into a block scalar.
_SEPARATORS = re.compile("[,，、\r\n]")


def declared(block: Block) -> tuple[Frontmatter, tuple[Note, ...]]:
    """The frontmatter that `block` declares, and a note for each field or keyword that had to be left out."""
    notes = list(block.notes)
    title = _text(block.nodes, "title", notes)
    summary = _text(block.nodes, "summary", notes)
    keywords = tuple(_distinct(_keywords(block.nodes.get("keywords"), notes)))
    return Frontmatter(title, keywords, summary, block.fields), tuple(notes)


def _text(nodes: Mapping[str, Node], name: str, notes: list[Note]) -> str | None:
    node = nodes.get(name)
    if node is None or node.tag == NULL_TAG:
        return None
    if not isinstance(node, ScalarNode):
        notes.append(Note(node.start_mark.index, f"{name} is ignored because it is not a text"))
        return None
    text = str(node.value).strip()
    return text if normalise(text) else None


def _keywords(node: Node | None, notes: list[Note]) -> Iterator[str]:
    if isinstance(node, ScalarNode):
        yield from () if node.tag == NULL_TAG else _split(node, notes)
    elif isinstance(node, MappingNode):
        notes.append(Note(node.start_mark.index, "keywords are ignored because they are a mapping, not a list"))
    elif isinstance(node, SequenceNode):
        for item in node.value:
            if not isinstance(item, ScalarNode):
                notes.append(Note(item.start_mark.index, "one of the keywords is ignored because it is not a text"))
            elif not (item.tag == NULL_TAG and item.value == "~"):
                yield from _split(item, notes)


def _split(node: ScalarNode, notes: list[Note]) -> Iterator[str]:
    for part in _SEPARATORS.split(str(node.value)):
        keyword = part.strip()
        if len(keyword) > MAX_KEYWORD_CHARACTERS:
            reason = (
                f"one of the keywords is ignored because it has {len(keyword)} characters, "
                f"more than the {MAX_KEYWORD_CHARACTERS} that anybody would look for: {keyword[:20]!r}..."
            )
            notes.append(Note(node.start_mark.index, reason))
        else:
            yield keyword


def _distinct(keywords: Iterator[str]) -> Iterator[str]:
    """Each keyword once, in its first spelling; blank and invisible ones not at all."""
    seen = {""}
    for keyword in keywords:
        key = keyword if keyword in _WORDS_IN_CAPITALS else normalise(keyword)
        if key not in seen:
            seen.add(key)
            yield keyword
