"""The embedding models of Amazon Bedrock that are known here: their limits and the JSON each takes and gives."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, FiniteFloat

from knowledge.adapters.batching import CallLimits
from knowledge.ports import Vector


@dataclass(frozen=True, slots=True)
class BedrockModel:
    """One model."""

    dimensions: tuple[int, ...]
    """Those it can make; the first is the default."""
    limits: CallLimits
    answer_threshold: float
    request: Callable[[Sequence[str], bool, int], bytes]
    """The body for texts, whether they are queries, and the dimension."""
    vectors: Callable[[bytes], Sequence[Vector]]
    """The vectors of an answer's body. Raises pydantic's ValidationError for anything else."""


class _TitanAnswer(BaseModel):
    embedding: list[FiniteFloat]


class _CohereAnswer(BaseModel):
    embeddings: list[list[FiniteFloat]]


def _titan_request(texts: Sequence[str], is_query: bool, dimension: int) -> bytes:
    (text,) = texts
    return json.dumps({"inputText": text, "dimensions": dimension, "normalize": True}).encode()


def _titan_vectors(body: bytes) -> Sequence[Vector]:
    return [_TitanAnswer.model_validate_json(body).embedding]


def _cohere_request(texts: Sequence[str], is_query: bool, dimension: int) -> bytes:
    kind = "search_query" if is_query else "search_document"
    return json.dumps({"texts": texts, "input_type": kind, "truncate": "END"}).encode()


def _cohere_vectors(body: bytes) -> Sequence[Vector]:
    return _CohereAnswer.model_validate_json(body).embeddings


BEDROCK_MODELS: Mapping[str, BedrockModel] = {
    # Source: Amazon Bedrock user guide, "Amazon Titan Text Embeddings models" (8,192 tokens, 50,000 characters, not
    # empty) and "Amazon Titan Embeddings G1 - Text", tab "V2 Request" (one text a call, dimensions). Bedrock counts
    # requests per minute against the quota, not tokens; eight at a time are own choice.
    # The threshold is a start, to be calibrated for each base. Source: own choice, between what others measured:
    # related questions 0.38, unrelated ones 0.02 (afurmanov.com, "Chunk size and embedding similarity").
    "amazon.titan-embed-text-v2:0": BedrockModel(
        dimensions=(1024, 512, 256),
        limits=CallLimits(texts=1, tokens=8192, characters=50_000, parallel_calls=8),
        answer_threshold=0.4,
        request=_titan_request,
        vectors=_titan_vectors,
    ),
    # Source: Amazon Bedrock user guide, "Cohere Embed v3" (input types, 96 texts a call, 2,048 characters each, above
    # which `truncate` does not help); Cohere documentation, "Cohere's Embed Models" (1,024 dimensions, 512 tokens).
    # The threshold is a start, to be calibrated for each base. Source: own choice, without a measurement; rather too
    # high, so that what is doubtful is "not found".
    "cohere.embed-multilingual-v3": BedrockModel(
        dimensions=(1024,),
        limits=CallLimits(texts=96, tokens=512, characters=2048),
        answer_threshold=0.5,
        request=_cohere_request,
        vectors=_cohere_vectors,
    ),
}
