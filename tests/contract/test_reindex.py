"""Embedding a base again while its functions go on, over every store. Cases are named by their id."""

import itertools
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from opensearchpy import OpenSearch

from knowledge.adapters.embedded_vectors import EmbeddedVectorStore
from knowledge.adapters.hashing_embedder import HashingEmbedder
from knowledge.adapters.memory import MemoryVectorStore
from knowledge.adapters.opensearch_vectors import OpenSearchVectorStore
from knowledge.domain.document import DocumentRecord, DocumentStatus, doc_id_for
from knowledge.domain.lookup import Tier
from knowledge.errors import DependencyUnavailable, InvalidInput
from knowledge.ports import ObjectStore, RebuildableVectorStore, Vector
from knowledge.services.reindex import Reindex
from tests.contract.conftest import NewIndex
from tests.services.world import ADMIN, World, markdown


class Shorter(HashingEmbedder):
    """Another model, of half as many numbers, which reads shorter texts."""

    @property
    def name(self) -> str:
        return "shorter"

    @property
    def dimension(self) -> int:
        return 128

    @property
    def max_tokens(self) -> int:
        return 64

    def embed_query(self, text: str) -> Vector:
        long = super().embed_query(text)
        folded = [one + other for one, other in zip(long[:128], long[128:], strict=True)]
        return [value / math.hypot(*folded) for value in folded]

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        return [self.embed_query(text) for text in texts]


class Turned(HashingEmbedder):
    """Another model of the same length, whose vectors compared with the first one's mean nothing."""

    @property
    def name(self) -> str:
        return "turned"

    def embed_query(self, text: str) -> Vector:
        return super().embed_query(text)[::-1]

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        return [self.embed_query(text) for text in texts]


class Deployments:
    """The functions of a stack before and after a setting was changed, over the same bucket, table and vectors."""

    def __init__(self, new_index: NewIndex) -> None:
        self._new_index = new_index
        self.first: World | None = None

    def deploy(self, embedder: HashingEmbedder) -> World:
        """Functions with this embedder."""

        def vectors(_: ObjectStore) -> RebuildableVectorStore:
            return self._new_index(embedder.name, embedder.dimension)

        world = World(embedder=embedder, vectors=vectors, beside=self.first)
        self.first = self.first or world
        return world


@pytest.fixture
def deployments(new_index: NewIndex) -> Deployments:
    return Deployments(new_index)


def reindex(world: World, *, copied_from: RebuildableVectorStore | None = None) -> Reindex:
    return Reindex(
        world.objects,
        world.registry,
        world.converger,
        world.vectors,
        world.embedder,
        max_document_bytes=world.max_document_bytes,
        copied_from=copied_from,
        sleep=lambda _: None,
    )


TOPICS = ("invoices", "refunds", "webhooks", "tokens", "quotas", "backups")


def text_of(topic: str) -> str:
    return f"The {topic} worker must be restarted every night because its {topic} queue fills up."


def question_about(topic: str) -> str:
    return f"must the {topic} worker be restarted every night"


def fill(world: World) -> World:
    for topic in TOPICS:
        world.upload(f"kb/{topic}.md", markdown(f"ERR_{topic}", title=topic, body=text_of(topic)))
    return world


def path_of(topic: str) -> str:
    return f"knowledge_base/kb/{topic}.md"


def found_by_meaning(world: World, topic: str) -> str | None:
    """The path of the best document; fails when the semantic tier does."""
    answer = world.ask(question_about(topic))
    assert answer.degraded == ()
    return answer.supplement.source if answer.supplement else None


def records(world: World) -> dict[str, DocumentRecord]:
    page = world.registry.list(path_prefix="", status=None, cursor=None, limit=100)
    return {record.file_path: record for record in page.records}


def current(world: World) -> set[tuple[str, str | None]]:
    return {(record.doc_id, record.generation) for record in records(world).values()}


@contextmanager
def looked_up_all_the_while(world: World, topics: Sequence[str]) -> Iterator[list[str | None]]:
    """Two threads ask for these topics until the block ends; what they did not find right is in the list."""
    done, wrong, asked = threading.Event(), list[str | None](), list[int]()

    def look() -> None:
        while not done.is_set():
            for topic in topics:
                try:
                    found = found_by_meaning(world, topic)
                except Exception as error:  # noqa: BLE001 - a thread's error has to be shown by the test
                    found = repr(error)
                asked.append(1)
                if found != path_of(topic):
                    wrong.append(found)

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield wrong
    finally:
        done.set()
        for thread in threads:
            thread.join()
        assert len(asked) >= 2 * len(topics)


