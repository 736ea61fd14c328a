"""The opaque text that says where a page of documents ended."""

import base64

from knowledge.domain.document import MAX_KEY_BYTES, DocId, DocumentRecord
from knowledge.errors import InvalidInput


def encode(last: DocumentRecord) -> str:
    """The cursor of a page that ends with `last`: URL-safe, without padding."""
    return base64.urlsafe_b64encode(f"{last.doc_id}/{last.file_path}".encode()).decode().rstrip("=")


def decode(cursor: str, path_prefix: str) -> tuple[str, DocId]:
    """Path and id of the record after which to go on.

    Raises:
        InvalidInput: not a cursor of ours, or one of a list with another prefix. Whoever invents a well-formed one
            gets a list that begins elsewhere, nothing else.
    """
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except ValueError as error:
        raise InvalidInput("it is not a cursor of this list", field="cursor") from error
    doc_id, _, path = text.partition("/")
    if not doc_id or not path or not path.startswith(path_prefix) or len(path.encode()) > MAX_KEY_BYTES:
        raise InvalidInput("it is not a cursor of this list", field="cursor")
    return path, DocId(doc_id)
