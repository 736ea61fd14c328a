"""What OpenSearchVectorStore does beyond its port, over a real node. Cases are named by their id."""

import threading
from collections.abc import Callable, Sequence

import pytest
from opensearchpy import OpenSearch

from knowledge.adapters import opensearch_generations
from knowledge.adapters.embedded_vectors import EmbeddedVectorStore
from knowledge.adapters.memory_objects import MemoryObjectStore
from knowledge.adapters.opensearch_vectors import OpenSearchVectorStore
from knowledge.domain.document import DocId, Generation
from knowledge.errors import Conflict, CorruptState, InvalidInput
from knowledge.ports import ChunkHit, VectorStore
from tests.contract.builders import DOC, GENERATION, OTHER_DOC, OTHER_GENERATION, chunk
from tests.services.world import World

NewStore = Callable[..., OpenSearchVectorStore]


@pytest.fixture
def new_store(opensearch: OpenSearch, opensearch_alias: str) -> NewStore:
    return lambda dimension=2: OpenSearchVectorStore(opensearch, alias=opensearch_alias, dimension=dimension)


def indices(client: OpenSearch, alias: str) -> dict[str, list[str]]:
    return {name: list(index["aliases"]) for name, index in client.indices.get(index=f"{alias}-*").items()}


def test_the_first_writers_make_one_index_whoever_of_them_is_first(
    new_store: NewStore, opensearch: OpenSearch, opensearch_alias: str
) -> None:
    together, errors = threading.Barrier(8), list[Exception]()

    def write(number: int) -> None:
        store = new_store()
        together.wait()
        try:
            store.write(DocId(f"doc-{number}"), GENERATION, "kb/a.md", [chunk("x", [1, number])])
        except Exception as error:  # noqa: BLE001 - a thread's error has to be shown by the test
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(new_store().search("x", [1.0, 0.0], limit=20).hits) == 8
    assert indices(opensearch, opensearch_alias) == {f"{opensearch_alias}-000001": [opensearch_alias]}


def test_an_index_that_somebody_removed_is_made_again_with_its_own_fields(
    new_store: NewStore, opensearch: OpenSearch, opensearch_alias: str
) -> None:
    store = new_store()
    store.write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
    opensearch.indices.delete(index=f"{opensearch_alias}-000001")
    assert list(store.search("x", [1.0, 0.0], limit=5).hits) == []
    store.write(DOC, GENERATION, "kb/a.md", [chunk("y", [1, 0])])
    assert [hit.text for hit in store.search("x", [1.0, 0.0], limit=5).hits] == ["y"]


def test_engine_and_space_are_explicit(new_store: NewStore, opensearch: OpenSearch, opensearch_alias: str) -> None:
    new_store().write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
    mapping = opensearch.indices.get_mapping(index=opensearch_alias)[f"{opensearch_alias}-000001"]["mappings"]
    method = mapping["properties"]["vector"]["method"]
    assert (method["engine"], method["space_type"], method["name"]) == ("lucene", "cosinesimil", "hnsw")
    assert mapping["dynamic"] == "strict"


def test_a_generation_of_more_chunks_than_a_page_is_read_and_deleted_whole(new_store: NewStore) -> None:
    store = new_store()
    store.write(DOC, GENERATION, "kb/a.md", [chunk(f"chunk {n}", [1, n], ordinal=n) for n in range(1200)])
    assert len(store.embeddings(DOC, GENERATION)) == 1200
    store.delete(DOC, GENERATION)
    assert store.embeddings(DOC, GENERATION) == {}


def test_a_chunk_without_a_direction_is_found_by_its_words(new_store: NewStore) -> None:
    store = new_store()
    (given,) = [chunk("rare", [1, 0])]
    zeros = type(given)(given.chunk, [0.0, 0.0])
    store.write(DOC, GENERATION, "kb/a.md", [zeros])
    assert [(hit.text, hit.similarity) for hit in store.search("rare", [1.0, 0.0], limit=3).hits] == [("rare", 0.0)]
    store.write(OTHER_DOC, GENERATION, "kb/b.md", [chunk("rare too", [1, 0])])
    assert {hit.similarity for hit in store.search("rare", [0.0, 0.0], limit=3).hits} == {0.0}
    assert list(store.embeddings(DOC, GENERATION).values()) == [[0.0, 0.0]]


