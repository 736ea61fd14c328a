"""Reads golden queries: Markdown documents with a golden_queries.yaml, as in knowledge_base_seed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from knowledge.parsing.frontmatter import FrontmatterParser
from tools.eval.sets import Document, Query, RetrievalSet, checked
from tools.local_cloud.places import Problem

FILE_NAME = "golden_queries.yaml"


def load_golden(file: Path) -> RetrievalSet:
    """The queries in `file` over the Markdown documents of its folder, at any depth.

    A query's answers are its `primary` and its `supplement`; it has none when `found` is false.

    Raises:
        Problem: the file or a document cannot be read, or an entry is not as it should be; says which.
    """
    folder = file.parent
    documents = [_document(path, folder) for path in sorted(folder.rglob("*.md"))]
    paths = {document.id for document in documents}
    queries: dict[str, Query] = {}
    for number, entry in enumerate(_entries(file), start=1):
        query = _query(f"{file}, entry {number}", entry, paths)
        if query.id in queries:
            raise Problem(f"{file}, entry {number}: the query {query.id!r} is there twice")
        queries[query.id] = query
    return checked(RetrievalSet(folder.name, documents, list(queries.values())), file)


def _document(path: Path, folder: Path) -> Document:
    content = path.read_bytes()
    name = path.relative_to(folder).as_posix()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Problem(f"{path} is not UTF-8: {error}") from error
    parsed = FrontmatterParser().read(text, path=name)
    declared = parsed.frontmatter
    title = (declared.title if declared else None) or ""
    return Document(name, title, parsed.body, declared.keywords if declared else (), content)


def _entries(file: Path) -> Sequence[Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise Problem(f"{file} is missing") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Problem(f"{file} cannot be read: {error}") from error
    entries = content.get("queries") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise Problem(f"{file}: there is no list `queries`")
    return entries


def _query(where: str, entry: Any, paths: set[str]) -> Query:
    fields: Mapping[str, Any] = entry if isinstance(entry, dict) else {}
    query_id, text, found = fields.get("id"), fields.get("query"), fields.get("found", True)
    if not isinstance(query_id, str) or not isinstance(text, str) or not query_id or not text:
        raise Problem(f"{where}: a query needs `id` and `query`, both texts")
    where = f"{where} ({query_id})"
    primary, supplement = fields.get("primary"), fields.get("supplement") or []
    if not isinstance(supplement, list):
        raise Problem(f"{where}: `supplement` should be a list of paths")
    answers = list(dict.fromkeys([*([primary] if primary else []), *supplement]))
    for path in answers:
        if path not in paths:
            raise Problem(f"{where}: there is no document {path!r}")
    if not isinstance(found, bool) or found != bool(answers):
        raise Problem(f"{where}: a query that is found needs `primary` or `supplement`, and no other has one")
    return Query(query_id, text, dict.fromkeys(answers, 1.0), found)
