"""OpenSearchVectorStore on Serverless, by a strict stand-in in front of a real node. Cases are named by their id."""

import time
from collections.abc import Callable, Iterator

import pytest
from botocore.credentials import Credentials
from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException, NotFoundError, RequestError

from knowledge.adapters.opensearch_client import opensearch_client
from knowledge.adapters.opensearch_index import LUCENE, definition
from knowledge.adapters.opensearch_vectors import OpenSearchVectorStore
from knowledge.domain.document import Chunk, DocumentStatus, doc_id_for
from knowledge.entrypoints.s3_events import IndexerServices, build_handler
from knowledge.errors import DependencyUnavailable
from knowledge.ports import EmbeddedChunk
from tests.contract.builders import DOC, GENERATION, OTHER_GENERATION, chunk
from tests.contract.serverless_standin import Standin, eventually
from tests.entrypoints.events import Context
from tests.entrypoints.test_s3_events import dropped
from tests.services.world import ADMIN, World, markdown

VISIBLE_AFTER_S = 1.0
FIVE = [chunk(f"chunk {n}", [1, n], ordinal=n) for n in range(5)]
NewStore = Callable[..., OpenSearchVectorStore]


@pytest.fixture
def standin(opensearch_url: str) -> Iterator[Standin]:
    """Slower than that of the contract, so that what is not visible yet can be looked at."""
    with Standin(opensearch_url, visible_after_s=VISIBLE_AFTER_S).serving() as server:
        yield server


@pytest.fixture
def new_store(serverless: OpenSearch, opensearch_alias: str) -> NewStore:
    return lambda dimension=2: OpenSearchVectorStore(
        serverless,
        alias=opensearch_alias,
        dimension=dimension,
        serverless=True,
        # A little longer than it takes, as a deployment would have it.
        visible_after_s=VISIBLE_AFTER_S + 0.5,
    )


def stored(client: OpenSearch, alias: str) -> list[int]:
    """The ordinals of all documents, each as often as it is stored."""
    client.indices.refresh(index=alias)
    hits = client.search(index=alias, body={"size": 1000, "sort": ["ordinal"]})["hits"]["hits"]
    return [hit["_source"]["ordinal"] for hit in hits]


def test_the_stand_in_refuses_what_serverless_refuses(
    serverless: OpenSearch, standin: Standin, opensearch_alias: str
) -> None:
    name = f"{opensearch_alias}-000001"
    with pytest.raises(RequestError):
        serverless.indices.create(index=name, body=definition(LUCENE, 2))
    with pytest.raises(RequestError):
        serverless.bulk(body=f'{{"index": {{"_index": "{name}", "_id": "1"}}}}\n{{"ordinal": 1}}\n')
    with pytest.raises(NotFoundError):
        serverless.indices.refresh(index=name)
    with pytest.raises(NotFoundError):
        serverless.delete_by_query(index=name, body={"query": {"match_all": {}}})
    unsigned = opensearch_client(standin.url)
    with pytest.raises(AuthorizationException):
        unsigned.search(index=name, body={})
    unsigned.close()
    for_a_domain = opensearch_client(standin.url, service="es", region="eu-west-1", credentials=Credentials("a", "b"))
    with pytest.raises(AuthorizationException):
        for_a_domain.search(index=name, body={})
    for_a_domain.close()


def test_d01_a_document_of_three_chunks_is_stored_without_ids_and_found_once(
    new_store: NewStore, opensearch: OpenSearch, opensearch_alias: str
) -> None:
    store = new_store()
    chunks = [chunk(f"chunk {n}", [1, n], ordinal=n) for n in range(3)]
    for _ in range(2):  # the second is what a redelivered event does
        store.write(DOC, GENERATION, "kb/a.md", chunks)
    eventually(lambda: len(store.search("chunk", [1.0, 0.0], limit=10).hits) == 3)
    assert stored(opensearch, opensearch_alias) == [0, 0, 1, 1, 2, 2]
    hits = store.search("chunk", [1.0, 0.0], limit=10).hits
    assert [(hit.doc_id, hit.generation, hit.ordinal) for hit in hits] == [(DOC, GENERATION, n) for n in range(3)]


def test_d03_a_generation_that_does_not_show_yet_is_not_taken_for_deleted(
    new_store: NewStore, opensearch: OpenSearch, opensearch_alias: str
) -> None:
    writer, remover = new_store(), new_store()
    writer.write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
    with pytest.raises(DependencyUnavailable, match="again later"):
        remover.delete(DOC, GENERATION)
    eventually(lambda: len(writer.embeddings(DOC, GENERATION)) == 1)
    remover.delete(DOC, GENERATION)
    remover.delete(DOC, GENERATION)
    assert stored(opensearch, opensearch_alias) == []


def test_d03_what_was_never_there_is_believed_gone_after_a_second_look(new_store: NewStore) -> None:
    store = new_store()
    store.write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
    with pytest.raises(DependencyUnavailable):
        store.delete(DOC, OTHER_GENERATION)
    time.sleep(VISIBLE_AFTER_S + 0.6)
    store.delete(DOC, OTHER_GENERATION)


