"""Documents in the API's JSON."""

from typing import Any

from knowledge.domain.document import DocumentRecord


def document_json(record: DocumentRecord) -> dict[str, Any]:
    """All that is known of one document."""
    return {**document_summary_json(record), "metadata": record.metadata}


def document_summary_json(record: DocumentRecord) -> dict[str, Any]:
    """One line of a list: everything but the metadata, so that a page stays far under what Lambda can answer."""
    return {
        "doc_id": record.doc_id,
        "file_path": record.file_path,
        "title": record.title,
        "status": record.status.value,
        "reason": record.reason,
        "warnings": list(record.warnings),
        "size_bytes": record.size_bytes,
        "etag": record.etag,
        "chunk_count": record.chunk_count,
        "created_at": record.created_at.isoformat(),
        "updated_at": record.updated_at.isoformat(),
    }
