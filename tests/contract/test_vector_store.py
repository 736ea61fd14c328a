"""What every VectorStore does."""

import threading
from collections.abc import Callable

import pytest

from knowledge.domain.document import DocId
from knowledge.ports import VectorStore
from tests.contract.builders import DOC, GENERATION, OTHER_DOC, OTHER_GENERATION, chunk

NewVectors = Callable[[], VectorStore]


class TestVectorStore:
    def test_an_empty_store_gives_nothing(self, new_vectors: NewVectors) -> None:
        vectors = new_vectors()
        assert list(vectors.search("q", [1.0, 0.0], limit=3).hits) == []
        assert vectors.embeddings(DOC, GENERATION) == {}

    def test_the_most_similar_chunks_come_first(self, new_vectors: NewVectors) -> None:
        vectors = new_vectors()
        vectors.write(DOC, GENERATION, "kb/一.md", [chunk("same", [1, 0]), chunk("opposite", [-1, 0], ordinal=1)])
        vectors.write(OTHER_DOC, GENERATION, "kb/b.md", [chunk("half", [1, 1])])
        hits = vectors.search("q", [1.0, 0.0], limit=10).hits
        assert [hit.text for hit in hits] == ["same", "half", "opposite"]
        assert [hit.similarity for hit in hits] == pytest.approx([1.0, 0.5**0.5, -1.0])
        assert (hits[0].doc_id, hits[0].generation, hits[0].file_path, hits[0].ordinal) == (
            DOC,
            GENERATION,
            "kb/一.md",
            0,
        )
        assert (hits[2].doc_id, hits[2].ordinal) == (DOC, 1)
        assert all(type(hit.similarity) is float and -1.0 <= hit.similarity <= 1.0 for hit in hits)

    @pytest.mark.parametrize("limit", [0, 1, 2, 5])
    def test_no_more_than_the_limit_are_returned(self, new_vectors: NewVectors, limit: int) -> None:
        vectors = new_vectors()
        vectors.write(DOC, GENERATION, "kb/a.md", [chunk(str(n), [1, n], ordinal=n) for n in range(3)])
        assert [hit.text for hit in vectors.search("q", [1.0, 0.0], limit=limit).hits] == ["0", "1", "2"][:limit]

    def test_equal_similarities_are_in_order_of_document_generation_and_ordinal(self, new_vectors: NewVectors) -> None:
        vectors = new_vectors()
        for doc_id in (OTHER_DOC, DOC):
            for generation in (OTHER_GENERATION, GENERATION):
                chunks = [chunk("x", [1, 0], ordinal=0), chunk("y", [1, 0], ordinal=1)]
                vectors.write(doc_id, generation, "kb/a.md", chunks)
        hits = vectors.search("q", [1.0, 0.0], limit=10).hits
        places = [(hit.doc_id, hit.generation, hit.ordinal) for hit in hits]
        assert len(places) == 8
        assert places == sorted(places)

    def test_embeddings_are_found_by_content_hash(self, new_vectors: NewVectors) -> None:
        chunks = [chunk("one\0", [3, 4]), chunk("二 😀", [0, 1], ordinal=1)]
        new_vectors().write(DOC, GENERATION, "kb/a.md", chunks)
        found = new_vectors().embeddings(DOC, GENERATION)
        assert found.keys() == {item.chunk.content_hash for item in chunks}
        assert list(found[chunks[0].chunk.content_hash]) == pytest.approx([0.6, 0.8])
        assert new_vectors().embeddings(DOC, OTHER_GENERATION) == {}

    def test_texts_come_back_as_they_were(self, new_vectors: NewVectors) -> None:
        text = '标题\n\n```\n# \ttab "quotes" \\ back\r\n😀\0end'
        new_vectors().write(DOC, GENERATION, "kb/a.md", [chunk(text, [1, 0])])
        assert new_vectors().search("q", [1.0, 0.0], limit=1).hits[0].text == text

    def test_a_deleted_generation_is_found_by_nobody_who_has_already_searched(self, new_vectors: NewVectors) -> None:
        here, there = new_vectors(), new_vectors()
        here.write(DOC, GENERATION, "kb/a.md", [chunk("old", [1, 0])])
        here.write(DOC, OTHER_GENERATION, "kb/a.md", [chunk("new", [1, 0])])
        assert [len(store.search("q", [1.0, 0.0], limit=5).hits) for store in (here, there)] == [2, 2]
        here.delete(DOC, GENERATION)
        here.delete(DOC, GENERATION)
        assert [[hit.text for hit in store.search("q", [1.0, 0.0], limit=5).hits] for store in (here, there)] == [
            ["new"]
        ] * 2
        assert there.embeddings(DOC, GENERATION) == {}

    def test_what_another_process_writes_is_found_at_once(self, new_vectors: NewVectors) -> None:
        here, there = new_vectors(), new_vectors()
        assert list(here.search("q", [1.0, 0.0], limit=5).hits) == []
        there.write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
        assert [hit.text for hit in here.search("q", [1.0, 0.0], limit=5).hits] == ["x"]

    def test_nothing_is_kept_of_a_generation_without_chunks(self, new_vectors: NewVectors) -> None:
        new_vectors().write(DOC, GENERATION, "kb/a.md", [])
        assert list(new_vectors().search("q", [1.0, 0.0], limit=5).hits) == []
        assert new_vectors().embeddings(DOC, GENERATION) == {}

    def test_vectors_of_another_length_are_never_compared(self, new_vectors: NewVectors) -> None:
        vectors = new_vectors()
        vectors.write(DOC, GENERATION, "kb/a.md", [chunk("three", [1, 0, 0])])
        vectors.write(OTHER_DOC, GENERATION, "kb/b.md", [chunk("two", [1, 0])])
        assert [hit.text for hit in vectors.search("q", [1.0, 0.0], limit=5).hits] == ["two"]
        assert [hit.text for hit in vectors.search("q", [1.0, 0.0, 0.0], limit=5).hits] == ["three"]
        assert list(vectors.search("q", [1.0], limit=5).hits) == []

    def test_writing_a_generation_again_changes_nothing(self, new_vectors: NewVectors) -> None:
        vectors = new_vectors()
        for _ in range(2):
            vectors.write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
        assert len(vectors.search("q", [1.0, 0.0], limit=5).hits) == 1

    def test_searches_while_others_write_and_delete_see_whole_generations_only(self, new_vectors: NewVectors) -> None:
        vectors, errors, counts = new_vectors(), list[Exception](), set[int]()

        def write() -> None:
            for _ in range(5):
                vectors.write(DOC, GENERATION, "kb/a.md", [chunk(str(n), [1, n], ordinal=n) for n in range(4)])
                vectors.delete(DOC, GENERATION)

        def search() -> None:
            try:
                for _ in range(10):
                    counts.add(len(vectors.search("q", [1.0, 0.0], limit=10).hits))
            except Exception as error:  # noqa: BLE001 - a thread's error has to be shown by the test
                errors.append(error)

        threads = [threading.Thread(target=work) for work in (write, search, search, search)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert counts <= {0, 4}

    def test_words_find_what_the_vector_does_not_and_every_hit_carries_both_scores(
        self, new_vectors: NewVectors
    ) -> None:
        vectors = new_vectors()
        near = [chunk(f"about nothing {n}", [1, n / 100], ordinal=n) for n in range(5)]
        vectors.write(DOC, GENERATION, "kb/a.md", near)
        vectors.write(OTHER_DOC, GENERATION, "kb/b.md", [chunk("出现 ERR_TIMEOUT 错误", [-1, 0])])
        result = vectors.search("ERR_TIMEOUT是什么", [1.0, 0.0], limit=2)
        assert sorted(hit.text for hit in result.hits) == [
            "about nothing 0",
            "about nothing 1",
            "出现 ERR_TIMEOUT 错误",
        ]
        (found,) = [hit for hit in result.hits if hit.doc_id == OTHER_DOC]
        assert found.similarity == pytest.approx(-1.0)
        assert 0 < found.lexical < sum(result.idf.values())
        assert all(hit.lexical == 0 for hit in result.hits if hit.doc_id == DOC)

    def test_every_hit_says_which_of_the_querys_terms_it_holds(self, new_vectors: NewVectors) -> None:
        vectors = new_vectors()
        texts = ["timeouts of the 支付网关", "ERR_TIMEOUT, then err again", "nothing"]
        vectors.write(DOC, GENERATION, "kb/a.md", [chunk(text, [1, n], ordinal=n) for n, text in enumerate(texts)])
        hits = vectors.search("err timeout in 支付网络", [1.0, 0.0], limit=3).hits
        held = {hit.text: hit.held for hit in hits}
        assert held == dict(zip(texts, [{"支付", "付网"}, {"err", "timeout"}, set()], strict=True))

    def test_rare_terms_weigh_more_than_common_ones(self, new_vectors: NewVectors) -> None:
        vectors = new_vectors()
        texts = ["common", "common", "common rare", "支付网关"]
        vectors.write(DOC, GENERATION, "kb/a.md", [chunk(text, [1, 0], ordinal=n) for n, text in enumerate(texts)])
        idf = vectors.search("common RARE absent 支付", [1.0, 0.0], limit=2).idf
        assert idf.keys() == {"common", "rare", "absent", "支付"}
        assert idf["common"] < idf["rare"] == pytest.approx(idf["支付"])
        assert idf["rare"] < idf["absent"]

    def test_the_terms_that_no_chunk_holds_are_told(self, new_vectors: NewVectors) -> None:
        vectors = new_vectors()
        vectors.write(DOC, GENERATION, "kb/a.md", [chunk("common 支付网关", [1, 0])])
        assert vectors.search("common absent 支付, 退款", [1.0, 0.0], limit=2).absent == {"absent", "退款"}

    def test_the_nearest_are_those_to_the_vector_that_is_asked_for(self, new_vectors: NewVectors) -> None:
        """As with a centred question: similarity stays that with the query itself."""
        vectors = new_vectors()
        directions = {"east": [1, 0], "north": [0, 1], "west": [-1, 0]}
        chunks = [chunk(text, to, ordinal=n) for n, (text, to) in enumerate(directions.items())]
        vectors.write(DOC, GENERATION, "kb/a.md", chunks)
        (nearest,) = vectors.search("?", [1.0, 0.0], limit=1, nearest_to=[-0.5, 0.25]).hits
        assert nearest.text == "west"
        assert nearest.similarity == pytest.approx(-1.0)
        assert nearest.nearness == pytest.approx(0.5, abs=1e-4)
        (by_words,) = (
            hit for hit in vectors.search("east", [1.0, 0.0], limit=1, nearest_to=[-0.5, 0.25]).hits if hit.lexical
        )
        assert by_words.similarity == pytest.approx(1.0)
        assert by_words.nearness == pytest.approx(-0.5, abs=1e-4)

    def test_an_empty_store_knows_no_term(self, new_vectors: NewVectors) -> None:
        result = new_vectors().search("anything", [1.0, 0.0], limit=3)
        assert list(result.hits) == []
        assert sum(result.idf.values()) >= 0

    def test_notes_are_kept_with_the_index_and_replaced_whole(self, new_vectors: NewVectors) -> None:
        assert dict(new_vectors().notes()) == {}
        new_vectors().note({"embedder": "e5", "weights": [0.5, "二"]})
        new_vectors().note({"embedder": "titan"})
        assert new_vectors().notes() == {"embedder": "titan"}
        assert list(new_vectors().search("q", [1.0, 0.0], limit=5).hits) == []

    def test_in_folders_others_take_no_place(self, new_vectors: NewVectors) -> None:
        """K4: items are found in a base of documents that are nearer and say the words more often."""
        vectors = new_vectors()
        crowd = [chunk(f"timeout timeout {n}", [1, n / 1000], ordinal=n) for n in range(40)]
        vectors.write(DOC, GENERATION, "kb/docs/a.md", crowd)
        vectors.write(OTHER_DOC, GENERATION, "kb/pitfall/b.md", [chunk("a timeout once, of 支付", [-1, 1])])
        vectors.write(DocId("c" * 26), GENERATION, "kb/陷阱/c.md", [chunk("nothing of it", [0, 1])])
        vectors.write(DocId("d" * 26), GENERATION, "kb/pitfalls/d.md", [chunk("timeout timeout", [1, 0])])

        def found(*folders: str, nearest_to: list[float] | None = None) -> list[str]:
            result = vectors.search("timeout", [1.0, 0.0], limit=3, nearest_to=nearest_to, folders=folders)
            return sorted(hit.file_path for hit in result.hits)

        assert found("kb/pitfall/") == ["kb/pitfall/b.md"]
        assert found("kb/pitfall/", "kb/陷阱/") == ["kb/pitfall/b.md", "kb/陷阱/c.md"]
        assert found("kb/陷阱/", nearest_to=[-0.5, 0.1]) == ["kb/陷阱/c.md"]
        assert found("kb/nowhere/") == []

    def test_in_folders_the_numbers_are_those_of_the_whole_store(self, new_vectors: NewVectors) -> None:
        vectors = new_vectors()
        vectors.write(
            DOC, GENERATION, "kb/docs/a.md", [chunk("common rare", [1, 0]), chunk("common", [1, 1], ordinal=1)]
        )
        vectors.write(OTHER_DOC, GENERATION, "kb/pitfall/b.md", [chunk("common lesson", [0, 1])])
        everywhere = vectors.search("common rare absent", [1.0, 0.0], limit=5)
        here = vectors.search("common rare absent", [1.0, 0.0], limit=5, folders=["kb/pitfall/"])
        assert dict(here.idf) == pytest.approx(dict(everywhere.idf))
        assert here.absent == everywhere.absent == {"absent"}
        (hit,) = here.hits
        (same,) = (one for one in everywhere.hits if one.doc_id == OTHER_DOC)
        assert hit.held == same.held
        assert [hit.similarity, hit.lexical] == pytest.approx([same.similarity, same.lexical], abs=1e-6)
