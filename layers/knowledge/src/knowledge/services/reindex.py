"""Embedding a whole base again, after the embedder was changed."""

from collections.abc import Iterator

from knowledge.domain.document import DocumentRecord, DocumentStatus
from knowledge.ports import DocumentRegistry, Embedder, VectorStore
from knowledge.services.converge import Converger
from knowledge.services.index_notes import identity

_PAGE = 100


class Reindex:
    """Brings every document to the embedder of today. Exact answers go on; those by meaning wait until it is done."""

    def __init__(
        self, registry: DocumentRegistry, converger: Converger, vectors: VectorStore, embedder: Embedder
    ) -> None:
        """`converger` must work with the same stores and embedder."""
        self._registry = registry
        self._converger = converger
        self._vectors = vectors
        self._embedder = embedder

    def run(self) -> Iterator[DocumentRecord]:
        """Each document as it is after its turn, in path order; may be broken off and run again: what is done is kept.

        Only when every document is embedded does the index say that its vectors are this embedder's. The calibration
        was another one's and is dropped.

        Raises:
            DependencyUnavailable, Conflict: a store failed; run again.
        """
        is_whole = True
        cursor: str | None = None
        while True:
            page = self._registry.list(path_prefix="", status=None, cursor=cursor, limit=_PAGE)
            for before in page.records:
                record = self._converger.converge(before.file_path)
                if record is not None:
                    is_whole = is_whole and record.status is not DocumentStatus.PENDING
                    yield record
            cursor = page.next_cursor
            if cursor is None:
                break
        if is_whole:
            self._vectors.note(identity(self._embedder))
