"""Embeddings by any endpoint of OpenAI's protocol: that vendor, another one, or a server of one's own."""

from collections.abc import Sequence
from hashlib import sha256

from knowledge.adapters.backoff import Backoff
from knowledge.adapters.batching import CallLimits, embed_in_batches
from knowledge.adapters.openai_endpoint import DEPENDENCY, ApiKey, OpenAIEndpoint
from knowledge.domain.question_centring import QuestionCentring
from knowledge.errors import ConfigError
from knowledge.parsing.tokens import estimate_tokens
from knowledge.ports import Vector

# Source: Hugging Face Text Embeddings Inference, "CLI arguments", `--max-client-batch-size`: 32 by default, the least
# of the common servers; OpenAI takes 2,048.
_TEXTS_PER_CALL = 32
# Source: OpenAI API reference, "Create embeddings": 300,000 tokens in one request; a token is at least one byte.
_BYTES_PER_CALL = 256 * 1024
# What a model adds around a text: marks of its start and end. Source: BERT, XLM-RoBERTa and their kin add two.
_MARKS = 2
# Source: own choice, a start that is to be calibrated for each base; at the upper end of what others measured of
# text-embedding-3: related questions 0.44, unrelated ones 0.08 (afurmanov.com, "Chunk size and embedding similarity").
_ANSWER_THRESHOLD = 0.45


class OpenAIEmbedder:
    """Embedder by one model of one endpoint. Safe to use from several threads."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: ApiKey,
        dimension: int,
        max_tokens: int,
        query_model: str | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        ask_for_dimension: bool = False,
        answer_threshold: float = _ANSWER_THRESHOLD,
        timeout_s: float = 5.0,
        backoff: Backoff | None = None,
    ) -> None:
        """Makes no call. `base_url` is what comes before `/embeddings`, such as `https://api.openai.com/v1`.

        `model` embeds the passages, and queries too unless `query_model` does. The prefixes are those the model was
        trained with. `ask_for_dimension` sends `dimension` along, for models that can shorten their vectors; others
        may refuse it. `timeout_s` is how long the endpoint may be silent.

        Raises:
            ConfigError: the URL or the key cannot be used, or a prefix leaves no room for a text.
        """
        self._endpoint = OpenAIEndpoint(base_url, api_key=api_key, timeout_s=timeout_s, backoff=backoff or Backoff())
        self._model = model
        self._query_model = query_model or model
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix
        self._dimension = dimension
        self._max_tokens = max_tokens
        self._asked_dimension = dimension if ask_for_dimension else None
        self._answer_threshold = answer_threshold
        self._query_limits = _limits(max_tokens, query_prefix)
        self._passage_limits = _limits(max_tokens, passage_prefix)

    @property
    def name(self) -> str:
        """See Embedder; the same model behind another URL has the same name, with other prefixes another one."""
        models = "+".join(dict.fromkeys((self._model, self._query_model)))
        name = f"openai/{models}/{self._dimension}"
        prefixes = (self._query_prefix, self._passage_prefix)
        return f"{name}/{sha256(repr(prefixes).encode()).hexdigest()[:8]}" if any(prefixes) else name

    @property
    def dimension(self) -> int:
        """See Embedder."""
        return self._dimension

    @property
    def max_tokens(self) -> int:
        """See Embedder; what is longer, the prefix included, is cut before it is sent."""
        return self._max_tokens

    @property
    def answer_threshold(self) -> float:
        """See Embedder; the default is not measured but a start, to be calibrated for each base."""
        return self._answer_threshold

    @property
    def question_centring(self) -> QuestionCentring | None:
        """See Embedder; not measured for this one."""
        return None

    @property
    def batch_size(self) -> int:
        """See Embedder; what goes into one call."""
        return _TEXTS_PER_CALL

    def embed_query(self, text: str) -> Vector:
        """See Embedder; one call. Raises InvalidInput for a text that the endpoint refuses as too long all the same."""
        return self._embed([text], self._query_model, self._query_prefix, self._query_limits)[0]

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        """See Embedder; a call for each 32 texts or 256 KiB, one after the other. Raises InvalidInput as above."""
        return self._embed(texts, self._model, self._passage_prefix, self._passage_limits)

    def _embed(self, texts: Sequence[str], model: str, prefix: str, limits: CallLimits) -> list[Vector]:
        def vectors_of(batch: Sequence[str]) -> Sequence[Vector]:
            return self._endpoint.embed(
                [prefix + text for text in batch],
                model=model,
                dimension=self._asked_dimension,
                max_tokens=self._max_tokens,
            )

        return embed_in_batches(texts, vectors_of, limits=limits, dimension=self._dimension, dependency=DEPENDENCY)


def _limits(max_tokens: int, prefix: str) -> CallLimits:
    room = max_tokens - estimate_tokens(prefix) - _MARKS
    if room < 1:
        raise ConfigError(f"the prefix {prefix!r} leaves no room for a text in {max_tokens} tokens")
    return CallLimits(texts=_TEXTS_PER_CALL, tokens=room, total_bytes=_BYTES_PER_CALL)
