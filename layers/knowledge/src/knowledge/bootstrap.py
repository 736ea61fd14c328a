"""The composition root: settings and adapters become services here, and nowhere else is the environment read.

Heavy adapters are imported inside the function that needs them: a function loads only what it uses.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.utils import copy_config_to_registered_loggers

from knowledge.adapters.aws_clients import aws_client_config, s3_client_config
from knowledge.config import (
    AuthorizerSettings,
    DocumentSettings,
    IndexerSettings,
    KnowledgeSettings,
    LookupSettings,
    MaintenanceSettings,
    Settings,
)
from knowledge.errors import ConfigError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from knowledge.adapters.openai_endpoint import ApiKey
    from knowledge.entrypoints.read_http import ReadServices
    from knowledge.entrypoints.s3_events import IndexerServices
    from knowledge.ports import DocumentRegistry, Embedder, ObjectStore, RebuildableVectorStore
    from knowledge.services.authentication import Authentication
    from knowledge.services.calibration import Calibration
    from knowledge.services.converge import Converger
    from knowledge.services.documents import Documents
    from knowledge.services.reindex import Reindex

# An upload answers before the gateway gives up (29 s) and the function ends (28 s), with time for the stores.
_UPLOAD_EMBED_BUDGET_S = 18.0
# Source: AWS Lambda quotas: an answer holds at most 6 MB; as a JSON string, quotes and line ends take twice their size.
_MAX_INLINE_BYTES = 5 * 1024 * 1024 // 2
# Models that make vectors of the length they are asked for; others may refuse to be asked. Source: OpenAI API
# reference, "Create embeddings", parameter `dimensions`.
_SHORTENED_ON_REQUEST = "text-embedding-3"


def authentication() -> "Authentication":
    """For the authorizer."""
    from knowledge.adapters.dynamodb_principals import DynamoPrincipalStore
    from knowledge.services.authentication import Authentication

    settings = AuthorizerSettings.from_env(os.environ)
    _configure_logging(settings)
    return Authentication(DynamoPrincipalStore(_dynamodb_client(), settings.table_name))


def documents() -> "Documents":
    """For the functions that upload and delete."""
    from knowledge.services.documents import Documents

    settings = DocumentSettings.from_env(os.environ)
    _configure_logging(settings)
    objects, registry = _objects(settings), _registry(settings)
    return Documents(
        objects,
        registry,
        _converger(settings, objects, registry, *_semantics(settings, objects)),
        settings.base,
        max_document_bytes=settings.max_document_bytes,
        embed_budget_s=_UPLOAD_EMBED_BUDGET_S,
    )


def reindex(running: Mapping[str, str]) -> "Reindex":
    """For the program that embeds a base again, with the indexer's settings; `running` are those of the functions now.

    Where only the store changes, vectors are taken over from the one that is running.
    """
    from knowledge.services.reindex import Reindex

    settings, before = IndexerSettings.from_env(os.environ), IndexerSettings.from_env(running)
    objects, registry = _objects(settings), _registry(settings)
    embedder, vectors = _semantics(settings, objects)
    other_embedder, other_vectors = _semantics(before, objects)
    return Reindex(
        objects,
        registry,
        _converger(settings, objects, registry, embedder, vectors),
        vectors,
        embedder,
        max_document_bytes=settings.max_document_bytes,
        copied_from=other_vectors if before != settings and other_embedder.name == embedder.name else None,
    )


def stores(environment: Mapping[str, str]) -> "tuple[DocumentRegistry, VectorStore]":
    """For programs that compare what is indexed with the vectors there are; `environment` is the indexer's."""
    settings = IndexerSettings.from_env(environment)
    return _registry(settings), _semantics(settings, _objects(settings))[1]


def indexer() -> "IndexerServices":
    """For the function that follows the bucket's events."""
    from knowledge.adapters.sqs import SqsEventQueue
    from knowledge.entrypoints.s3_events import IndexerServices

    settings = IndexerSettings.from_env(os.environ)
    _configure_logging(settings)
    objects = _objects(settings)
    converger = _converger(settings, objects, _registry(settings), *_semantics(settings, objects))
    queue = SqsEventQueue(boto3.client("sqs", config=aws_client_config()), settings.queue_url)
    return IndexerServices(converger, queue, settings.max_receive_count)


def read_services() -> "ReadServices":
    """For the function that serves every read; the catalog begins to load at once, in the background."""
    from knowledge.adapters.dynamodb_catalog_log import DynamoCatalogLog
    from knowledge.entrypoints.read_http import ReadServices
    from knowledge.services.catalog import KnowledgeIndex
    from knowledge.services.document_reader import DocumentReader
    from knowledge.services.lookup import Lookup
    from knowledge.services.semantic import SemanticSearch

    settings = LookupSettings.from_env(os.environ)
    _configure_logging(settings)
    dynamodb = _dynamodb_client()
    objects, registry, base = _objects(settings), _registry(settings, dynamodb), settings.base
    index = KnowledgeIndex(
        objects,
        DynamoCatalogLog(dynamodb, settings.table_name),
        base,
        max_document_bytes=settings.max_document_bytes,
        max_staleness_s=settings.catalog_max_staleness_s,
    )
    index.start_loading()
    semantic = SemanticSearch(*_semantics(settings, objects), registry, base)
    lookup = Lookup(
        index, semantic, load_wait_s=settings.catalog_load_wait_s, semantic_timeout_s=settings.semantic_timeout_s
    )
    return ReadServices(lookup, DocumentReader(objects, registry, base, max_inline_bytes=_MAX_INLINE_BYTES))


def maintenance() -> "Calibration":
    """For the function that keeps answers good."""
    from knowledge.services.calibration import Calibration
    from knowledge.services.own_sentences import OwnSentences
    from knowledge.services.semantic import SemanticSearch

    settings = MaintenanceSettings.from_env(os.environ)
    _configure_logging(settings)
    objects, base = _objects(settings), settings.base
    semantic = SemanticSearch(*_semantics(settings, objects), _registry(settings), base)
    return Calibration(semantic, OwnSentences(objects, base, max_document_bytes=settings.max_document_bytes))


def _configure_logging(settings: Settings) -> None:
    """JSON lines through Powertools for everything the package logs, at the level of the settings."""
    logger = Logger(service="knowledge", level=settings.log_level)
    copy_config_to_registered_loggers(source_logger=logger, log_level=settings.log_level, include={"knowledge"})


def _dynamodb_client() -> "DynamoDBClient":
    return boto3.client("dynamodb", config=aws_client_config())


def _objects(settings: KnowledgeSettings) -> "ObjectStore":
    from knowledge.adapters.s3 import S3ObjectStore

    return S3ObjectStore(boto3.client("s3", config=s3_client_config()), settings.bucket_name)


def _registry(settings: KnowledgeSettings, client: "DynamoDBClient | None" = None) -> "DocumentRegistry":
    from knowledge.adapters.dynamodb_registry import DynamoDocumentRegistry

    return DynamoDocumentRegistry(client or _dynamodb_client(), settings.table_name)


def _semantics(settings: KnowledgeSettings, objects: "ObjectStore") -> "tuple[Embedder, RebuildableVectorStore]":
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


def _converger(
    settings: DocumentSettings,
    objects: "ObjectStore",
    registry: "DocumentRegistry",
    embedder: "Embedder",
    vectors: "RebuildableVectorStore",
) -> "Converger":
    from knowledge.services.converge import Converger
    from knowledge.services.preparation import Preparation

    preparation = Preparation(objects, vectors, embedder, max_document_bytes=settings.max_document_bytes)
    return Converger(objects, registry, preparation, settings.base)
