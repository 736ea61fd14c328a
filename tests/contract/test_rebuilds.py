"""What every RebuildableVectorStore does. Embedders `a` and `c` make vectors of two numbers, `b` of three."""

import pytest

from knowledge.domain.document import DocId
from knowledge.errors import Conflict, OtherEmbedder
from tests.contract.builders import DOC, GENERATION, OTHER_DOC, OTHER_GENERATION, chunk
from tests.contract.conftest import NewIndex

REFUSED = r"re-embed needed.*'a'.*make reindex"


class TestRebuildableVectorStore:
    @pytest.mark.parametrize(("name", "dimension"), [("b", 3), ("c", 2)])
    def test_d07_an_embedder_without_an_index_is_refused_where_another_has_one(
        self, new_index: NewIndex, name: str, dimension: int
    ) -> None:
        vector = [1.0] + [0.0] * (dimension - 1)
        new_index("a", 2).write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
        new_index("a", 2).note({"embedder": "a", "dimension": 2})
        other = new_index(name, dimension)
        with pytest.raises(OtherEmbedder, match=REFUSED):
            other.notes()
        with pytest.raises(OtherEmbedder, match=REFUSED):
            other.note({"embedder": name})
        with pytest.raises(OtherEmbedder, match=REFUSED):
            other.search("q", vector, limit=5)
        with pytest.raises(OtherEmbedder, match=REFUSED):
            other.write(OTHER_DOC, GENERATION, "kb/b.md", [chunk("y", vector)])
        assert other.embeddings(DOC, GENERATION) == {}
        assert list(other.generations()) == []
        assert list(new_index("a", 2).generations()) == [(DOC, GENERATION)]

    def test_generations_are_listed_in_order_of_ids_from_any_id_on(self, new_index: NewIndex) -> None:
        store = new_index("a", 2)
        ids = [DocId(f"{letter}{'0' * 25}") for letter in "2az"]
        written = [(doc_id, generation) for doc_id in ids for generation in (GENERATION, OTHER_GENERATION)]
        for doc_id, generation in reversed(written):
            store.write(doc_id, generation, "kb/a.md", [chunk("x", [1, 0]), chunk("y", [0, 1], ordinal=1)])
        listed = list(store.generations())
        assert [doc_id for doc_id, _ in listed] == [doc_id for doc_id in ids for _ in range(2)]
        assert set(listed) == set(written)
        for place, doc_id in enumerate(ids):
            assert [one for one, _ in store.generations(after=doc_id)] == [one for one, _ in listed[2 * (place + 1) :]]

    def test_the_first_embedder_of_a_place_needs_no_rebuild(self, new_index: NewIndex) -> None:
        first = new_index("a", 2)
        assert first.notes() == {}
        assert list(first.search("q", [1.0, 0.0], limit=5).hits) == []
        first.note({"embedder": "a"})
        first.write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
        again = new_index("a", 2)
        assert again.notes() == {"embedder": "a"}
        assert [hit.text for hit in again.search("q", [1.0, 0.0], limit=5).hits] == ["x"]

    def test_an_index_is_built_beside_that_of_another_embedder(self, new_index: NewIndex) -> None:
        old, new = new_index("a", 2), new_index("b", 3)
        old.note({"embedder": "a"})
        old.write(DOC, GENERATION, "kb/a.md", [chunk("old", [1, 0])])
        building = new.begin_rebuild()
        building.write(DOC, GENERATION, "kb/a.md", [chunk("new", [1, 0, 0])])
        building.note({"embedder": "b"})
        with pytest.raises(OtherEmbedder):
            new.search("q", [1.0, 0.0, 0.0], limit=5)
        with pytest.raises(OtherEmbedder):
            new_index("b", 3).notes()
        assert [hit.text for hit in old.search("q", [1.0, 0.0], limit=5).hits] == ["old"]
        new.finish_rebuild()
        assert [hit.text for hit in new.search("q", [1.0, 0.0, 0.0], limit=5).hits] == ["new"]
        assert [hit.text for hit in old.search("q", [1.0, 0.0], limit=5).hits] == ["old"]
        assert (old.notes(), new.notes()) == ({"embedder": "a"}, {"embedder": "b"})
        new.write(OTHER_DOC, GENERATION, "kb/b.md", [chunk("newer", [1, 0, 0])])
        new.delete(DOC, GENERATION)
        assert [list(store.generations()) for store in (old, new)] == [[(DOC, GENERATION)], [(OTHER_DOC, GENERATION)]]

    def test_an_unfinished_rebuild_is_gone_on_with(self, new_index: NewIndex) -> None:
        first = new_index("a", 2).begin_rebuild()
        first.write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0]), chunk("y", [0, 1], ordinal=1)])
        second = new_index("a", 2).begin_rebuild()
        assert list(second.generations()) == [(DOC, GENERATION)]
        second.write(OTHER_DOC, OTHER_GENERATION, "kb/b.md", [chunk("z", [1, 1])])
        new_index("a", 2).finish_rebuild()
        assert sorted(new_index("a", 2).generations()) == [(DOC, GENERATION), (OTHER_DOC, OTHER_GENERATION)]

    def test_a_rebuild_is_finished_once(self, new_index: NewIndex) -> None:
        store = new_index("a", 2)
        with pytest.raises(Conflict):
            store.finish_rebuild()
        store.begin_rebuild().note({"embedder": "a"})
        store.finish_rebuild()
        with pytest.raises(Conflict):
            store.finish_rebuild()
        assert store.notes() == {"embedder": "a"}

    def test_an_index_that_is_there_goes_on_being_searched_while_it_is_made_anew(self, new_index: NewIndex) -> None:
        store = new_index("a", 2)
        store.write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
        building = store.begin_rebuild()
        assert [hit.text for hit in store.search("q", [1.0, 0.0], limit=5).hits] == ["x"]
        building.write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
        store.finish_rebuild()
        assert [hit.text for hit in store.search("q", [1.0, 0.0], limit=5).hits] == ["x"]

    def test_the_indices_of_others_are_removed_and_refused_from_then_on(self, new_index: NewIndex) -> None:
        old, new = new_index("a", 2), new_index("b", 3)
        old.write(DOC, GENERATION, "kb/a.md", [chunk("old", [1, 0])])
        new.begin_rebuild().write(DOC, GENERATION, "kb/a.md", [chunk("new", [1, 0, 0])])
        new_index("c", 2).begin_rebuild()
        new.finish_rebuild()
        new.remove_others()
        assert [hit.text for hit in new.search("q", [1.0, 0.0, 0.0], limit=5).hits] == ["new"]
        assert list(old.generations()) == []
        with pytest.raises(OtherEmbedder):
            old.search("q", [1.0, 0.0], limit=5)
        with pytest.raises(OtherEmbedder):
            old.write(DOC, OTHER_GENERATION, "kb/a.md", [chunk("late", [1, 0])])
        with pytest.raises(Conflict):
            new_index("c", 2).finish_rebuild()
