"""What the function `knowledge` needs."""

from dataclasses import dataclass

from knowledge.domain.document import KnowledgeBasePath
from knowledge.services.context import KnowledgeContext
from knowledge.services.item_decisions import ItemDecisions
from knowledge.services.item_search import ItemSearch
from knowledge.services.items import KnowledgeItems
from knowledge.services.settings import LiveSettings


@dataclass(frozen=True, slots=True)
class KnowledgeServices:
    """All of them over the same stores."""

    items: KnowledgeItems
    decisions: ItemDecisions
    search: ItemSearch
    context: KnowledgeContext
    settings: LiveSettings
    base: KnowledgeBasePath