@pytest.mark.parametrize("successor", [Shorter(), Turned()], ids=["of another dimension", "of the same dimension"])
def test_d07_lookups_go_on_with_the_old_embedder_until_the_new_index_is_built_and_with_the_new_one_from_then_on(
    deployments: Deployments, successor: HashingEmbedder
) -> None:
    old = fill(deployments.deploy(HashingEmbedder()))
    new = deployments.deploy(successor)
    before = current(old)
    with looked_up_all_the_while(old, ("invoices", "refunds", "webhooks")) as wrong:
        building = reindex(new).build()
        next(building)
        # Everything that can happen meanwhile, after these documents were written to the new index.
        old.upload("kb/archive.md", markdown("ERR_archive", title="archive", body=text_of("archive")))
        old.upload("kb/tokens.md", markdown("ERR_tokens", title="tokens", body="Now " + text_of("tokens")))
        old.documents.delete_document(ADMIN, doc_id_for(path_of("quotas")))
        list(building)
        with looked_up_all_the_while(new, ("invoices", "refunds", "webhooks", "archive", "tokens")) as wrong_in_new:
            assert found_by_meaning(new, "quotas") != path_of("quotas")
            for world in (old, new):
                assert found_by_meaning(world, "archive") == path_of("archive")
    assert (wrong, wrong_in_new) == ([], [])
    assert set(new.vectors.generations()) == current(new) == set(old.vectors.generations())
    assert len(before & current(new)) == len(TOPICS) - 2
    assert {record.embedder for record in records(new).values()} == {"hashing-3gram"}

    new.reset_counts()
    with looked_up_all_the_while(new, TOPICS[:3]) as wrong:
        assert len(list(reindex(new).settle())) == len(TOPICS)
    assert wrong == []
    assert new.embedder.calls["embed_passages"] == 0
    assert {record.embedder for record in records(new).values()} == {successor.name}
    assert set(new.vectors.generations()) == current(new)
    assert dict(new.vectors.notes()) == {"embedder": successor.name, "dimension": successor.dimension}


def test_d07_without_a_rebuild_meaning_is_refused_exact_answers_go_on_and_uploads_wait(
    deployments: Deployments, caplog: pytest.LogCaptureFixture
) -> None:
    fill(deployments.deploy(HashingEmbedder()))
    new = deployments.deploy(Shorter())
    assert new.ask("ERR_tokens").primary is not None
    answer = new.ask(question_about("tokens"))
    assert (answer.found, answer.degraded) == (False, (Tier.SEMANTIC,))
    assert any("run make reindex" in str(record.__dict__.get("reason")) for record in caplog.records)
    new.reset_counts()
    waiting = new.upload("kb/archive.md", markdown("ERR_archive", title="archive", body=text_of("archive"))).record
    assert waiting.status is DocumentStatus.PENDING
    assert "re-embed needed" in str(waiting.reason)
    assert new.embedder.calls["embed_passages"] == 0
    assert new.ask("ERR_archive").primary is not None
    list(reindex(new).build())
    assert found_by_meaning(new, "tokens") == path_of("tokens")
    assert {record.status for record in reindex(new).settle()} == {DocumentStatus.INDEXED}
    assert found_by_meaning(new, "archive") == path_of("archive")


def test_d07_what_a_warm_worker_with_the_old_setting_writes_never_comes_into_the_new_index(
    deployments: Deployments,
) -> None:
    warm = fill(deployments.deploy(HashingEmbedder()))
    new = deployments.deploy(Turned())
    list(reindex(new).build())
    late = warm.upload("kb/archive.md", markdown("ERR_archive", title="archive", body=text_of("archive"))).record
    warm.upload("kb/tokens.md", markdown("ERR_tokens", title="tokens", body="Now " + text_of("tokens")))
    warm.documents.delete_document(ADMIN, doc_id_for(path_of("quotas")))
    assert late.status is DocumentStatus.INDEXED
    assert found_by_meaning(new, "archive") != path_of("archive")
    assert found_by_meaning(new, "quotas") != path_of("quotas")
    assert {record.status for record in reindex(new).settle()} == {DocumentStatus.INDEXED}
    for topic in ("archive", "tokens"):
        assert found_by_meaning(new, topic) == path_of(topic)
    assert set(new.vectors.generations()) == current(new)

    refused = warm.upload("kb/later.md", markdown("ERR_later", title="later", body=text_of("later"))).record
    assert refused.status is DocumentStatus.PENDING
    assert warm.ask(question_about("tokens")).degraded == (Tier.SEMANTIC,)
    assert set(new.vectors.generations()) < current(new)
    new.converger.converge(path_of("later"))
    assert found_by_meaning(new, "later") == path_of("later")


