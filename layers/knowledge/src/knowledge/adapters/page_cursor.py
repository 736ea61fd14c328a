"""The opaque text that says where a page ended."""

import base64

from knowledge.domain.document import MAX_KEY_BYTES, DocId, DocumentRecord
from knowledge.errors import InvalidInput


def encode(place: str) -> str:
    """The cursor of a page that ends at `place`: URL-safe, without padding."""
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def decode(cursor: str) -> str:
    """The place. Raises InvalidInput for a text that no cursor can be; what the place means is for the list to say."""
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except ValueError as error:
        raise not_a_cursor() from error


def encode_document(last: DocumentRecord) -> str:
    """The cursor of a page of documents that ends with `last`."""
    return encode(f"{last.doc_id}/{last.file_path}")


def decode_document(cursor: str, path_prefix: str) -> tuple[str, DocId]:
    """Path and id of the record after which to go on.

    Raises:
        InvalidInput: not a cursor of ours, or one of a list with another prefix. Whoever invents a well-formed one
            gets a list that begins elsewhere, nothing else.
    """
    doc_id, _, path = decode(cursor).partition("/")
    if not doc_id or not path or not path.startswith(path_prefix) or len(path.encode()) > MAX_KEY_BYTES:
        raise not_a_cursor()
    return path, DocId(doc_id)


def not_a_cursor() -> InvalidInput:
    """What is raised for a text that is no cursor of the list that was asked for."""
    return InvalidInput("it is not a cursor of this list", field="cursor")
