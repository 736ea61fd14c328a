"""Knowledge items are compared with their files: listed ones, missing ones, and what was left undone is done."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from knowledge.domain.document import KnowledgeBasePath, doc_id_for
from knowledge.domain.item import SETTLING, Item, ItemStatus
from knowledge.ports import DocumentRegistry, ItemStore
from knowledge.services.item_documents import ItemDocuments
from knowledge.services.item_sweep import ItemSweep
from knowledge.services.reconcile_progress import Difference, Report
from knowledge.services.reconcile_rules import Kind
from knowledge.services.reconcile_walk import Side

# Source: `ItemStore.list`, `ItemStore.due` and `DocumentRegistry.generations` take at most 100.
_PAGE = 100


class ReconciledItems:
    """Compares and repairs what belongs to items."""

    def __init__(
        self,
        store: ItemStore,
        documents: ItemDocuments,
        sweep: ItemSweep,
        registry: DocumentRegistry,
        base: KnowledgeBasePath,
    ) -> None:
        """All of the same bucket and table."""
        self._store = store
        self._documents = documents
        self._sweep = sweep
        self._registry = registry
        self._base = base

    def wrong(self, sides: Iterable[Side]) -> Mapping[str, Item]:
        """The paths whose file is not what their item says: nobody may index those as they are."""
        return self._documents.wrong({side.path: side.info.etag if side.info else None for side in sides})

    def told(self, wrong: Mapping[str, Item], *, deadline: float, repair: bool) -> Sequence[Difference]:
        """A difference for each of `wrong`, which are put back if they are to be repaired."""
        failures = self._documents.put_back(wrong, deadline=deadline) if repair else {}
        return [
            Difference(Kind.ITEM, path, repair and path not in failures, _reason(failures.get(path))) for path in wrong
        ]

    def missing(self, cursor: str | None) -> tuple[Mapping[str, Item], str | None]:
        """Of one page of the published items, those without file and record, and the cursor of the next page.

        Those with a record or a file are listed with all other paths.
        """
        page = self._store.list({ItemStatus.PUBLISHED}, kind=None, cursor=cursor, limit=_PAGE)
        paths = {doc_id_for(path): path for path in (item.file_path(self._base) for item in page.items)}
        held = self._registry.generations(list(paths)) if paths else {}
        wrong = self._documents.wrong({path: "" for doc_id, path in paths.items() if doc_id not in held})
        return wrong, page.next_cursor

    def finish(self, report: Report, now: datetime, *, deadline: float, repair: bool) -> None:
        """What is left undone is in the report; before, if it is to be repaired, it is done, however new it is."""
        if repair:
            self._sweep.sweep(deadline=deadline, until=now + SETTLING)
        report.unsettled_items = sum(not item.is_settled for item in self._store.due(until=now, limit=_PAGE))
        report.published_without_embedding = self._store.count_without_embedding()


def _reason(failure: Exception | None) -> str | None:
    return None if failure is None else str(failure)