def test_d03_no_replaced_or_deleted_text_is_ever_an_answer_and_no_orphan_stays(
    new_store: NewStore, opensearch: OpenSearch, opensearch_alias: str
) -> None:
    """The case's times, a tenth as long: what is written shows after more than both changes took."""
    store = new_store(256)
    world = World(vectors=lambda _: store)
    path = "knowledge_base/d/a.md"
    started, current, stale = time.monotonic(), "", list[str]()

    def watch(until_s: float) -> None:
        while time.monotonic() - started < until_s:
            hits = world.semantic.rank("the pumpkin ledger version", top_k=5).hits
            stale.extend(hit.chunk.text for hit in hits if not current or current not in hit.chunk.text)

    # The index is made before, which takes longer than the case has time for.
    store.write(DOC, GENERATION, "knowledge_base/other.md", [EmbeddedChunk(Chunk(0, (), "other"), [1.0, *[0.0] * 255])])
    started = time.monotonic()
    current = "version one"
    world.upload("d/a.md", markdown("key", body="the pumpkin ledger version one"))
    watch(0.2)
    current = "version two"
    world.upload("d/a.md", markdown("key", body="the pumpkin ledger version two"))
    watch(0.4)
    world.documents.delete_document(ADMIN, doc_id_for(path))
    current = ""
    watch(0.5)
    assert world.registry.read(doc_id_for(path)).discarded
    # The bucket's event is delivered again until nothing is left, as the queue does.
    handler = build_handler(
        lambda: IndexerServices(world.converger, world.item_documents, world.queue, max_receive_count=8)
    )
    event = {"Records": [dropped(path)]}
    eventually(lambda: not handler(event, Context())["batchItemFailures"])
    watch(3.0)
    assert stale == []
    assert stored(opensearch, opensearch_alias) == [0]
    assert [hit.text for hit in world.chunks("the pumpkin ledger version")] == ["other"]


def test_d03_a_version_that_shows_is_found_and_the_one_before_is_not(new_store: NewStore) -> None:
    store = new_store(256)
    world = World(vectors=lambda _: store)

    def texts() -> list[str]:
        return [hit.chunk.text for hit in world.semantic.rank("the pumpkin ledger version", top_k=5).hits]

    for version in ("version one", "version two"):
        world.upload("d/a.md", markdown("key", body=f"the pumpkin ledger {version}"))
        eventually(lambda: len(texts()) == 1)
        assert version in texts()[0]


def test_d01_an_item_refused_inside_an_accepted_bulk_fails_the_document_visibly(
    new_store: NewStore, opensearch: OpenSearch, opensearch_alias: str
) -> None:
    new_store(2).write(DOC, GENERATION, "knowledge_base/other.md", [chunk("other", [1, 0])])
    world = World(vectors=lambda _: new_store(256))
    record = world.upload("d/a.md", markdown("ERR_77", body="the pumpkin ledger")).record
    assert record.status is DocumentStatus.PENDING
    assert "2 numbers and the embedder makes 256" in (record.reason or "")
    assert world.ask("what is ERR_77").primary is not None
    assert stored(opensearch, opensearch_alias) == [0]


def test_d05_of_an_accepted_bulk_only_the_item_that_was_refused_for_now_is_sent_again(
    new_store: NewStore, standin: Standin, opensearch: OpenSearch, opensearch_alias: str
) -> None:
    store = new_store()
    store.write(DOC, OTHER_GENERATION, "kb/a.md", [chunk("x", [1, 0], ordinal=9)])
    standin.refuse_items.append({2: (429, "rejected_execution_exception")})
    standin.requests.clear()
    store.write(DOC, GENERATION, "kb/a.md", FIVE)
    assert len(standin.requests) == 2
    assert stored(opensearch, opensearch_alias) == [0, 1, 2, 3, 4, 9]


def test_d05_an_item_that_does_not_fit_fails_the_document_visibly(
    new_store: NewStore, standin: Standin, opensearch: OpenSearch, opensearch_alias: str
) -> None:
    store = new_store(256)
    world = World(vectors=lambda _: store)
    body = "\n\n".join(f"# Section {n}\n\nThe pumpkin ledger, part {n}." for n in range(5))
    world.upload("d/other.md", markdown("other", body="unrelated"))
    refused = {2: (429, "rejected_execution_exception"), 4: (400, "mapper_parsing_exception")}
    standin.refuse_items.append(refused)
    record = world.upload("d/a.md", markdown("ERR_77", body=body)).record
    assert (record.status, record.generation, record.chunk_count) == (DocumentStatus.PENDING, None, 5)
    assert "chunk 4 does not fit the index (mapper_parsing_exception)" in (record.reason or "")
    assert world.ask("what is ERR_77").primary is not None
    assert all("pumpkin" not in hit.chunk.text for hit in world.semantic.rank("pumpkin ledger", top_k=5).hits)


def test_d05_after_a_lost_answer_every_chunk_is_stored_once(
    new_store: NewStore, standin: Standin, opensearch: OpenSearch, opensearch_alias: str
) -> None:
    store = new_store()
    store.write(DOC, OTHER_GENERATION, "kb/a.md", [chunk("x", [1, 0], ordinal=9)])
    standin.lose_bulk_answers = 1
    store.write(DOC, GENERATION, "kb/a.md", FIVE)
    assert standin.lose_bulk_answers == 0
    assert stored(opensearch, opensearch_alias) == [0, 1, 2, 3, 4, 9]


def test_a_rebuilt_index_takes_over_once_it_shows_everything(new_store: NewStore) -> None:
    store = new_store()
    store.write(DOC, GENERATION, "kb/a.md", [chunk("old", [1, 0])])
    eventually(lambda: len(store.search("q", [1.0, 0.0], limit=5).hits) == 1)
    store.begin_rebuild().write(DOC, OTHER_GENERATION, "kb/a.md", [chunk("new", [1, 0])])
    store.finish_rebuild()
    assert [hit.text for hit in store.search("q", [1.0, 0.0], limit=5).hits] == ["new"]


def test_a_search_is_one_request(new_store: NewStore, standin: Standin) -> None:
    store = new_store()
    store.write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
    standin.requests.clear()
    store.search("x 支付", [1.0, 0.0], limit=30)
    assert len(standin.requests) == 1
