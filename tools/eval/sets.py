"""What is evaluated: documents, queries and which documents answer them, read from a set's files. Knows no system."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tools.local_cloud.places import Problem

TUNING, HELD_OUT = "tuning", "held_out"


@dataclass(frozen=True, slots=True)
class Document:
    """One document, as the baselines read it and as it is uploaded."""

    id: str
    title: str
    text: str
    keywords: tuple[str, ...] = ()
    markdown: bytes | None = None
    """The file to upload as it is; None when the file is made from the other fields."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query; `relevant` holds the gain of each document that answers it."""

    id: str
    text: str
    relevant: Mapping[str, float]
    answerable: bool

    @property
    def half(self) -> str:
        """The half of the set that this query is in, for ever: whatever else the set holds."""
        return HELD_OUT if self.digest[0] & 1 else TUNING

    @property
    def digest(self) -> bytes:
        """Decides what halves the query is in."""
        return hashlib.sha256(self.id.encode()).digest()


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """A base with queries."""

    name: str
    documents: Sequence[Document]
    queries: Sequence[Query]
    skipped: int = 0
    """Queries left out: nothing says which document answers them, nor that none does."""

    @property
    def judged(self) -> Sequence[Query]:
        """The queries that some document answers."""
        return [query for query in self.queries if query.relevant]


def load_jsonl(folder: Path) -> RetrievalSet:
    """The set in `corpus.jsonl`, `queries.jsonl` and `qrels.jsonl` of `folder`.

    Raises:
        Problem: a file is missing, a line is not as it should be, or an id is unknown or there twice; says where.
    """
    documents = _documents(folder / "corpus.jsonl")
    asked = _asked(folder / "queries.jsonl")
    relevant = _relevant(folder / "qrels.jsonl", documents.keys(), asked.keys())
    queries = []
    for query_id, (text, answerable) in asked.items():
        gains = relevant.get(query_id, {})
        if answerable is False and gains:
            raise Problem(f"{folder / 'qrels.jsonl'}: the query {query_id!r} has an answer but is not answerable")
        if gains or answerable is not None:
            queries.append(Query(query_id, text, gains, answerable is not False))
    return checked(RetrievalSet(folder.name, list(documents.values()), queries, len(asked) - len(queries)), folder)


def halved(whole: RetrievalSet) -> RetrievalSet:
    """The set without the documents that answer a half of its queries: so measures "not found" who has no such queries.

    Which half depends on the queries' ids alone. Where queries share documents, more than half may lose them.
    """
    removed = {doc_id for query in whole.judged if query.digest[1] & 1 for doc_id in query.relevant}
    queries = [
        replace(query, relevant=left, answerable=query.answerable and bool(left))
        for query in whole.queries
        for left in [{doc_id: gain for doc_id, gain in query.relevant.items() if doc_id not in removed}]
    ]
    documents = [document for document in whole.documents if document.id not in removed]
    return replace(whole, name=f"{whole.name}, halved", documents=documents, queries=queries)


def checked(retrieval_set: RetrievalSet, source: Path) -> RetrievalSet:
    """The same set. Raises Problem when it has nothing to measure."""
    if not retrieval_set.documents:
        raise Problem(f"{source}: there is no document")
    if not retrieval_set.judged:
        raise Problem(f"{source}: there is no query that a document answers")
    return retrieval_set


def _documents(path: Path) -> dict[str, Document]:
    documents: dict[str, Document] = {}
    for where, row in _rows(path):
        doc_id, title = _id(where, row, "id"), _text(where, row, "title", "")
        if doc_id in documents:
            raise Problem(f"{where}: the document {doc_id!r} is there twice")
        documents[doc_id] = Document(doc_id, title, _text(where, row, "text"), _keywords(where, row))
    return documents


def _asked(path: Path) -> dict[str, tuple[str, bool | None]]:
    """Text, and what is said of being answerable, by query id."""
    asked: dict[str, tuple[str, bool | None]] = {}
    for where, row in _rows(path):
        query_id, answerable = _id(where, row, "id"), row.get("answerable")
        if not isinstance(answerable, bool | None):
            raise Problem(f"{where}: `answerable` is {answerable!r}; it should be true or false")
        if query_id in asked:
            raise Problem(f"{where}: the query {query_id!r} is there twice")
        asked[query_id] = (_text(where, row, "text"), answerable)
    return asked


def _relevant(path: Path, doc_ids: Set[str], query_ids: Set[str]) -> dict[str, dict[str, float]]:
    """The gain of each relevant document by query id; a score of 0 says that it is not relevant."""
    relevant: dict[str, dict[str, float]] = {}
    for where, row in _rows(path):
        query_id, doc_id, score = _id(where, row, "query"), _id(where, row, "doc"), row.get("score", 1)
        if query_id not in query_ids:
            raise Problem(f"{where}: no query in queries.jsonl has the id {query_id!r}")
        if doc_id not in doc_ids:
            raise Problem(f"{where}: no document in corpus.jsonl has the id {doc_id!r}")
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise Problem(f"{where}: `score` is {score!r}; it should be a number")
        if score > 0:
            relevant.setdefault(query_id, {})[doc_id] = float(score)
    return relevant


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line's object with its place, for messages; blank lines are left out."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError as error:
        raise Problem(f"{path} is missing") from error
    except (OSError, UnicodeDecodeError) as error:
        raise Problem(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise Problem(f"{where}: this is no JSON: {error}") from error
        if not isinstance(row, dict):
            raise Problem(f"{where}: this is no JSON object")
        yield where, row


def _text(where: str, row: Mapping[str, Any], field: str, default: str | None = None) -> str:
    value = row.get(field, default)
    if not isinstance(value, str):
        raise Problem(f"{where}: `{field}` is {'missing' if value is None else 'no text'}")
    return value


def _id(where: str, row: Mapping[str, Any], field: str) -> str:
    if not (value := _text(where, row, field)):
        raise Problem(f"{where}: `{field}` is empty")
    return value


def _keywords(where: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    value = row.get("keywords") or []
    if not isinstance(value, list) or not all(isinstance(keyword, str) for keyword in value):
        raise Problem(f"{where}: `keywords` should be a list of texts")
    return tuple(value)
