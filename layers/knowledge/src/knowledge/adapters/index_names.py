"""How an embedder's index is told from those of others, by every store alike."""

import hashlib
from collections.abc import Mapping

from knowledge.domain.document import Json
from knowledge.errors import OtherEmbedder

# 32 bits: a place holds one index, and a few while one takes the place of another. Source: own choice.
NAME_CHARS = 8


def index_name(*identity: object) -> str:
    """Eight hexadecimal digits that are the same for equal identities in every process."""
    return hashlib.sha256(repr(identity).encode("utf-8", "surrogatepass")).hexdigest()[:NAME_CHARS]


def other_embedder(notes: Mapping[str, Json], own: str) -> OtherEmbedder:
    """The error for a place that holds only an index with these notes, which are another embedder's."""
    return OtherEmbedder(f"{notes.get('embedder', 'another embedder')!r}", repr(own))
