"""What each function is told by its environment. The only code that reads the environment itself is `bootstrap`."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from knowledge.domain.document import KnowledgeBasePath
from knowledge.errors import ConfigError, InvalidPath

# Source: AWS Lambda quotas: 6 MB for a synchronous request; a binary body arrives in base64, four bytes for three,
# inside a JSON event, so 4 MiB is what surely fits.
_LARGEST_DOCUMENT_BYTES = 4 * 1024 * 1024


def _usable_prefix(value: str) -> str:
    try:
        return KnowledgeBasePath.parse(value).prefix
    except InvalidPath as error:
        raise ValueError(str(error)) from error


class Settings(BaseModel):
    """Base of all settings: frozen, every field named as its environment variable in lower case."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
            problems = [f"{str(item['loc'][0]).upper()}: {item['msg']}" for item in error.errors()]
            raise ConfigError("; ".join(problems)) from error


class AuthorizerSettings(Settings):
    """Of the authorizer."""

    table_name: str


class KnowledgeSettings(Settings):
    """Of every function that touches documents."""

    bucket_name: str
    table_name: str
    knowledge_base_path: Annotated[str, AfterValidator(_usable_prefix)] = "knowledge_base/"
    vector_store: Literal["embedded"] = "embedded"
    embedder: Literal["local"] = "local"
    max_document_bytes: int = Field(default=1024 * 1024, ge=1, le=_LARGEST_DOCUMENT_BYTES)
    """A larger file is refused on upload and marked FAILED when dropped; the exact tier leaves it out too."""

    @property
    def base(self) -> KnowledgeBasePath:
        """Where the documents are."""
        return KnowledgeBasePath(self.knowledge_base_path)


class DocumentSettings(KnowledgeSettings):
    """Of the functions that change documents."""


class IndexerSettings(DocumentSettings):
    """Of the function that follows the bucket's events."""

    queue_url: str
    """Where a document that is not finished for want of time is put again."""
    max_receive_count: int = Field(default=8, ge=1, le=1000)
    """After how many deliveries the queue gives a message up; bounds as Amazon SQS has them."""


class LookupSettings(KnowledgeSettings):
    """Of the function that serves every read."""

    catalog_max_staleness_s: float = Field(default=0.0, ge=0.0, le=3600.0)
    """For how long the catalog may be used without asking the log; 0 asks on every lookup."""
    catalog_load_wait_s: float = Field(default=5.0, ge=0.0, le=25.0)
    """How long a lookup waits for a catalog that is still loading before it goes on without."""
    semantic_timeout_s: float = Field(default=8.0, gt=0.0, le=25.0)
    """How long a lookup waits for the semantic tier."""


class MaintenanceSettings(KnowledgeSettings):
    """Of the function that calibrates."""
