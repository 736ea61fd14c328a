"""The seed knowledge base and its golden queries, through the real services, matcher, embedder and vectors.

The thresholds are what was reached when they were written down. They only rise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from knowledge.adapters.embedded_vectors import EmbeddedVectorStore
from knowledge.adapters.local_embedder import LocalEmbedder
from knowledge.adapters.opensearch_client import opensearch_client
from knowledge.adapters.opensearch_vectors import OpenSearchVectorStore
from knowledge.domain.document import DocumentStatus
from knowledge.domain.lookup import LookupAnswer
from knowledge.ports import Vector
from knowledge.retrieval.off_topic import OFF_TOPIC
from knowledge.services.calibration import Calibration
from knowledge.services.own_sentences import OwnSentences
from knowledge.services.semantic import SemanticSearch
from tests.services.world import World

SEED = Path(__file__).parents[2] / "knowledge_base_seed"


@dataclass(frozen=True)
class Golden:
    """One query with the answer expected of each tier; paths are relative to the seed."""

    id: str
    kind: str
    query: str
    found: bool
    primary: str | None = None
    confidence: str | None = None
    supplement: tuple[str, ...] = ()


def golden_queries() -> list[Golden]:
    entries = yaml.safe_load((SEED / "golden_queries.yaml").read_text(encoding="utf-8"))["queries"]
    return [Golden(**{**entry, "supplement": tuple(entry.get("supplement", ()))}) for entry in entries]


GOLDEN = golden_queries()
# Where only the semantic tier can answer.
MEANING = [golden for golden in GOLDEN if golden.kind in ("semantic", "cross_lingual")]


@pytest.fixture(scope="module")
def world() -> World:
    return filled(World(embedder=Remembering(), vectors=EmbeddedVectorStore))


def filled(world: World) -> World:
    """With the seed, and calibrated on it."""
    for file in sorted(SEED.rglob("*.md")):
        record = world.upload(file.relative_to(SEED).as_posix(), file.read_bytes()).record
        assert record.status is DocumentStatus.INDEXED, record
        assert record.warnings == (), record
    world.index.load()
    calibration(world).calibrate()
    return world


@pytest.fixture(scope="module")
def answers(world: World) -> dict[str, LookupAnswer]:
    return {golden.id: world.ask(golden.query) for golden in GOLDEN}


def calibration(world: World) -> Calibration:
    own = OwnSentences(world.objects, world.base, max_document_bytes=world.max_document_bytes)
    return Calibration(world.semantic, own)


def source(path: str | None) -> str | None:
    return f"knowledge_base/{path}" if path else None


def share(hits: list[bool]) -> float:
    return sum(hits) / len(hits)


class Remembering(LocalEmbedder):
    """Embeds a text once in all: two bases of the same documents are compared, not two runs of a model."""

    def __init__(self) -> None:
        super().__init__()
        self._embedded: dict[tuple[str, bool], Vector] = {}

    def embed_query(self, text: str) -> Vector:
        if (text, True) not in self._embedded:
            self._embedded[text, True] = super().embed_query(text)
        return self._embedded[text, True]

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        missing = [text for text in texts if (text, False) not in self._embedded]
        found = zip(missing, super().embed_passages(missing), strict=True)
        self._embedded |= {(text, False): vector for text, vector in found}
        return [self._embedded[text, False] for text in texts]


def test_the_golden_set_covers_every_kind() -> None:
    kinds = ("exact", "partial", "mixed", "multi", "semantic", "cross_lingual", "unanswerable")
    assert len(GOLDEN) >= 60
    assert all(sum(golden.kind == kind for golden in GOLDEN) >= 8 for kind in kinds)


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.id)
def test_the_exact_tier_answers_as_expected(golden: Golden, answers: dict[str, LookupAnswer]) -> None:
    primary = answers[golden.id].primary
    assert (primary and primary.source) == source(golden.primary)
    if primary is not None:
        assert primary.confidence.value == golden.confidence
        assert (answers[golden.id].supplement is None) or golden.confidence == "low"


def test_documents_that_are_asked_about_in_their_own_language_are_found(answers: dict[str, LookupAnswer]) -> None:
    hits = []
    for golden in GOLDEN:
        supplement = answers[golden.id].supplement
        if golden.kind == "semantic":
            hits.append(supplement is not None and supplement.source in map(source, golden.supplement))
    print(f"\nsemantic, right document first: {share(hits):.2f} of {len(hits)}")
    assert share(hits) >= 0.84


def test_documents_in_the_other_language_are_among_the_first_three(world: World) -> None:
    hits = []
    for golden in GOLDEN:
        if golden.kind == "cross_lingual":
            found = [hit.chunk.file_path for hit in world.semantic.rank(golden.query, top_k=3).hits]
            hits.append(bool(set(found) & set(map(source, golden.supplement))))
    print(f"\ncross-lingual, right document among three: {share(hits):.2f} of {len(hits)}")
    assert share(hits) >= 0.56


def test_answerable_queries_are_answered(answers: dict[str, LookupAnswer]) -> None:
    hits = [answers[golden.id].found for golden in MEANING]
    print(f"\nanswerable by meaning, answered: {share(hits):.2f} of {len(hits)}")
    assert share(hits) >= 0.97
    assert all(answers[golden.id].found for golden in GOLDEN if golden.primary)


def test_unanswerable_queries_are_not_found(answers: dict[str, LookupAnswer]) -> None:
    hits = [not answers[golden.id].found for golden in GOLDEN if not golden.found]
    print(f"\nunanswerable, refused: {share(hits):.2f} of {len(hits)}")
    assert share(hits) >= 0.91


def test_a_calibration_on_the_base_itself_answers_and_refuses_as_well(world: World) -> None:
    result = calibration(world).calibrate()
    calibrated = SemanticSearch(world.embedder, world.vectors, world.registry, world.base)
    answered = [bool(calibrated.search(golden.query)) for golden in MEANING]
    refused = [not calibrated.search(golden.query) for golden in GOLDEN if not golden.found]
    off_topic = [not calibrated.search(query) for query in OFF_TOPIC]
    print(f"\n{result}\nanswered {share(answered):.3f}, refused {share(refused):.3f}, off topic {share(off_topic):.3f}")
    assert share(answered) >= 0.97
    assert share(refused) >= 0.91
    assert share(off_topic) >= 0.98


def test_opensearch_gives_the_same_three_documents_as_the_embedded_store(
    world: World, opensearch_url: str, opensearch_alias: str
) -> None:
    client = opensearch_client(opensearch_url)
    store = OpenSearchVectorStore(
        client, alias=opensearch_alias, dimension=world.embedder.dimension, embedder=world.embedder.name
    )
    other = filled(World(embedder=world.embedder._adapter, vectors=lambda _: store))
    for golden in GOLDEN:
        expected, found = (each.semantic.rank(golden.query, top_k=3) for each in (world, other))
        assert [hit.chunk.file_path for hit in found.hits] == [hit.chunk.file_path for hit in expected.hits], golden
        assert found.evidence == pytest.approx(expected.evidence, abs=1e-4)
        assert found.threshold == pytest.approx(expected.threshold, abs=1e-3)
    client.close()
