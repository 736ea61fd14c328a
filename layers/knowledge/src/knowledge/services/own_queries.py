"""What a base's own documents would be asked: their names, and how their texts begin."""

from collections.abc import Callable, Iterator, Sequence

from knowledge.domain.document import KnowledgeBasePath, ParsedDocument
from knowledge.errors import AccessRefused
from knowledge.parsing.frontmatter import FrontmatterParser
from knowledge.parsing.sections import headings, opening
from knowledge.ports import ObjectStore


class OwnQueries:
    """Queries made of documents that are spread evenly over one base; the same base gives the same."""

    def __init__(self, objects: ObjectStore, base: KnowledgeBasePath, *, max_document_bytes: int) -> None:
        """Documents of more bytes are left out."""
        self._objects = objects
        self._base = base
        self._max_document_bytes = max_document_bytes

    def names(self, documents: int) -> Iterator[str]:
        """Of that many documents, at most two each: the summary, else the title; and the heading in the middle."""
        return self._made(documents, _names)

    def openings(self, documents: int) -> Iterator[str]:
        """The first sentences of that many documents."""
        return self._made(documents, lambda parsed: [found for found in (opening(parsed.prose),) if found])

    def _made(self, documents: int, make: Callable[[ParsedDocument], Sequence[str]]) -> Iterator[str]:
        paths = [info.key for info in self._objects.list(self._base.prefix) if self._base.holds(info.key)]
        count = min(len(paths), documents)
        for number in range(count):
            if (parsed := self._read(paths[number * len(paths) // count])) is not None:
                yield from make(parsed)

    def _read(self, path: str) -> ParsedDocument | None:
        try:
            stored = self._objects.read(path, max_bytes=self._max_document_bytes)
        except AccessRefused:
            return None
        if stored is None or stored.truncated:
            return None
        return FrontmatterParser(log_problems=False).read(stored.body.decode(errors="replace"), path=path)


def _names(parsed: ParsedDocument) -> Sequence[str]:
    declared = parsed.frontmatter
    found = headings(parsed.prose)
    heading = found[len(found) // 2] if found else None
    name = (declared.summary or declared.title) if declared else None
    return [query for query in dict.fromkeys((name, heading)) if query and query.strip()]
