"""Vectors that no record names: noted when they are first seen, removed when a later pass still sees them."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from knowledge.domain.document import DocId, Generation
from knowledge.errors import KnowledgeError
from knowledge.ports import DocumentRegistry
from knowledge.services.converge import Converger
from knowledge.services.reconcile_progress import Difference, Progress
from knowledge.services.reconcile_rules import Kind, Rules

_logger = logging.getLogger(__name__)

# Generations of which is remembered since when no record names them; more of them wait for later passes. Source: own
# choice, about 1 MB.
_MOST_NOTED = 10_000


class UnownedVectors:
    """Compares the generations that are stored with those that records name."""

    def __init__(
        self, registry: DocumentRegistry, converger: Converger, rules: Rules, now: Callable[[], datetime]
    ) -> None:
        """`rules` tell from when on nobody is still at work; `now` is aware UTC."""
        self._registry = registry
        self._converger = converger
        self._rules = rules
        self._now = now

    def compare(self, progress: Progress, page: Sequence[tuple[DocId, Sequence[Generation]]], *, repair: bool) -> None:
        """The generations of `page`, documents in order of ids, are in the report, and removed when it is time."""
        current = self._registry.generations([doc_id for doc_id, _ in page])
        for doc_id, generations in page:
            progress.report.generations += len(generations)
            for generation in generations:
                if current.get(doc_id) != generation:
                    self._compare_unowned(progress, doc_id, generation, repair=repair)
            progress.after = doc_id

    def _compare_unowned(self, progress: Progress, doc_id: DocId, generation: Generation, *, repair: bool) -> None:
        key, now = f"{doc_id}/{generation}", self._now()
        since = progress.unowned.get(key, now)
        is_waiting = not self._rules.is_settled(since, now)
        is_gone = not is_waiting and repair and self._is_removed(doc_id, generation)
        if is_waiting:
            progress.report.waiting += 1
        else:
            progress.report.add(Difference(Kind.VECTORS_UNOWNED, key, is_gone, None))
        if not is_gone and len(progress.noted) < _MOST_NOTED:
            progress.noted[key] = since

    def _is_removed(self, doc_id: DocId, generation: Generation) -> bool:
        try:
            return self._converger.remove_unowned(doc_id, generation)
        except KnowledgeError as error:
            _logger.warning("vectors_not_removed", extra={"doc_id": doc_id, "reason": str(error)})
            return False
