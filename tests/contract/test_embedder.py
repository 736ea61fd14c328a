"""What every Embedder does."""

import math

import pytest

from knowledge.adapters.hashing_embedder import HashingEmbedder
from knowledge.adapters.local_embedder import LocalEmbedder
from knowledge.ports import Embedder, Vector


@pytest.fixture(scope="module", params=[HashingEmbedder, LocalEmbedder])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    made: Embedder = request.param()
    return made


def cosine(left: Vector, right: Vector) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


class TestEmbedder:
    @pytest.mark.parametrize(
        "text", ["payment gateway", "支付网关", "", " ", "\0", "a\0b", "\ud800", "😀", "\ufdfa" * 40, "word " * 600]
    )
    def test_every_text_has_a_unit_vector_of_floats(self, embedder: Embedder, text: str) -> None:
        for vector in (embedder.embed_query(text), *embedder.embed_passages([text])):
            assert len(vector) == embedder.dimension
            assert all(type(value) is float for value in vector)
            assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-5)

    def test_the_passage_on_the_subject_is_nearest(self, embedder: Embedder) -> None:
        passages = ["Restart the payment gateway after a timeout", "How to cook rice", "支付网关超时后重启"]
        payment, rice, chinese = embedder.embed_passages(passages)
        english_query, chinese_query = embedder.embed_query("payment gateway timeout"), embedder.embed_query("支付网关")
        assert cosine(english_query, payment) > cosine(english_query, rice)
        assert cosine(chinese_query, chinese) > cosine(chinese_query, rice)

    def test_vectors_do_not_depend_on_their_neighbours(self, embedder: Embedder) -> None:
        texts = ["short", "a longer text about nothing in particular " * 5, "短"]
        together = embedder.embed_passages(texts)
        assert [list(vector) for vector in together] == [list(embedder.embed_passages([text])[0]) for text in texts]

    def test_what_comes_after_a_nul_counts(self, embedder: Embedder) -> None:
        assert list(embedder.embed_query("pay\0gateway")) != list(embedder.embed_query("pay"))

    def test_no_text_gives_no_vector(self, embedder: Embedder) -> None:
        assert list(embedder.embed_passages([])) == []

    def test_it_names_itself_and_its_limit(self, embedder: Embedder) -> None:
        assert embedder.name.strip()
        assert embedder.max_tokens > 0
