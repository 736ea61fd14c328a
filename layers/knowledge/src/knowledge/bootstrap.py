"""The composition root: settings and adapters become services here, and nowhere else is the environment read.

Heavy adapters are imported inside the function that needs them: a function loads only what it uses.
"""

import os
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.utils import copy_config_to_registered_loggers

from knowledge import choices, item_parts
from knowledge.adapters.aws_clients import aws_client_config
from knowledge.choices import semantics
from knowledge.config import (
    AuthorizerSettings,
    DocumentSettings,
    HttpSettings,
    IndexerSettings,
    ItemSettings,
    KnowledgeSettings,
    LookupSettings,
    MaintenanceSettings,
    Settings,
)

if TYPE_CHECKING:
    from knowledge.entrypoints.knowledge_services import KnowledgeServices
    from knowledge.entrypoints.maintenance import MaintenanceServices
    from knowledge.entrypoints.read_http import ReadServices
    from knowledge.entrypoints.s3_events import IndexerServices
    from knowledge.ports import CatalogLog, DocumentRegistry, RebuildableVectorStore
    from knowledge.services.authentication import Authentication
    from knowledge.services.calibration import Calibration
    from knowledge.services.compaction import Compaction
    from knowledge.services.documents import Documents
    from knowledge.services.item_index import ItemIndex
    from knowledge.services.item_sweep import ItemSweep
    from knowledge.services.reconcile import Reconcile
    from knowledge.services.reindex import Reindex
    from knowledge.services.tokens import Tokens

# Source: AWS Lambda quotas: an answer holds at most 6 MB; as a JSON string, quotes and line ends take twice their size.
_MAX_INLINE_BYTES = 5 * 1024 * 1024 // 2


def authentication() -> "Authentication":
    """For the authorizer."""
    from knowledge.adapters.dynamodb_principals import DynamoPrincipalStore
    from knowledge.services.authentication import Authentication

    settings = AuthorizerSettings.from_env(os.environ)
    _configure_logging(settings)
    return Authentication(DynamoPrincipalStore(choices.dynamodb_client(), settings.table_name))


def tokens(table_name: str) -> "Tokens":
    """For the program that makes, rotates and revokes tokens."""
    from knowledge.adapters.dynamodb_tokens import DynamoTokenStore
    from knowledge.services.tokens import Tokens

    return Tokens(DynamoTokenStore(choices.dynamodb_client(), table_name))


def allowed_origin() -> str:
    """For every function that answers over HTTP: whose pages may read the answers in a browser."""
    return HttpSettings.from_env(os.environ).allowed_origin


def documents() -> "Documents":
    """For the functions that upload and delete."""
    from knowledge.services.documents import Documents

    settings = DocumentSettings.from_env(os.environ)
    _configure_logging(settings)
    objects, registry = choices.objects(settings), choices.registry(settings)
    return Documents(
        objects,
        registry,
        choices.converger(settings, objects, registry, *semantics(settings, objects)),
        settings.base,
        choices.item_store(settings),
        max_document_bytes=settings.max_document_bytes,
        embed_budget_s=choices.EMBED_BUDGET_S,
    )


def reindex(running: Mapping[str, str]) -> "Reindex":
    """For the program that embeds a base again, with the indexer's settings; `running` are those of the functions now.

    Where only the store changes, vectors are taken over from the one that is running.
    """
    from knowledge.services.reindex import Reindex

    settings, before = IndexerSettings.from_env(os.environ), IndexerSettings.from_env(running)
    objects, registry = choices.objects(settings), choices.registry(settings)
    embedder, vectors = semantics(settings, objects)
    other_embedder, other_vectors = semantics(before, objects)
    return Reindex(
        objects,
        registry,
        choices.converger(settings, objects, registry, embedder, vectors),
        vectors,
        embedder,
        max_document_bytes=settings.max_document_bytes,
        copied_from=other_vectors if before != settings and other_embedder.name == embedder.name else None,
    )


def stores(environment: Mapping[str, str]) -> "tuple[DocumentRegistry, RebuildableVectorStore]":
    """For programs that compare what is indexed with the vectors there are; `environment` is the indexer's."""
    settings = IndexerSettings.from_env(environment)
    return choices.registry(settings), semantics(settings, choices.objects(settings))[1]


def indexer() -> "IndexerServices":
    """For the function that follows the bucket's events."""
    from knowledge.adapters.sqs import SqsEventQueue
    from knowledge.entrypoints.s3_events import IndexerServices

    settings = IndexerSettings.from_env(os.environ)
    _configure_logging(settings)
    objects = choices.objects(settings)
    converger = choices.converger(settings, objects, choices.registry(settings), *semantics(settings, objects))
    queue = SqsEventQueue(boto3.client("sqs", config=aws_client_config()), settings.queue_url)
    items = choices.item_documents(settings, choices.item_store(settings), objects, converger)
    return IndexerServices(converger, items, queue, settings.max_receive_count)


