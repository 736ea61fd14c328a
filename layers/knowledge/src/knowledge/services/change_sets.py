"""Committing many documents' changes in few transactions, so that what is wrong with one holds up no other."""

import logging
from collections.abc import Mapping, Sequence

from knowledge.domain.document import DocumentStatus
from knowledge.errors import DependencyUnavailable, VersionConflict
from knowledge.ports import DocumentChange, DocumentRegistry

_logger = logging.getLogger(__name__)


def commit_each(registry: DocumentRegistry, changes: Sequence[DocumentChange]) -> Mapping[str, Exception]:
    """Why changes were not committed, by path; all others are, in one transaction if none of them is in the way.

    `changes` are MAX_CHANGES at most, each of another document. Those that lost to another writer have a
    VersionConflict. A set that is refused, for a value or its size, is halved until what is refused stands alone.
    """
    if not changes:
        return {}
    try:
        registry.commit(changes)
    except VersionConflict as error:
        rest = [change for change in changes if change.file_path not in error.paths]
        return {**dict.fromkeys(error.paths, error), **commit_each(registry, rest)}
    except DependencyUnavailable as error:
        return {change.file_path: error for change in changes}
    except Exception as error:  # noqa: BLE001 - whatever one document brings about must not take the others with it
        if len(changes) == 1:
            return {changes[0].file_path: error}
        half = len(changes) // 2
        return {**commit_each(registry, changes[:half]), **commit_each(registry, changes[half:])}
    return {}


def announce(change: DocumentChange) -> None:
    """The log says what was committed."""
    if change.after is None:
        _logger.info("document_removed", extra={"path": change.file_path, "doc_id": change.doc_id})
        return
    level = logging.ERROR if change.after.status is DocumentStatus.FAILED else logging.INFO
    _logger.log(
        level,
        "document_indexed" if change.after.status is DocumentStatus.INDEXED else "document_not_indexed",
        extra={
            "path": change.file_path,
            "doc_id": change.doc_id,
            "status": change.after.status.value,
            "reason": change.after.reason,
            "chunk_count": change.after.chunk_count,
            "keyword_count": len(change.entry.keywords) if change.entry else 0,
        },
    )