def test_broken_off_it_goes_on_where_it_stopped(deployments: Deployments) -> None:
    old = fill(deployments.deploy(HashingEmbedder()))
    new = deployments.deploy(Shorter())
    begin, number = new.vectors._adapter.begin_rebuild, itertools.count(1)

    def stops_after_three() -> RebuildableVectorStore:
        building = begin()
        write = building.write

        def killed(*arguments: object) -> None:
            if next(number) > 3:
                raise DependencyUnavailable("node", "was killed")
            write(*arguments)

        building.write = killed
        return building  # type: ignore[no-any-return]

    new.vectors._adapter.begin_rebuild = stops_after_three
    with pytest.raises(DependencyUnavailable):
        list(reindex(new).build())
    assert found_by_meaning(old, "tokens") == path_of("tokens")
    assert new.ask(question_about("tokens")).degraded == (Tier.SEMANTIC,)
    new.vectors._adapter.begin_rebuild = begin
    before = new.embedder.calls["embed_passages"]
    assert len(list(reindex(new).build())) == len(TOPICS)
    assert new.embedder.calls["embed_passages"] - before == len(TOPICS) - 3
    assert found_by_meaning(new, "tokens") == path_of("tokens")
    list(reindex(new).settle())
    assert set(new.vectors.generations()) == current(new)


def test_an_index_made_anew_for_the_same_embedder_costs_no_embedding_and_keeps_its_notes(
    deployments: Deployments,
) -> None:
    world = fill(deployments.deploy(HashingEmbedder()))
    world.vectors.note({**world.vectors.notes(), "calibration": {"answer_threshold": 0.25}})
    world.reset_counts()
    with looked_up_all_the_while(world, TOPICS) as wrong:
        building = reindex(world).build()
        next(building)
        world.upload("kb/archive.md", markdown("ERR_archive", title="archive", body=text_of("archive")))
        list(building)
        list(reindex(world).settle())
    assert wrong == []
    assert world.embedder.calls["embed_passages"] == 1
    assert world.vectors.notes()["calibration"] == {"answer_threshold": 0.25}
    assert found_by_meaning(world, "archive") == path_of("archive")
    assert set(world.vectors.generations()) == current(world)


def test_what_the_functions_wrote_to_the_old_index_up_to_the_change_is_found_after_settling(
    deployments: Deployments,
) -> None:
    world = fill(deployments.deploy(HashingEmbedder()))
    finish = world.vectors._adapter.finish_rebuild

    def changed_over_just_after_an_upload() -> None:
        world.upload("kb/archive.md", markdown("ERR_archive", title="archive", body=text_of("archive")))
        finish()

    world.vectors._adapter.finish_rebuild = changed_over_just_after_an_upload
    list(reindex(world).build())
    list(reindex(world).settle())
    assert found_by_meaning(world, "archive") == path_of("archive")
    assert set(world.vectors.generations()) == current(world)


def test_moving_to_another_store_takes_the_vectors_along_while_lookups_go_on(new_index: NewIndex) -> None:
    embedder = HashingEmbedder()
    old = fill(World(embedder=embedder, vectors=lambda objects: EmbeddedVectorStore(objects, embedder=embedder.name)))
    new = World(vectors=lambda _: new_index(embedder.name, embedder.dimension), beside=old)
    with looked_up_all_the_while(old, TOPICS) as wrong:
        list(reindex(new, copied_from=old.vectors).build())
    with looked_up_all_the_while(new, TOPICS) as wrong_in_new:
        list(reindex(new).settle())
    assert (wrong, wrong_in_new) == ([], [])
    assert new.embedder.calls["embed_passages"] == 0
    assert set(new.vectors.generations()) == current(new)


def test_a_document_whose_file_went_away_unnoticed_is_gone_after_settling(new_index: NewIndex) -> None:
    """Its record says that it is indexed, as the same embedder would, and there is nothing to embed."""
    world = fill(World(vectors=EmbeddedVectorStore))
    moved = World(vectors=lambda _: new_index(world.embedder.name, world.embedder.dimension), beside=world)
    world.objects.delete(path_of("refunds"))
    list(reindex(moved).build())
    list(reindex(moved).settle())
    assert path_of("refunds") not in records(moved)
    assert len(records(moved)) == len(TOPICS) - 1


