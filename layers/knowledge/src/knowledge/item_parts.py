"""The services of the function `knowledge`, put together; a part of the composition that `bootstrap` is.

As there, what is heavy is imported where it is needed.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from knowledge import choices
from knowledge.config import ItemSettings

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from knowledge.entrypoints.knowledge_services import KnowledgeServices
    from knowledge.ports import Embedder, ObjectStore
    from knowledge.services.converge import Converger
    from knowledge.services.semantic import SemanticSearch


@dataclass(frozen=True, slots=True)
class DocumentParts:
    """What items share with documents, over the same stores."""

    objects: "ObjectStore"
    converger: "Converger"
    semantic: "SemanticSearch"
    embedder: "Embedder"


def knowledge_services(settings: ItemSettings, client: "DynamoDBClient", parts: DocumentParts) -> "KnowledgeServices":
    """For the function `knowledge`."""
    from knowledge.adapters.dynamodb_config_store import DynamoConfigStore
    from knowledge.entrypoints.knowledge_services import KnowledgeServices
    from knowledge.services.context import KnowledgeContext
    from knowledge.services.item_decisions import ItemDecisions
    from knowledge.services.item_index import ItemIndex
    from knowledge.services.item_search import ItemSearch
    from knowledge.services.item_snapshots import ItemSnapshots
    from knowledge.services.items import KnowledgeItems
    from knowledge.services.near_items import NearItems
    from knowledge.services.settings import DeployedEmbedder, LiveSettings
    from knowledge.services.similar_items import SimilarItems

    base, store = settings.base, choices.item_store(settings, client)
    configs = DynamoConfigStore(client, settings.table_name)
    documents = choices.item_documents(settings, store, parts.objects, parts.converger)
    index = ItemIndex(store, ItemSnapshots(parts.objects))
    near = NearItems(parts.semantic, configs, base, timeout_s=settings.semantic_timeout_s)
    search = ItemSearch(index, store, near)
    deployed = DeployedEmbedder(settings.embedder, settings.embedding_model or parts.embedder.name)
    return KnowledgeServices(
        KnowledgeItems(store, documents, SimilarItems(index, store, near)),
        ItemDecisions(store, documents),
        search,
        KnowledgeContext(search, store, configs, base),
        LiveSettings(configs, deployed),
        base,
    )
