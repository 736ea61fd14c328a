"""A stand-in for an endpoint of OpenAI's protocol, and an embedder that asks it."""

from typing import Any

from knowledge.adapters.hashing_embedder import HashingEmbedder
from knowledge.adapters.openai_embedder import OpenAIEmbedder
from tests.contract.embedding_server import Answer, Call, vector
from tests.unit.adapters.network import FakeTime

KEY = "sk-proj-0123456789abcdef"
DIMENSION = HashingEmbedder().dimension


def answer(call: Call) -> Answer:
    """The vectors of HashingEmbedder, in no helpful order."""
    data = [{"index": index, "embedding": vector(text, DIMENSION)} for index, text in enumerate(call.body["input"])]
    return Answer(body={"object": "list", "data": data[::-1], "model": call.body["model"]})


def items(*pairs: tuple[int, Any]) -> Answer:
    return Answer(body={"data": [{"index": index, "embedding": embedding} for index, embedding in pairs]})


def refusal(status: int, code: str | None = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, {"error": {"message": f"a foreign text with {KEY}", "code": code}}, named)


def embedder(url: str, time: FakeTime, **settings: Any) -> OpenAIEmbedder:
    defaults = {"api_key": KEY, "dimension": DIMENSION, "max_tokens": 512, "timeout_s": 30}
    return OpenAIEmbedder(f"{url}/v1", "model", backoff=time.backoff(), **{**defaults, **settings})