def read_services() -> "ReadServices":
    """For the function that serves every read; the catalog begins to load at once, in the background."""
    from knowledge.entrypoints.read_http import ReadServices
    from knowledge.services.catalog import KnowledgeIndex
    from knowledge.services.document_reader import DocumentReader
    from knowledge.services.lookup import Lookup
    from knowledge.services.semantic import SemanticSearch

    settings = LookupSettings.from_env(os.environ)
    _configure_logging(settings)
    dynamodb = choices.dynamodb_client()
    objects, registry, base = choices.objects(settings), choices.registry(settings, dynamodb), settings.base
    index = KnowledgeIndex(
        objects,
        choices.catalog_log(settings, dynamodb),
        base,
        max_document_bytes=settings.max_document_bytes,
        max_staleness_s=settings.catalog_max_staleness_s,
    )
    index.start_loading()
    semantic = SemanticSearch(*semantics(settings, objects), registry, base)
    lookup = Lookup(
        index, semantic, load_wait_s=settings.catalog_load_wait_s, semantic_timeout_s=settings.semantic_timeout_s
    )
    return ReadServices(lookup, DocumentReader(objects, registry, base, max_inline_bytes=_MAX_INLINE_BYTES))


def knowledge_services() -> "KnowledgeServices":
    """For the function of the knowledge items."""
    from knowledge.services.semantic import SemanticSearch

    settings = ItemSettings.from_env(os.environ)
    _configure_logging(settings)
    dynamodb, objects = choices.dynamodb_client(), choices.objects(settings)
    registry, (embedder, vectors) = choices.registry(settings, dynamodb), semantics(settings, objects)
    converger = choices.converger(settings, objects, registry, embedder, vectors)
    semantic = SemanticSearch(embedder, vectors, registry, settings.base)
    parts = item_parts.DocumentParts(objects, converger, semantic, embedder)
    return item_parts.knowledge_services(settings, dynamodb, parts)


def maintenance() -> "MaintenanceServices":
    """For the function that keeps answers good and starts quick; nothing is made for a task that is not asked for."""
    from knowledge.entrypoints.maintenance import MaintenanceServices

    settings = MaintenanceSettings.from_env(os.environ)
    _configure_logging(settings)
    return MaintenanceServices(
        partial(_calibration, settings),
        partial(_compaction, settings),
        partial(_reconcile, settings),
        partial(_sweep, settings),
        partial(_item_index, settings),
    )


def reconcile(environment: Mapping[str, str], *, settled_after: timedelta | None = None) -> "Reconcile":
    """For the program that shows a person how the stores differ; `environment` is the maintenance function's.

    `settled_after`: how long others may still be at work, where that is not as long as with the functions.
    """
    return _reconcile(MaintenanceSettings.from_env(environment), settled_after)


def catalog_log(environment: Mapping[str, str]) -> "CatalogLog":
    """For the same program."""
    return choices.catalog_log(MaintenanceSettings.from_env(environment))


def _calibration(settings: KnowledgeSettings) -> "Calibration":
    from knowledge.services.calibration import Calibration
    from knowledge.services.own_sentences import OwnSentences
    from knowledge.services.semantic import SemanticSearch

    objects, base = choices.objects(settings), settings.base
    semantic = SemanticSearch(*semantics(settings, objects), choices.registry(settings), base)
    return Calibration(semantic, OwnSentences(objects, base, max_document_bytes=settings.max_document_bytes))


def _compaction(settings: KnowledgeSettings) -> "Compaction":
    from knowledge.services.compaction import Compaction

    log, limit = choices.catalog_log(settings), settings.max_document_bytes
    return Compaction(choices.objects(settings), log, settings.base, max_document_bytes=limit)


def _item_index(settings: KnowledgeSettings) -> "ItemIndex":
    from knowledge.services.item_index import ItemIndex
    from knowledge.services.item_snapshots import ItemSnapshots

    return ItemIndex(choices.item_store(settings), ItemSnapshots(choices.objects(settings)))


def _reconcile(settings: KnowledgeSettings, settled_after: timedelta | None = None) -> "Reconcile":
    from knowledge.services.catalog_source import CatalogSource
    from knowledge.services.item_sweep import ItemSweep
    from knowledge.services.reconcile import Reconcile
    from knowledge.services.reconcile_items import ReconciledItems
    from knowledge.services.reconcile_rules import SETTLED_AFTER

    objects, registry = choices.objects(settings), choices.registry(settings)
    embedder, vectors = semantics(settings, objects)
    converger = choices.converger(settings, objects, registry, embedder, vectors)
    log, limit = choices.catalog_log(settings), settings.max_document_bytes
    catalog = CatalogSource(objects, log, settings.base, max_document_bytes=limit)
    store = choices.item_store(settings)
    documents = choices.item_documents(settings, store, objects, converger)
    items = ReconciledItems(store, documents, ItemSweep(store, documents), registry, settings.base)
    return Reconcile(
        objects,
        registry,
        converger,
        vectors,
        settings.base,
        catalog,
        items,
        embedder=embedder.name,
        settled_after=SETTLED_AFTER if settled_after is None else settled_after,
    )


def _sweep(settings: KnowledgeSettings) -> "ItemSweep":
    from knowledge.services.item_sweep import ItemSweep

    objects, store = choices.objects(settings), choices.item_store(settings)
    converger = choices.converger(settings, objects, choices.registry(settings), *semantics(settings, objects))
    return ItemSweep(store, choices.item_documents(settings, store, objects, converger))


def _configure_logging(settings: Settings) -> None:
    """JSON lines through Powertools for everything the package logs, at the level of the settings."""
    logger = Logger(service="knowledge", level=settings.log_level)
    copy_config_to_registered_loggers(source_logger=logger, log_level=settings.log_level, include={"knowledge"})
