"""Whole stores in order, side by side, from any place on: a page at a time, however many documents there are."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

from knowledge.domain.document import DocId, DocumentRecord, Generation, KnowledgeBasePath, KnowledgeEntry
from knowledge.ports import DocumentRegistry, ObjectInfo, ObjectStore, RebuildableVectorStore

# Source: `DocumentRegistry.list` and `.generations` take at most 100.
_PAGE = 100


class Side(NamedTuple):
    """What bucket, table and catalog list for a path."""

    path: str
    info: ObjectInfo | None = None
    record: DocumentRecord | None = None
    page: str | None = None
    """The registry's cursor for the page with the record."""
    entry: KnowledgeEntry | None = None


def listed_paths(
    objects: ObjectStore,
    registry: DocumentRegistry,
    base: KnowledgeBasePath,
    entries: Iterable[KnowledgeEntry],
    *,
    after: str,
    page: str | None,
) -> Iterator[Side]:
    """Each path greater than `after` with a file, a record or an entry, in order.

    `entries` are in order, and greater than `after`; `page` is `Side.page` of a path before that. A call for each 1,000
    files and for each 100 records. Records just committed may be missing.
    """
    files = (Side(info.key, info=info) for info in objects.list(base.prefix, after=after) if base.holds(info.key))
    records = _records(registry, base, after, page)
    catalog = (Side(entry.file_path, entry=entry) for entry in entries)
    # All come in the order of UTF-8 bytes, which is that of Python's texts.
    for path, sides in groupby(heapq.merge(files, records, catalog, key=itemgetter(0)), key=itemgetter(0)):
        info, record, page, entry = None, None, None, None
        for side in sides:
            info, record = info or side.info, record or side.record
            page, entry = page or side.page, entry or side.entry
        yield Side(path, info, record, page, entry)


def stored_generations(
    vectors: RebuildableVectorStore, *, after: str
) -> Iterator[Sequence[tuple[DocId, Sequence[Generation]]]]:
    """The generations there are, by document, in order of ids, greater than `after`: a hundred documents at a time."""
    documents = groupby(vectors.generations(after=DocId(after) if after else None), key=itemgetter(0))
    while page := [(doc_id, [one for _, one in group]) for doc_id, group in islice(documents, _PAGE)]:
        yield page


def _records(registry: DocumentRegistry, base: KnowledgeBasePath, after: str, cursor: str | None) -> Iterator[Side]:
    while True:
        page = registry.list(path_prefix=base.prefix, status=None, cursor=cursor, limit=_PAGE)
        for record in page.records:
            if record.file_path > after:
                yield Side(record.file_path, record=record, page=cursor)
        if page.next_cursor is None:
            return
        cursor = page.next_cursor
