"""The semantic tier over a real OpenSearch node, against the same `_msearch` made by hand with opensearch-py."""

import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
import yaml
from opensearchpy import OpenSearch

from knowledge.adapters.memory import MemoryDocumentRegistry
from knowledge.adapters.opensearch_client import opensearch_client
from knowledge.adapters.opensearch_vectors import OpenSearchVectorStore
from knowledge.domain.document import Chunk, Generation, KnowledgeBasePath, doc_id_for
from knowledge.domain.question_centring import QuestionCentring
from knowledge.domain.text import is_mostly_unspaced
from knowledge.ports import EmbeddedChunk, Vector
from knowledge.retrieval.terms import terms
from knowledge.services.semantic import SemanticSearch
from tests.bench.figures import Figures
from tests.contract.builders import change, record

pytestmark = pytest.mark.bench

SEED = Path(__file__).parents[2] / "knowledge_base_seed"
GENERATION = Generation("generation-1")
DOCUMENTS = 1000
ROUNDS = 4
# What a lookup's semantic tier may add to the search itself, as a share of it, on a loaded machine, where Python waits
# for its turn while the node computes; its target is in FIGURES. Source: measured 0.25 to 0.35 under load.
MOST_ADDED = 0.60


class StoredVectors:
    """An embedder that has made its vectors before: what is measured is everything else.

    Texts that share terms are near, so that words and vectors find the same chunks about as often as they really do.
    """

    name = "stored"
    max_tokens = 512
    answer_threshold = 0.8
    batch_size = 16

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._dice = np.random.default_rng(5)
        self._terms: dict[str, Any] = {}
        self._queries: dict[str, Vector] = {}
        typical = [self._vector(f"term{n}") for n in range(6)]
        self.question_centring = QuestionCentring.of(typical, typical[:3], typical[3:])

    def embed_query(self, text: str) -> Vector:
        if text not in self._queries:
            (self._queries[text],) = self.embed_passages([text])
        return self._queries[text]

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        whole = np.zeros(self.dimension)
        for term in set(terms(text)):
            if term not in self._terms:
                self._terms[term] = self._dice.normal(size=self.dimension)
            whole += self._terms[term]
        vector: list[float] = (whole / np.linalg.norm(whole)).tolist()
        return vector


@pytest.fixture
def url() -> str:
    url = os.environ.get("OPENSEARCH_URL")
    if not url:
        pytest.skip("no OpenSearch node is named in OPENSEARCH_URL: start one with make opensearch")
    return url


@pytest.fixture
def client(url: str) -> Iterator[OpenSearch]:
    client = opensearch_client(url)
    yield client
    client.close()


@pytest.fixture
def alias(client: OpenSearch) -> Iterator[str]:
    alias = f"bench-{uuid4().hex}"
    yield alias
    client.indices.delete(index=f"{alias}-*")


def fill(store: OpenSearchVectorStore, registry: MemoryDocumentRegistry, embedder: StoredVectors) -> None:
    """A thousand documents of four chunks, half of them Chinese, made of lines of the seed."""
    lines = [line for file in sorted(SEED.rglob("*.md")) for line in file.read_text(encoding="utf-8").splitlines()]
    by_language = [
        [line for line in lines if len(terms(line)) > 5 and is_mostly_unspaced(line) == chinese]
        for chinese in (True, False)
    ]
    dice = random.Random(7)  # noqa: S311 - the same documents in every run
    documents: dict[str, list[EmbeddedChunk]] = {}
    for number in range(DOCUMENTS):
        texts = ["\n".join(dice.choices(by_language[number % 2], k=6)) for _ in range(4)]
        chunks = [Chunk(ordinal, (), text) for ordinal, text in enumerate(texts)]
        vectors = embedder.embed_passages(texts)
        documents[f"knowledge_base/{number}.md"] = list(map(EmbeddedChunk, chunks, vectors))

    def write(path: str) -> None:
        store.write(doc_id_for(path), GENERATION, path, documents[path])
        registry.commit([change(None, record(path, generation=GENERATION))])

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(write, documents))


@pytest.mark.parametrize("dimension", [384, 1024])
def test_the_semantic_tier_against_its_msearch_made_by_hand(
    url: str, client: OpenSearch, alias: str, dimension: int, figures: Figures
) -> None:
    store, registry = (
        OpenSearchVectorStore(client, alias=alias, dimension=dimension, embedder="stored"),
        MemoryDocumentRegistry(),
    )
    embedder = StoredVectors(dimension)
    fill(store, registry, embedder)
    semantic = SemanticSearch(embedder, store, registry, KnowledgeBasePath.parse("knowledge_base"))
    golden = yaml.safe_load((SEED / "golden_queries.yaml").read_text(encoding="utf-8"))
    queries = [case["query"] for case in golden["queries"]]
    sent = requests_of(client, lambda: [semantic.rank(query, top_k=3) for query in queries])

    by_hand_client = OpenSearch(url)
    times: dict[str, list[float]] = {"by hand": [], "search": [], "rank": []}
    for query, request in list(zip(queries, sent, strict=True)) * ROUNDS:
        vector = embedder.embed_query(query)
        nearest_to = embedder.question_centring.nearest_to(vector)
        ways: dict[str, Callable[[], object]] = {
            "by hand": partial(by_hand_client.msearch, **request),
            "search": partial(store.search, query, vector, limit=30, nearest_to=nearest_to),
            "rank": partial(semantic.rank, query, top_k=3),
        }
        for name, way in ways.items():
            started = time.perf_counter()
            way()
            times[name].append((time.perf_counter() - started) * 1000)
    by_hand_client.close()
    medians = {name: statistics.median(values) for name, values in times.items()}
    by_hand = medians["by hand"]
    figures.record(
        dimension,
        semantic_rank_ms=medians["rank"],
        semantic_search_ms=medians["search"],
        semantic_msearch_ms=by_hand,
        semantic_rank_to_msearch=medians["rank"] / by_hand,
    )
    assert medians["rank"] <= (1 + MOST_ADDED) * by_hand


def requests_of(client: OpenSearch, work: Callable[[], Sequence[object]]) -> list[dict[str, Any]]:
    """The `_msearch` behind each result of `work`, which is done twice: the first time warms everything up."""
    work()
    sent: list[dict[str, Any]] = []
    msearch = client.msearch

    def recording(**options: Any) -> Any:
        sent.append(options)
        return msearch(**options)

    client.msearch = recording
    results = work()
    del client.msearch
    assert len(sent) == len(results)
    return sent
