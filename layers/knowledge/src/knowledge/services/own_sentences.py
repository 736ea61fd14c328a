"""How a base's own documents begin: sentences on its topic, each with the document that it is from."""

from collections.abc import Iterator

from knowledge.domain.document import KnowledgeBasePath
from knowledge.errors import AccessRefused
from knowledge.parsing.frontmatter import FrontmatterParser
from knowledge.parsing.sections import opening
from knowledge.ports import ObjectStore


class OwnSentences:
    """First sentences of documents that are spread evenly over one base; the same base gives the same."""

    def __init__(self, objects: ObjectStore, base: KnowledgeBasePath, *, max_document_bytes: int) -> None:
        """Documents of more bytes are left out."""
        self._objects = objects
        self._base = base
        self._max_document_bytes = max_document_bytes

    def of(self, documents: int) -> Iterator[tuple[str, str]]:
        """Path and first sentence of up to that many documents; a read for each."""
        paths = [info.key for info in self._objects.list(self._base.prefix) if self._base.holds(info.key)]
        count = min(len(paths), documents)
        for path in (paths[number * len(paths) // count] for number in range(count)):
            if found := self._opening(path):
                yield path, found

    def _opening(self, path: str) -> str | None:
        try:
            stored = self._objects.read(path, max_bytes=self._max_document_bytes)
        except AccessRefused:
            return None
        if stored is None or stored.truncated:
            return None
        text = stored.body.decode(errors="replace")
        return opening(FrontmatterParser(log_problems=False).read(text, path=path).prose)
