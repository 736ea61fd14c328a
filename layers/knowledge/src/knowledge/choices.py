"""Stores and embedder as the settings choose them, and what changes documents through them; part of the composition.

Heavy adapters are imported where they are chosen: a function loads only what it uses.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import boto3

from knowledge.adapters.aws_clients import aws_client_config, s3_client_config
from knowledge.config import KnowledgeSettings
from knowledge.errors import ConfigError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from knowledge.adapters.openai_endpoint import ApiKey
    from knowledge.ports import (
        CatalogLog,
        DocumentRegistry,
        Embedder,
        ItemStore,
        ObjectStore,
        RebuildableVectorStore,
    )
    from knowledge.services.converge import Converger
    from knowledge.services.item_documents import ItemDocuments

# An answer goes out before the gateway gives up (29 s) and the function ends (28 s), with time for the stores.
EMBED_BUDGET_S = 18.0
# Models that make vectors of the length they are asked for; others may refuse to be asked. Source: OpenAI API
# reference, "Create embeddings", parameter `dimensions`.
_SHORTENED_ON_REQUEST = "text-embedding-3"


def dynamodb_client() -> "DynamoDBClient":
    """A client of the table."""
    return boto3.client("dynamodb", config=aws_client_config())


def objects(settings: KnowledgeSettings) -> "ObjectStore":
    """The bucket."""
    from knowledge.adapters.s3 import S3ObjectStore

    return S3ObjectStore(boto3.client("s3", config=s3_client_config()), settings.bucket_name)


def registry(settings: KnowledgeSettings, client: "DynamoDBClient | None" = None) -> "DocumentRegistry":
    """What the table knows of documents."""
    from knowledge.adapters.dynamodb_registry import DynamoDocumentRegistry

    return DynamoDocumentRegistry(client or dynamodb_client(), settings.table_name)


def catalog_log(settings: KnowledgeSettings, client: "DynamoDBClient | None" = None) -> "CatalogLog":
    """The log in the table."""
    from knowledge.adapters.dynamodb_catalog_log import DynamoCatalogLog

    return DynamoCatalogLog(client or dynamodb_client(), settings.table_name)


def item_store(settings: KnowledgeSettings, client: "DynamoDBClient | None" = None) -> "ItemStore":
    """The knowledge items in the table."""
    from knowledge.adapters.dynamodb_item_store import DynamoItemStore

    return DynamoItemStore(client or dynamodb_client(), settings.table_name)


def semantics(settings: KnowledgeSettings, objects: "ObjectStore") -> "tuple[Embedder, RebuildableVectorStore]":
    """The embedder and the vector store that were chosen; a process needs each once."""
    embedder = _embedder(settings)
    match settings.vector_store:
        case "embedded":
            from knowledge.adapters.embedded_vectors import EmbeddedVectorStore

            return embedder, EmbeddedVectorStore(objects, embedder=embedder.name)
        case "opensearch":
            from knowledge.adapters.opensearch_client import opensearch_client
            from knowledge.adapters.opensearch_vectors import OpenSearchVectorStore

            service = None if settings.opensearch_service == "none" else settings.opensearch_service
            with _named("OPENSEARCH_URL"):
                url, region = settings.opensearch_url or "", boto3.Session().region_name
                client = opensearch_client(url, service=service, region=region)
            return embedder, OpenSearchVectorStore(
                client,
                alias=settings.opensearch_alias,
                dimension=embedder.dimension,
                embedder=embedder.name,
                serverless=service == "aoss",
            )


def converger(
    settings: KnowledgeSettings,
    objects: "ObjectStore",
    registry: "DocumentRegistry",
    embedder: "Embedder",
    vectors: "RebuildableVectorStore",
) -> "Converger":
    """The only code that changes what is indexed."""
    from knowledge.services.converge import Converger
    from knowledge.services.preparation import Preparation

    preparation = Preparation(objects, vectors, embedder, max_document_bytes=settings.max_document_bytes)
    return Converger(objects, registry, preparation, settings.base)


def item_documents(
    settings: KnowledgeSettings, store: "ItemStore", objects: "ObjectStore", converger: "Converger"
) -> "ItemDocuments":
    """What keeps the documents of items right, for every function that changes documents."""
    from knowledge.services.item_documents import ItemDocuments

    return ItemDocuments(store, objects, converger, settings.base, embed_budget_s=EMBED_BUDGET_S)


def _embedder(settings: KnowledgeSettings) -> "Embedder":
    match settings.embedder:
        case "local":
            from knowledge.adapters.local_embedder import LocalEmbedder

            return LocalEmbedder()
        case "bedrock":
            from knowledge.adapters.bedrock_embedder import BedrockEmbedder, bedrock_client_config

            client = boto3.client("bedrock-runtime", config=bedrock_client_config())
            with _named("EMBEDDING_MODEL, EMBEDDING_DIMENSION"):
                return BedrockEmbedder(client, settings.embedding_model or "", dimension=settings.embedding_dimension)
        case "openai":
            from knowledge.adapters.openai_embedder import OpenAIEmbedder

            model = settings.embedding_model or ""
            with _named("EMBEDDING_URL, EMBEDDING_API_KEY, EMBEDDING_QUERY_PREFIX, EMBEDDING_PASSAGE_PREFIX"):
                return OpenAIEmbedder(
                    settings.embedding_url or "",
                    model,
                    api_key=_api_key(settings),
                    dimension=settings.embedding_dimension or 0,
                    max_tokens=settings.embedding_max_tokens,
                    query_model=settings.embedding_query_model,
                    query_prefix=settings.embedding_query_prefix,
                    passage_prefix=settings.embedding_passage_prefix,
                    ask_for_dimension=model.startswith(_SHORTENED_ON_REQUEST),
                )


def _api_key(settings: KnowledgeSettings) -> "ApiKey":
    key = settings.embedding_api_key.get_secret_value() if settings.embedding_api_key else None
    if key is None or not key.startswith("arn:"):
        return key
    from knowledge.adapters.secrets_manager import Secret

    return Secret(boto3.client("secretsmanager", config=aws_client_config()), key)


@contextmanager
def _named(variables: str) -> Iterator[None]:
    """What an adapter cannot be made with is said with the variables that it came from."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{variables}: {error}") from error
