"""The exception tree. It knows nothing of HTTP, MCP or AWS: entry points map it once, adapters raise it once.

KnowledgeError
├── InvalidInput              the caller sent something that cannot be used; says which field and why
│   ├── InvalidQuery          an empty, oversized or unusable lookup query
│   ├── InvalidPath           a category, file name or key that may not name a document
│   ├── UnsupportedFormat     a file or body of a kind this product does not take
│   └── TooLarge              more bytes than the limit
├── NotAuthenticated          no principal, or one that is not known
├── NotPermitted              a known principal whose role is not enough
├── NotFound                  the named thing does not exist
├── Conflict                  the state is not the one the command was made for
│   ├── VersionConflict       somebody else changed it since it was read
│   └── Outdated              the command was made for another version than the current one, which it names
├── DependencyUnavailable     a store or model failed, was throttled or did not answer in time; trying again may help
│   └── AccessRefused         it will not do this one thing: archived, encrypted with a foreign key, forbidden
└── CorruptState              stored data that this version cannot read
    ├── OtherEmbedder         the vectors are another embedder's: everything has to be embedded again
    └── UnusableCatalog       a snapshot of the catalog, or its log from there on: another source has to be used

ConfigError stands outside: it stops the start and never reaches a caller.
"""

from typing import ClassVar


class KnowledgeError(Exception):
    """Anything this product refuses or cannot do; `str()` is fit to be shown to the caller."""

    code: ClassVar[str] = "internal_error"


class InvalidInput(KnowledgeError):
    """The caller's value for `field` cannot be used, for the reason in the message."""

    code = "invalid_input"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class InvalidQuery(InvalidInput):
    """The query is empty, too long, or holds nothing that could be matched."""

    code = "invalid_query"


class InvalidPath(InvalidInput):
    """The category, file name or key may not name a document."""

    code = "invalid_path"


class UnsupportedFormat(InvalidInput):
    """A file type, content type or encoding that is not accepted."""

    code = "unsupported_format"


class TooLarge(InvalidInput):
    """`size_bytes` is over `max_bytes`."""

    code = "too_large"

    def __init__(self, message: str, *, size_bytes: int, max_bytes: int, field: str | None = None) -> None:
        super().__init__(message, field=field)
        self.size_bytes = size_bytes
        self.max_bytes = max_bytes


class NotAuthenticated(KnowledgeError):
    """The caller is not known."""

    code = "not_authenticated"


class NotPermitted(KnowledgeError):
    """The caller's role is not enough; the message names the role needed."""

    code = "not_permitted"


class NotFound(KnowledgeError):
    """The named thing does not exist."""

    code = "not_found"


class Conflict(KnowledgeError):
    """The state is not the one the command was made for."""

    code = "conflict"


class VersionConflict(Conflict):
    """Another writer changed the records of `paths` after they were read."""

    code = "version_conflict"

    def __init__(self, *paths: str) -> None:
        super().__init__(f"{', '.join(map(repr, paths))} changed meanwhile")
        self.paths = paths


class Outdated(Conflict):
    """The caller knew another version; `version` is the current one, and `status` that of an item."""

    code = "outdated"

    def __init__(self, message: str, *, version: int, status: str | None = None) -> None:
        super().__init__(message)
        self.version = version
        self.status = status


class DependencyUnavailable(KnowledgeError):
    """`dependency` failed, was throttled, or did not answer in time; the same call may succeed later."""

    code = "dependency_unavailable"

    def __init__(self, dependency: str, message: str) -> None:
        super().__init__(f"{dependency}: {message}")
        self.dependency = dependency


class AccessRefused(DependencyUnavailable):
    """`dependency` answered and refuses this one thing, such as an archived object; others may well be given."""

    code = "access_refused"


class CorruptState(KnowledgeError):
    """Stored data that this version cannot read."""

    code = "corrupt_state"


class OtherEmbedder(CorruptState):
    """The index holds vectors of `noted`, and the embedder is `own`; each is the name and what more is known of it."""

    code = "reembed_needed"

    def __init__(self, noted: str, own: str) -> None:
        super().__init__(
            f"re-embed needed: the index holds vectors of {noted}, and the embedder is {own}; run make reindex, or set "
            "EMBEDDER back"
        )


class UnusableCatalog(CorruptState):
    """The catalog cannot be had from there; `cause` is one word for counting, the message says it in words."""

    code = "unusable_catalog"

    def __init__(self, cause: str, message: str) -> None:
        super().__init__(message)
        self.cause = cause


class ConfigError(Exception):
    """A setting is missing or out of bounds; names the environment variable."""
