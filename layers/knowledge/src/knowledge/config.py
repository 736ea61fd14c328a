"""What each function is told by its environment. The only code that reads the environment itself is `bootstrap`."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from knowledge.domain.document import KnowledgeBasePath
from knowledge.errors import ConfigError, InvalidPath

# Source: AWS Lambda quotas: 6 MB for a synchronous request; a binary body arrives in base64, four bytes for three,
# inside a JSON event, so 4 MiB is what surely fits.
_LARGEST_DOCUMENT_BYTES = 4 * 1024 * 1024
# Source: OpenSearch documentation, "k-NN vector", parameter `dimension`.
_LONGEST_VECTOR = 16_000

# Settings that a choice cannot do without.
_NEEDED_BY = {
    ("vector_store", "opensearch"): ("opensearch_url",),
    ("embedder", "bedrock"): ("embedding_model",),
    ("embedder", "openai"): ("embedding_url", "embedding_model", "embedding_dimension"),
}


def _usable_prefix(value: str) -> str:
    try:
        return KnowledgeBasePath.parse(value).prefix
    except InvalidPath as error:
        raise ValueError(str(error)) from error


class Settings(BaseModel):
    """Base of all settings: frozen, every field named as its environment variable in lower case."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = "INFO"

    @classmethod
    def environment_variables(cls) -> frozenset[str]:
        """The names of the environment variables that this function reads."""
        return frozenset(name.upper() for name in cls.model_fields)

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """The settings `env` holds; other variables in it are ignored, empty ones count as absent.

        Raises:
            ConfigError: names each variable that is missing or out of bounds.
        """
        values = {name.lower(): env[name] for name in cls.environment_variables() if env.get(name, "") != ""}
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            problems = [": ".join([*(str(name).upper() for name in e["loc"][:1]), e["msg"]]) for e in error.errors()]
            raise ConfigError("; ".join(problems)) from error


class AuthorizerSettings(Settings):
    """Of the authorizer."""

    table_name: str


class HttpSettings(Settings):
    """Of every function that answers over HTTP."""

    allowed_origin: str = Field(default="*", pattern=r"^(\*|https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?)$")
    """Whose pages may read the answers in a browser; `*` is everybody's."""


class KnowledgeSettings(Settings):
    """Of every function that touches documents."""

    bucket_name: str
    table_name: str
    knowledge_base_path: Annotated[str, AfterValidator(_usable_prefix)] = "knowledge_base/"
    vector_store: Literal["embedded", "opensearch"] = "embedded"
    opensearch_url: str | None = None
    """Of the domain, the collection or the node."""
    opensearch_service: Literal["es", "aoss", "none"] = "es"
    """What requests are signed for: a domain, Serverless, or nothing: a node without access control."""
    opensearch_alias: str = Field(default="knowledge", pattern=r"^[a-z][a-z0-9-]{0,63}$")
    """Names the index; two bases in one domain need two."""
    embedder: Literal["local", "bedrock", "openai"] = "local"
    embedding_model: str | None = None
    embedding_dimension: int | None = Field(default=None, ge=1, le=_LONGEST_VECTOR)
    """Length of every vector; with Bedrock the model's default when absent."""
    embedding_url: str | None = None
    """What comes before `/embeddings` in the protocol of OpenAI."""
    embedding_api_key: SecretStr | None = None
    """The key for that endpoint, or the ARN of a secret in AWS Secrets Manager that holds it."""
    embedding_query_model: str | None = None
    """Embeds the queries, for endpoints that have a model of their own for them."""
    embedding_query_prefix: str = ""
    embedding_passage_prefix: str = ""
    """What the model was trained to see before a query and before a passage, such as `query: `."""
    embedding_max_tokens: int = Field(default=512, ge=32, le=1_000_000)
    """Tokens of one text that the model reads; longer chunks than 512 are never made."""
    max_document_bytes: int = Field(default=1024 * 1024, ge=1, le=_LARGEST_DOCUMENT_BYTES)
    """A larger file is refused on upload and marked FAILED when dropped; the exact tier leaves it out too."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        problems = [
            f"{name.upper()}: needed with {choice.upper()}={value}"
            for (choice, value), names in _NEEDED_BY.items()
            if getattr(self, choice) == value
            for name in names
            if getattr(self, name) is None
        ]
        host = urlsplit(self.opensearch_url or "").hostname or ""
        if self.vector_store == "opensearch" and self.opensearch_service == "none" and host.endswith(".amazonaws.com"):
            problems.append(
                "OPENSEARCH_SERVICE: Amazon takes signed requests only; es for a domain, aoss for Serverless"
            )
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def base(self) -> KnowledgeBasePath:
        """Where the documents are."""
        return KnowledgeBasePath(self.knowledge_base_path)


class DocumentSettings(KnowledgeSettings, HttpSettings):
    """Of the functions that change documents over HTTP."""


class IndexerSettings(KnowledgeSettings):
    """Of the function that follows the bucket's events."""

    queue_url: str
    """Where a document that is not finished for want of time is put again."""
    max_receive_count: int = Field(default=8, ge=1, le=1000)
    """After how many deliveries the queue gives a message up; bounds as Amazon SQS has them."""


class SearchSettings(KnowledgeSettings, HttpSettings):
    """Of the functions that search by meaning for whoever waits for an answer."""

    semantic_timeout_s: float = Field(default=8.0, gt=0.0, le=25.0)
    """How long an answer waits for the semantic tier."""


class ItemSettings(SearchSettings):
    """Of the function of the knowledge items."""


class LookupSettings(SearchSettings):
    """Of the function that serves every read of documents."""

    catalog_max_staleness_s: float = Field(default=0.0, ge=0.0, le=3600.0)
    """For how long the catalog may be used without asking the log; 0 asks on every lookup."""
    catalog_load_wait_s: float = Field(default=5.0, ge=0.0, le=25.0)
    """How long a lookup waits for a catalog that is still loading before it goes on without."""


class MaintenanceSettings(KnowledgeSettings):
    """Of the function that calibrates, compacts and reconciles."""
