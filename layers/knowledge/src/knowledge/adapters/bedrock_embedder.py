"""Embeddings by Amazon Bedrock, through InvokeModel. What each model takes and gives stands in `bedrock_models`.

Needs the permission `bedrock:InvokeModel` on `arn:<partition>:bedrock:<region>::foundation-model/<model id>`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from botocore.config import Config
from botocore.exceptions import ClientError, HTTPClientError, IncompleteReadError
from botocore.exceptions import ConnectionError as NoConnectionError
from pydantic import ValidationError

from knowledge.adapters.aws_clients import aws_client_config
from knowledge.adapters.aws_errors import aws_errors, error_code
from knowledge.adapters.backoff import Backoff, TransientFailureError
from knowledge.adapters.batching import embed_in_batches, may_be_too_long
from knowledge.adapters.bedrock_models import BEDROCK_MODELS
from knowledge.domain.question_centring import QuestionCentring
from knowledge.errors import ConfigError, DependencyUnavailable, InvalidInput
from knowledge.ports import Vector

_DEPENDENCY = "Amazon Bedrock"
# Throttled or not ready (429), too slow (408), failed inside the model (424).
# Source: Amazon Bedrock API reference, "InvokeModel", section "Errors".
_TRANSIENT_STATUSES = frozenset({408, 424, 429})


class BedrockRuntime(Protocol):
    """What is needed of boto3's client `bedrock-runtime`."""

    def invoke_model(self, *, modelId: str, body: bytes, contentType: str, accept: str) -> Mapping[str, Any]:
        """One inference; `body` of the answer is a stream."""


def bedrock_client_config() -> Config:
    """`aws_client_config` without the SDK's own retries: the embedder retries, and both together would multiply."""
    return aws_client_config().merge(Config(retries={"mode": "standard", "total_max_attempts": 1}))


class BedrockEmbedder:
    """Embedder by one model of Amazon Bedrock. Safe to use from several threads."""

    def __init__(
        self,
        client: BedrockRuntime,
        model: str,
        *,
        dimension: int | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        """`client` should be made with `bedrock_client_config`; makes no call. No `dimension` is the model's default.

        Raises:
            ConfigError: the model is not known here, or has no such dimension.
        """
        if (known := BEDROCK_MODELS.get(model)) is None:
            raise ConfigError(f"the embedding model {model!r} is not known; known are {', '.join(BEDROCK_MODELS)}")
        if dimension is not None and dimension not in known.dimensions:
            choices = ", ".join(map(str, known.dimensions))
            raise ConfigError(f"{model} has no dimension {dimension}; it has {choices}")
        self._client = client
        self._model_id = model
        self._model = known
        self._dimension = dimension or known.dimensions[0]
        self._backoff = backoff or Backoff()

    @property
    def name(self) -> str:
        """See Embedder."""
        return f"{self._model_id}/{self._dimension}"

    @property
    def dimension(self) -> int:
        """See Embedder."""
        return self._dimension

    @property
    def max_tokens(self) -> int:
        """See Embedder; what is longer is cut before it is sent, or by the model."""
        return self._model.limits.tokens

    @property
    def answer_threshold(self) -> float:
        """See Embedder; not measured but a start, to be calibrated for each base."""
        return self._model.answer_threshold

    @property
    def question_centring(self) -> QuestionCentring | None:
        """See Embedder; not measured for this one."""
        return None

    @property
    def batch_size(self) -> int:
        """See Embedder; what goes into the calls made at the same time."""
        return self._model.limits.texts * self._model.limits.parallel_calls

    def embed_query(self, text: str) -> Vector:
        """See Embedder; one call. Raises InvalidInput for a text that the model refuses as too long all the same."""
        return self._embed([text], is_query=True)[0]

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        """See Embedder; a call for each text or for each 96, as the model allows. Raises InvalidInput as above."""
        return self._embed(texts, is_query=False)

    def _embed(self, texts: Sequence[str], *, is_query: bool) -> list[Vector]:
        def vectors_of(batch: Sequence[str]) -> Sequence[Vector]:
            body = self._model.request(batch, is_query, self._dimension)
            answer = self._backoff.run(lambda: self._invoke(body, batch))
            try:
                return self._model.vectors(answer)
            except ValidationError as error:
                raise DependencyUnavailable(_DEPENDENCY, "gave an answer that cannot be read") from error

        limits = self._model.limits
        return embed_in_batches(texts, vectors_of, limits=limits, dimension=self._dimension, dependency=_DEPENDENCY)

    def _invoke(self, body: bytes, texts: Sequence[str]) -> bytes:
        try:
            with aws_errors(_DEPENDENCY):
                answer = self._client.invoke_model(
                    modelId=self._model_id, body=body, contentType="application/json", accept="application/json"
                )
                content: bytes = answer["body"].read()
                return content
        except DependencyUnavailable as error:
            cause = error.__cause__
            outcome = error
            if isinstance(cause, ClientError):
                code = error_code(cause)
                # The same code stands for a model id that the region does not know; a short text rules its length out.
                if code == "ValidationException" and may_be_too_long(texts, self.max_tokens):
                    message = f"{self._model_id} refused a text, most likely as longer than {self.max_tokens} tokens"
                    raise InvalidInput(message) from cause
                # Refused or throttled is the model for every text: never a matter of this one, as it is of an object.
                outcome = DependencyUnavailable(_DEPENDENCY, f"answered {code or 'without saying what was wrong'}")
            if _is_transient(cause):
                raise TransientFailureError(outcome) from cause
            raise outcome from cause


def _is_transient(error: BaseException | None) -> bool:
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
        return status in _TRANSIENT_STATUSES or status >= 500
    return isinstance(error, HTTPClientError | NoConnectionError | IncompleteReadError)