def test_a_query_of_thousands_of_terms_is_answered(new_store: NewStore) -> None:
    store = new_store()
    store.write(DOC, GENERATION, "kb/a.md", [chunk("term7", [1, 0])])
    query = " ".join(f"term{n}" for n in range(2000))
    result = store.search(query, [1.0, 0.0], limit=3)
    assert len(result.idf) == 2000
    assert result.hits[0].lexical > 0


TEXTS = [
    *(f"gateway returns code {n} when the upstream is slow, see runbook {n % 7}" for n in range(40)),
    *(f"支付网关在上游变慢时返回代码 {n}，参见手册 {n % 7}" for n in range(30)),
    "ERR_TIMEOUT happens when the 支付网关 is slow",
]


def fill(store: VectorStore, world: World) -> None:
    for number, text in enumerate(TEXTS):
        (vector,) = world.embedder.embed_passages([text])
        store.write(DocId(f"doc-{number:03}"), GENERATION, f"kb/{number}.md", [chunk(text, vector)])


def test_every_number_is_that_of_the_embedded_store(new_store: NewStore) -> None:
    world, embedded, store = World(), EmbeddedVectorStore(MemoryObjectStore()), new_store(256)
    for each in (embedded, store):
        fill(each, world)
    for query in ("支付网关 ERR_TIMEOUT", "why is the upstream slow", "手册 3 在哪里", "nothing of it"):
        vector = world.embedder.embed_query(query)
        centred = [value - 0.01 * place / len(vector) for place, value in enumerate(vector)]
        # All of one, because chunks of equal score may be chosen differently.
        everything = {
            hit.doc_id: hit for hit in embedded.search(query, vector, limit=len(TEXTS), nearest_to=centred).hits
        }
        expected, found = (each.search(query, vector, limit=10, nearest_to=centred) for each in (embedded, store))
        assert found.idf == pytest.approx(expected.idf)
        assert found.absent == expected.absent
        for hit in found.hits:
            assert numbers(hit) == pytest.approx(numbers(everything[hit.doc_id]), abs=1e-4)
            assert hit.held == everything[hit.doc_id].held
        assert nearest(found.hits) == nearest(expected.hits)
        assert best_by_words(found.hits) == pytest.approx(best_by_words(expected.hits))


def numbers(hit: ChunkHit) -> tuple[float, float, float]:
    return hit.similarity, hit.nearness, hit.lexical


def nearest(hits: Sequence[ChunkHit]) -> list[DocId]:
    return [hit.doc_id for hit in sorted(hits, key=lambda hit: (-round(hit.nearness, 4), hit.doc_id))[:5]]


def best_by_words(hits: Sequence[ChunkHit]) -> list[float]:
    return sorted((hit.lexical for hit in hits), reverse=True)[:10]


def test_d07_an_index_for_vectors_of_another_length_is_refused_with_what_to_do(new_store: NewStore) -> None:
    new_store(2).write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
    other = new_store(3)
    with pytest.raises(CorruptState, match=r"2 numbers and the embedder makes 3.*make reindex"):
        other.write(OTHER_DOC, GENERATION, "kb/b.md", [chunk("y", [1, 0, 0])])
    with pytest.raises(CorruptState, match="make reindex"):
        other.search("y", [1.0, 0.0, 0.0], limit=3)
    with pytest.raises(InvalidInput, match="make reindex"):
        other.write(OTHER_DOC, GENERATION, "kb/b.md", [chunk("y", [1, 0])])
    assert [hit.text for hit in new_store(2).search("x", [1.0, 0.0], limit=3).hits] == ["x"]


