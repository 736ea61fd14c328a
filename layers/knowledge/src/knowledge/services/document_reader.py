"""Reading documents: the list, one record, the raw bytes."""

from dataclasses import dataclass

from knowledge.domain.access import Principal, Role
from knowledge.domain.document import MAX_KEY_BYTES, DocId, DocumentRecord, DocumentStatus, KnowledgeBasePath, is_doc_id
from knowledge.domain.paging import checked_limit
from knowledge.domain.text import first_invalid_byte
from knowledge.errors import InvalidInput, NotFound
from knowledge.ports import DocumentPage, DocumentRegistry, ObjectStore

# How long a link to a file's bytes works: long enough to follow it, too short to pass on.
_LINK_LIFETIME_S = 300


@dataclass(frozen=True, slots=True)
class DocumentContent:
    """A document's bytes as text, or, when they are no text or too many for one answer, a link to them."""

    text: str | None
    download_url: str | None


class DocumentReader:
    """What is known of documents."""

    def __init__(
        self, objects: ObjectStore, registry: DocumentRegistry, base: KnowledgeBasePath, *, max_inline_bytes: int
    ) -> None:
        """Files over `max_inline_bytes` are answered as a link."""
        self._objects = objects
        self._registry = registry
        self._base = base
        self._max_inline_bytes = max_inline_bytes

    def list_documents(
        self,
        principal: Principal,
        *,
        category: str | None = None,
        status: DocumentStatus | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> DocumentPage:
        """One page in path order; `category` includes what is nested in it. `limit` is 1 to 100.

        Raises:
            InvalidInput: a limit out of bounds or a cursor that is not ours.
        """
        principal.require(Role.READER, "list documents")
        checked_limit(limit)
        if category and len(category.encode("utf-8", "replace")) > MAX_KEY_BYTES:
            raise InvalidInput(f"the category is longer than {MAX_KEY_BYTES} bytes", field="category")
        prefix = self._base.prefix + (f"{category.strip('/')}/" if category and category.strip("/") else "")
        return self._registry.list(path_prefix=prefix, status=status, cursor=cursor, limit=limit)

    def get_document(self, principal: Principal, doc_id: DocId) -> DocumentRecord:
        """The record. Raises NotFound."""
        principal.require(Role.READER, "read documents")
        record = self._registry.read(doc_id).record if is_doc_id(doc_id) else None
        if record is None:
            raise NotFound("no document has this id")
        return record

    def get_content(self, principal: Principal, doc_id: DocId) -> DocumentContent:
        """The stored bytes, unchanged. Raises NotFound, also when the file has just been deleted."""
        record = self.get_document(principal, doc_id)
        stored = self._objects.read(record.file_path, max_bytes=self._max_inline_bytes)
        if stored is None:
            raise NotFound("the file of this document does not exist any more")
        if stored.truncated or first_invalid_byte(stored.body) is not None:
            return DocumentContent(None, self._objects.download_url(record.file_path, expires_s=_LINK_LIFETIME_S))
        return DocumentContent(stored.body.decode(), None)