def test_a_document_that_the_new_embedder_refuses_is_left_out_and_told() -> None:
    class Particular(Shorter):
        def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
            if any("quotas" in text for text in texts):
                raise InvalidInput("the text is too long for the model")
            return super().embed_passages(texts)

    place = MemoryVectorStore()
    old = fill(World(vectors=lambda _: MemoryVectorStore("hashing-3gram", beside=place)))
    new = World(embedder=Particular(), vectors=lambda _: MemoryVectorStore("shorter", beside=place), beside=old)
    list(reindex(new).build())
    assert found_by_meaning(new, "tokens") == path_of("tokens")
    settled = {record.file_path: record.status for record in reindex(new).settle()}
    assert settled[path_of("quotas")] is DocumentStatus.FAILED
    assert {status for path, status in settled.items() if path != path_of("quotas")} == {DocumentStatus.INDEXED}


def test_an_endpoint_or_a_node_that_fails_for_a_while_does_not_end_it() -> None:
    place, waited = MemoryVectorStore(), list[float]()
    old = fill(World(vectors=lambda _: MemoryVectorStore("hashing-3gram", beside=place)))
    new = World(embedder=Shorter(), vectors=lambda _: MemoryVectorStore("shorter", beside=place), beside=old)

    def mended(seconds: float) -> None:
        waited.append(seconds)
        new.embedder.broken.clear()

    new.embedder.broken.add("embed_passages")
    arguments = (new.objects, new.registry, new.converger, new.vectors, new.embedder)
    list(Reindex(*arguments, max_document_bytes=10_000, sleep=mended).build())
    assert set(waited) == {1.0}
    assert set(new.vectors.generations()) == current(new)


class SlowUpload:
    """An upload that has written its vectors, and commits when it is let."""

    def __init__(self, world: World) -> None:
        wrote, self._may_commit = threading.Event(), threading.Event()
        commit = world.registry._adapter.commit
        self.waited: list[float] = []

        def commit_late(change: object) -> None:
            wrote.set()
            assert self._may_commit.wait(10)
            commit(change)

        world.registry._adapter.commit = commit_late
        text = markdown("E", title="archive", body=text_of("archive"))
        self._thread = threading.Thread(target=world.upload, args=("kb/archive.md", text))
        self._thread.start()
        assert wrote.wait(10)

    def end(self, seconds: float) -> None:
        """As somebody who waits that long sees it."""
        self.waited.append(seconds)
        self._may_commit.set()
        self._thread.join()


@pytest.mark.parametrize("is_built_anew", [False, True])
def test_settling_waits_for_whoever_is_still_writing_and_spares_or_restores_his_vectors(is_built_anew: bool) -> None:
    world = fill(World(vectors=lambda _: MemoryVectorStore("hashing-3gram")))
    upload = SlowUpload(world)
    arguments = (world.objects, world.registry, world.converger, world.vectors, world.embedder)
    program = Reindex(*arguments, max_document_bytes=10_000, clock=lambda: 0.0, sleep=upload.end)
    world.reset_counts()
    if is_built_anew:
        list(program.build())
        assert doc_id_for(path_of("archive")) not in {doc_id for doc_id, _ in world.vectors.generations()}
    list(program.settle())
    assert upload.waited == [30.0]
    assert found_by_meaning(world, "archive") == path_of("archive")
    assert world.embedder.calls["embed_passages"] == (1 if is_built_anew else 0)


def test_no_index_is_left_over_on_a_node(opensearch_alias: str, opensearch: OpenSearch) -> None:
    def new_index(embedder: str, dimension: int) -> RebuildableVectorStore:
        return OpenSearchVectorStore(opensearch, alias=opensearch_alias, dimension=dimension, embedder=embedder)

    def indices() -> dict[str, list[str]]:
        found = opensearch.indices.get(index=f"{opensearch_alias}-*")
        return {name.removeprefix(opensearch_alias): list(index["aliases"]) for name, index in found.items()}

    deployments = Deployments(new_index)
    old, new = fill(deployments.deploy(HashingEmbedder())), deployments.deploy(Shorter())
    next(reindex(new).build())  # broken off
    next(reindex(old).build())
    assert len(indices()) == 3
    list(reindex(new).build())
    list(reindex(new).build())
    assert found_by_meaning(old, "tokens") == path_of("tokens")
    list(reindex(new).settle())
    [(name, [alias])] = indices().items()
    assert name.endswith("-000003")
    assert name == f"{alias.removeprefix(opensearch_alias)}-000003"