def test_d07_a_rebuild_takes_the_place_of_the_index_while_searches_go_on(
    new_store: NewStore, opensearch: OpenSearch, opensearch_alias: str
) -> None:
    store, done, seen, errors = new_store(), threading.Event(), list[str](), list[Exception]()
    store.write(DOC, GENERATION, "kb/a.md", [chunk("old", [1, 0])])
    store.note({"embedder": "old"})

    def search() -> None:
        try:
            while not done.is_set():
                seen.append(" ".join(hit.text for hit in store.search("q", [1.0, 0.0], limit=5).hits))
        except Exception as error:  # noqa: BLE001 - a thread's error has to be shown by the test
            errors.append(error)

    threads = [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(3):
            rebuilt = store.begin_rebuild()
            rebuilt.note({"embedder": f"new {turn}"})
            rebuilt.write(DOC, OTHER_GENERATION, "kb/a.md", [chunk(f"new{turn}", [1, 0])])
            store.finish_rebuild()
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert errors == []
    assert set(seen) <= {"old", "new0", "new1", "new2"}
    assert [hit.text for hit in store.search("q", [1.0, 0.0], limit=5).hits] == ["new2"]
    assert store.notes() == {"embedder": "new 2"}
    assert indices(opensearch, opensearch_alias) == {f"{opensearch_alias}-000004": [opensearch_alias]}


def test_only_whole_generations_are_listed_however_many_pages_they_take(
    new_store: NewStore, opensearch: OpenSearch, opensearch_alias: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opensearch_generations, "_GENERATIONS_PAGE", 2)
    store = new_store()
    for number in range(5):
        chunks = [chunk("x", [1, 0]), chunk("y", [0, 1], ordinal=1)]
        store.write(DOC, Generation(f"generation-{number}"), "kb/a.md", chunks)
    opensearch.delete(index=opensearch_alias, id=f"{DOC}-generation-3-1", params={"refresh": "true"})
    assert [generation for _, generation in store.generations()] == [f"generation-{n}" for n in (0, 1, 2, 4)]


def test_an_unfinished_rebuild_for_vectors_of_another_length_is_given_up(
    new_store: NewStore, opensearch: OpenSearch, opensearch_alias: str
) -> None:
    new_store(2).begin_rebuild().write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
    new_store(3).begin_rebuild().write(DOC, GENERATION, "kb/a.md", [chunk("y", [1, 0, 0])])
    new_store(3).finish_rebuild()
    assert [hit.text for hit in new_store(3).search("q", [1.0, 0.0, 0.0], limit=5).hits] == ["y"]
    assert indices(opensearch, opensearch_alias) == {f"{opensearch_alias}-000003": [opensearch_alias]}


def test_whoever_still_builds_what_another_one_finished_makes_no_index_of_his_own(
    new_store: NewStore, opensearch: OpenSearch, opensearch_alias: str
) -> None:
    building = new_store().begin_rebuild()
    new_store().begin_rebuild()
    new_store().finish_rebuild()
    with pytest.raises(Conflict, match="somebody else"):
        building.write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
    assert indices(opensearch, opensearch_alias) == {f"{opensearch_alias}-000002": [opensearch_alias]}


def test_an_unfinished_rebuild_leaves_no_index_behind(
    new_store: NewStore, opensearch: OpenSearch, opensearch_alias: str
) -> None:
    store = new_store()
    with pytest.raises(Conflict):
        store.finish_rebuild()
    store.begin_rebuild().write(DOC, GENERATION, "kb/a.md", [chunk("unfinished", [1, 0])])
    assert list(store.search("q", [1.0, 0.0], limit=5).hits) == []
    store.begin_rebuild().write(DOC, GENERATION, "kb/a.md", [chunk("finished", [1, 0])])
    store.finish_rebuild()
    assert [hit.text for hit in store.search("q", [1.0, 0.0], limit=5).hits] == ["finished"]
    assert indices(opensearch, opensearch_alias) == {f"{opensearch_alias}-000002": [opensearch_alias]}
