"""What was left of knowledge items is finished: by processes that died, and embeddings that failed."""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from knowledge.domain.item import Item, ItemId
from knowledge.ports import ItemStore
from knowledge.services.item_documents import ItemDocuments, is_done

_logger = logging.getLogger(__name__)

# Items that are settled together. Source: own choice: about a set of changes of `converge_all`, so that the deadline is
# looked at often.
_SET = 25
# Source: `ItemStore.due` gives at most 100.
_MOST_DUE = 100


@dataclass(slots=True)
class Swept:
    """What one sweep did, and what it left."""

    settled: int = 0
    """Items whose documents are right now, in both tiers."""
    failed: int = 0
    """Items that are tried again later; `item_not_settled` in the log has the reasons."""
    published_without_embedding: int = 0
    """All that there are afterwards."""


class ItemSweep:
    """Takes what is due from the store. Two at once do no harm."""

    def __init__(
        self,
        store: ItemStore,
        documents: ItemDocuments,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`documents` are those of the items in `store`; `clock` gives monotonic seconds, as deadlines do."""
        self._store = store
        self._documents = documents
        self._now = now
        self._clock = clock

    def sweep(self, *, deadline: float, until: datetime | None = None) -> Swept:
        """What is due at `until` (now) is tried once, what waits longest first, as far as there is time.

        Raises DependencyUnavailable when the store of the items does not answer; what was done is done.
        """
        swept, due = Swept(), self._due(until or self._now())
        while self._clock() < deadline and (ids := list(islice(due, _SET))):
            for item_id, end in self._documents.settle(ids, deadline=deadline).items():
                if isinstance(end, Item) and is_done(end):
                    swept.settled += 1
                    continue
                swept.failed += 1
                reason = str(end) if isinstance(end, Exception) else end.embedding and end.embedding.reason
                _logger.warning("item_not_settled", extra={"item_id": item_id, "reason": reason})
        swept.published_without_embedding = self._store.count_without_embedding()
        return swept

    def _due(self, until: datetime) -> Iterator[ItemId]:
        """Each item once; what stays due is not given again, and a page of nothing else is the end."""
        seen = set[ItemId]()
        while new := [i.item_id for i in self._store.due(until=until, limit=_MOST_DUE) if i.item_id not in seen]:
            seen.update(new)
            yield from new
