"""The commands on documents: upload and delete. What is indexed they leave to `converge`."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from knowledge.domain.access import Principal, Role
from knowledge.domain.document import MEDIA_TYPE, DocId, DocumentRecord, KnowledgeBasePath, doc_id_for, is_doc_id
from knowledge.domain.item import ItemId, item_named_by
from knowledge.domain.text import first_invalid_byte
from knowledge.errors import Conflict, DependencyUnavailable, NotFound, TooLarge, UnsupportedFormat
from knowledge.ports import DocumentRegistry, ItemStore, ObjectStore
from knowledge.services.converge import Converger

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UploadResult:
    """What is known of the document after an upload; `created` is false when it replaced an earlier one."""

    record: DocumentRecord
    created: bool


class Documents:
    """Uploads and deletes documents."""

    def __init__(
        self,
        objects: ObjectStore,
        registry: DocumentRegistry,
        converger: Converger,
        base: KnowledgeBasePath,
        items: ItemStore,
        *,
        max_document_bytes: int,
        embed_budget_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`converger` must work on the same stores and base; an upload spends at most `embed_budget_s` embedding.

        What is the document of one of `items` is left to the commands on items.
        """
        self._objects = objects
        self._registry = registry
        self._converger = converger
        self._base = base
        self._items = items
        self._max_document_bytes = max_document_bytes
        self._embed_budget_s = embed_budget_s
        self._clock = clock

    def upload_document(self, principal: Principal, *, category: str, file_name: str, content: bytes) -> UploadResult:
        """The bytes are stored unchanged and the document is indexed: the next lookup anywhere sees it.

        Uploading to a path that exists replaces it. When embedding fails or takes too long the document is answered
        with status PENDING and found by its keywords; the bucket's event finishes it.

        Raises:
            InvalidPath, UnsupportedFormat, TooLarge: refused, nothing stored.
            NotPermitted: the caller is not a writer.
            Conflict: the path belongs to a knowledge item; nothing stored.
            DependencyUnavailable, Conflict: a store failed; the version just stored was taken back and the previous
                one is served.
        """
        principal.require(Role.WRITER, "upload documents")
        path = self._base.path_for(category, file_name)
        if (size := len(content)) > self._max_document_bytes:
            message = f"the file is {size} bytes long; at most {self._max_document_bytes} are accepted"
            raise TooLarge(message, size_bytes=size, max_bytes=self._max_document_bytes, field="file")
        if (offset := first_invalid_byte(content)) is not None:
            message = f"the file is not UTF-8: byte {offset} cannot be decoded; save it as UTF-8 and try again"
            raise UnsupportedFormat(message, field="file")
        if item_id := self._item_at(path):
            raise Conflict(f"{path} is the document of a knowledge item; change it with PATCH /items/{item_id}")
        created = self._registry.read(doc_id_for(path)).record is None
        version_id = self._objects.put(path, content, content_type=MEDIA_TYPE)
        try:
            record = self._converger.converge(path, deadline=self._clock() + self._embed_budget_s)
        except BaseException:
            self._take_back(path, version_id)
            raise
        if record is None:
            raise Conflict(f"{path} was deleted while it was being uploaded")
        _logger.info("document_uploaded", extra={"path": path, "doc_id": record.doc_id, "actor": principal.name})
        return UploadResult(record, created)

    def delete_document(self, principal: Principal, doc_id: DocId) -> DocumentRecord:
        """File, metadata, catalog entry and vectors are gone from every answer; earlier versions stay in the bucket.

        Raises:
            NotFound: no document has this id; nothing was changed.
            NotPermitted: the caller is not a reviewer.
            Conflict: the document is that of a knowledge item; nothing was changed.
        """
        principal.require(Role.REVIEWER, "delete documents")
        record = self._registry.read(doc_id).record if is_doc_id(doc_id) else None
        if record is None:
            raise NotFound("no document has this id")
        if item_id := self._item_at(record.file_path):
            raise Conflict(f"it is the document of a knowledge item; archive that with POST /items/{item_id}/archive")
        self._objects.delete(record.file_path)
        self._converger.converge(record.file_path)
        _logger.info("document_deleted", extra={"path": record.file_path, "doc_id": doc_id, "actor": principal.name})
        return record

    def _item_at(self, path: str) -> ItemId | None:
        """The item whose document is, or would be, at `path`; one read, and none for a path that is no item's."""
        item_id = item_named_by(path, self._base)
        return item_id if item_id and self._items.read(item_id) else None

    def _take_back(self, path: str, version_id: str) -> None:
        """The version is gone and the index follows, as far as the stores answer; the bucket's event does the rest."""
        try:
            self._objects.delete_version(path, version_id)
            self._converger.converge(path, anew=True)
        except (DependencyUnavailable, Conflict) as error:
            extra = {"path": path, "version_id": version_id, "reason": str(error)}
            _logger.error("upload_not_taken_back", extra=extra)
