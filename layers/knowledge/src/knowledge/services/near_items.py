"""Items by meaning, as far as the settings and the embedder allow it: for searching and for finding what is alike."""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum

from knowledge.domain.document import KnowledgeBasePath
from knowledge.domain.item import ItemId, KnowledgeKind, item_named_by
from knowledge.errors import KnowledgeError
from knowledge.ports import ConfigStore
from knowledge.services.semantic import Ranking, SemanticSearch

_logger = logging.getLogger(__name__)

# Documents that are looked at; as many items as a search may answer. Source: specification K3.
_TOP_K = 20


class Fallback(StrEnum):
    """Why nothing was searched for by meaning."""

    VECTORS_OFF = "vectors_off"
    """The settings say so."""
    EMBEDDING_FAILED = "embedding_failed"
    """The embedder, or the vectors, could not be asked in time."""


@dataclass(frozen=True, slots=True)
class Near:
    """What was found by meaning."""

    similarities: Mapping[ItemId, float]
    """Cosine of each item found, the nearest first."""
    fallback: Fallback | None = None
    """Why nothing was looked for; None where it was."""


class NearItems:
    """Searches the documents of published items."""

    def __init__(
        self,
        semantic: SemanticSearch,
        configs: ConfigStore,
        base: KnowledgeBasePath,
        *,
        timeout_s: float,
        executor: Executor | None = None,
    ) -> None:
        """`executor` runs the search, so that a slow one is left behind after `timeout_s`."""
        self._semantic = semantic
        self._configs = configs
        self._base = base
        self._timeout_s = timeout_s
        self._executor = executor or ThreadPoolExecutor(max_workers=4, thread_name_prefix="near-items")

    def ask(self, query: str, *, kind: KnowledgeKind | None = None) -> Callable[[], Near]:
        """The search has begun, unless the settings say otherwise; what is returned waits for what it finds.

        The best item is found when there is an answer among the items, any other one when it has, by itself, the
        evidence for that. It need not be published any more: its document may be about to go.

        Raises:
            DependencyUnavailable: the settings could not be read. All that fails later is a fallback.
        """
        if not self._configs.read().config.vector_enabled:
            return lambda: Near({}, Fallback.VECTORS_OFF)
        kinds = KnowledgeKind if kind is None else (kind,)
        folders = [f"{self._base.prefix}{one}/" for one in kinds]
        asked = self._executor.submit(self._semantic.rank, query, top_k=_TOP_K, folders=folders)

        def wait() -> Near:
            try:
                return self._near(asked.result(timeout=self._timeout_s))
            except Exception as error:  # where another thread's work ends: the rest of the answer is given
                asked.cancel()
                # The text of an error that is not ours may hold the query.
                reason = str(error) if isinstance(error, KnowledgeError) else type(error).__name__
                is_unexpected = not isinstance(error, KnowledgeError | TimeoutError)
                _logger.warning("items_not_searched_by_meaning", extra={"reason": reason}, exc_info=is_unexpected)
                return Near({}, Fallback.EMBEDDING_FAILED)

        return wait

    def _near(self, ranking: Ranking) -> Near:
        """Other documents in the folders of the kinds name no item and are left out."""
        named = ((item_named_by(hit.chunk.file_path, self._base), hit.relevance.similarity) for hit in ranking.answers)
        return Near({item_id: similarity for item_id, similarity in named if item_id is not None})
