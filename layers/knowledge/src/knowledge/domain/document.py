"""What a document is: its id, its path rules, what its author declared, what is known of its indexing."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

from knowledge.domain.digest import sha256
from knowledge.errors import InvalidPath, UnsupportedFormat

DocId = NewType("DocId", str)
Generation = NewType("Generation", str)

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]

# Source: Amazon S3 user guide, "Naming Amazon S3 objects": a key is at most 1,024 bytes of UTF-8.
MAX_KEY_BYTES = 1024
EXTENSION = ".md"
# Source: RFC 7763.
MEDIA_TYPE = "text/markdown; charset=utf-8"
# Base 32 holds five bits a character: 130 bits, so that two keys never share an id.
_DOC_ID_CHARS = 26


class DocumentStatus(StrEnum):
    """Where a document is on its way into the index."""

    INDEXED = "INDEXED"
    """In both tiers, as far as it has something for each."""
    PENDING = "PENDING"
    """In the exact tier; its embedding failed or is not finished and will be tried again."""
    FAILED = "FAILED"
    """Stored, but cannot be indexed as it is; `reason` says why. Trying again would not help."""


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """What the author declared in the YAML block at the top."""

    title: str | None
    keywords: tuple[str, ...]
    summary: str | None
    fields: Mapping[str, Json]
    """The whole block as JSON, scalars as the text the author typed; reserved and unknown fields included."""


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document's text taken apart; frontmatter and body together hold every character."""

    frontmatter: Frontmatter | None
    body: str
    warnings: tuple[str, ...] = ()
    rejected_chars: int = 0
    """Length of the delimited block at the start of the body that was meant as frontmatter and did not load; it is
    text, but not Markdown structure."""

    @property
    def prose(self) -> str:
        """The body without a rejected block: what titles, headings and sections are taken from."""
        return self.body[self.rejected_chars :]


@dataclass(frozen=True, slots=True)
class KnowledgeEntry:
    """What the exact tier knows of one document. `title` is what to show, never blank."""

    file_path: str
    title: str
    keywords: tuple[str, ...]
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of a document, in the form that is embedded."""

    ordinal: int
    heading_path: tuple[str, ...]
    text: str
    """What is embedded and shown: the heading path on a line of its own, a blank line, the piece."""

    @property
    def content_hash(self) -> str:
        """Equal for equal `text`, in any document: the key under which an embedding is used again."""
        return sha256(self.text.encode()).hex()


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """What is known of one document's indexing; the registry's answer to "what is indexed"."""

    doc_id: DocId
    file_path: str
    status: DocumentStatus
    etag: str
    version_id: str | None
    """The version of the object that was looked at; another one with the same content is a change of its own."""
    size_bytes: int
    title: str
    metadata: dict[str, Json] | None
    warnings: tuple[str, ...]
    reason: str | None
    generation: Generation | None
    """The vectors that belong to this content; None when it has none."""
    chunk_count: int
    embedded_count: int
    """How many of the chunks have a vector; fewer than `chunk_count` while the document is PENDING."""
    embedder: str
    pipeline_version: int
    revision: str
    """Unique to this write: what an optimistic writer compares."""
    created_at: datetime
    updated_at: datetime


def doc_id_for(path: str) -> DocId:
    """The one id of the document at `path`: opaque, URL-safe, the same in every process.

    The first 130 bits of SHA-256 over the key's bytes: two keys that differ only in composition (NFC, NFD) are two ids.
    """
    digest = sha256(path.encode("utf-8", "surrogatepass"))
    return DocId(base64.b32encode(digest)[:_DOC_ID_CHARS].decode().lower())


def is_doc_id(text: str) -> bool:
    """True when `text` has the form of an id; no other text needs to be looked up."""
    return len(text) == _DOC_ID_CHARS and text.isascii() and text.isalnum()


@dataclass(frozen=True, slots=True)
class KnowledgeBasePath:
    """The prefix under which documents live: no slash in front, exactly one at the end."""

    prefix: str

    @classmethod
    def parse(cls, text: str) -> "KnowledgeBasePath":
        """The prefix for `text`, with or without slashes at either end. Raises InvalidPath when nothing is left."""
        segments = text.strip("/").split("/")
        if any(problem_with_segment(segment) for segment in segments):
            raise InvalidPath(f"{text!r} is not a usable prefix")
        return cls("/".join(segments) + "/")

    def path_for(self, category: str, file_name: str) -> str:
        """The key of a document, verbatim: nothing is renamed, whatever cannot be kept is refused.

        Raises:
            InvalidPath: a blank, absolute, relative, hidden or overlong part, or one with a control character.
            UnsupportedFormat: a file name that does not end in `.md`.
        """
        for segment in category.strip("/").split("/"):
            if problem := problem_with_segment(segment):
                raise InvalidPath(f"category {category!r}: {problem}", field="category")
        if problem := "it holds a slash" if "/" in file_name else problem_with_segment(file_name):
            raise InvalidPath(f"file name {file_name[:100]!r}: {problem}", field="file_name")
        if not file_name.lower().endswith(EXTENSION):
            raise UnsupportedFormat(
                f"file name {file_name[:100]!r}: only {EXTENSION} files are accepted", field="file_name"
            )
        path = f"{self.prefix}{category.strip('/')}/{file_name}"
        if (size := len(path.encode())) > MAX_KEY_BYTES:
            raise InvalidPath(f"the path is {size} bytes long; at most {MAX_KEY_BYTES} are possible", field="file_name")
        return path

    def holds(self, key: str) -> bool:
        """True when `key` names a document of this knowledge base, however it came there."""
        name = key.rpartition("/")[2]
        return key.startswith(self.prefix) and name.lower().endswith(EXTENSION) and name.lower() != EXTENSION


def problem_with_segment(segment: str) -> str | None:
    """Why `segment` may not be one part of a key, or None."""
    if not segment.strip():
        return "it is empty"
    if segment.startswith("."):
        return "it begins with a dot"
    if "\\" in segment:
        return "it holds a backslash"
    if "%2f" in segment.lower() or "%5c" in segment.lower():
        return "it holds an encoded slash"
    if not segment.isprintable():
        return "it holds a control or invisible character"
    return None
