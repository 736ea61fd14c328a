"""Chunks of a body, as tests look at them."""

from knowledge.domain.document import Chunk, ParsedDocument
from knowledge.parsing.chunks import chunk_document

LIMIT = 512


def chunks_of(body: str, *, rejected: str = "", title: str = "T", max_tokens: int = LIMIT) -> tuple[Chunk, ...]:
    """The chunks of `body` below a block that was rejected as frontmatter."""
    parsed = ParsedDocument(None, rejected + body, rejected_chars=len(rejected))
    return chunk_document(parsed, title=title, max_tokens=max_tokens)


def piece(chunk: Chunk) -> str:
    """The chunk's text below its path."""
    return chunk.text.split("\n\n", 1)[1] if chunk.heading_path else chunk.text


def visible(text: str) -> str:
    return "".join(text.split())
