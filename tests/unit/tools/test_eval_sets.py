"""Reading retrieval sets and golden queries: what is right is read, what is wrong is named with its place."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tools.eval.__main__ import load, main
from tools.eval.sets import Document, Query, RetrievalSet, halved
from tools.local_cloud.places import Problem

DOCUMENTS: list[Mapping[str, object]] = [
    {"id": "d1", "title": "One", "text": "first", "keywords": ["E1"]},
    {"id": "d2", "text": "second"},
]
QUERIES: list[Mapping[str, object]] = [
    {"id": "q1", "text": "which first"},
    {"id": "q2", "text": "nothing", "answerable": False},
]
QRELS: list[Mapping[str, object]] = [{"query": "q1", "doc": "d1", "score": 1}, {"query": "q1", "doc": "d2", "score": 0}]


def written(
    folder: Path,
    *,
    corpus: Sequence[Mapping[str, object]] = DOCUMENTS,
    queries: Sequence[Mapping[str, object]] = QUERIES,
    qrels: Sequence[Mapping[str, object]] = QRELS,
) -> Path:
    for name, rows in (("corpus", corpus), ("queries", queries), ("qrels", qrels)):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


def golden(folder: Path, entries: str) -> RetrievalSet:
    (folder / "api").mkdir()
    document = "---\ntitle: Codes\nkeywords: [E1]\n---\nWhat codes mean.\n"
    (folder / "api" / "codes.md").write_text(document, encoding="utf-8")
    (folder / "golden_queries.yaml").write_text(f"queries:\n{entries}", encoding="utf-8")
    return load(folder)


def test_a_set_is_read_with_what_it_says_of_each_document_and_query(tmp_path: Path) -> None:
    found = load(written(tmp_path))
    assert [(document.title, document.keywords) for document in found.documents] == [("One", ("E1",)), ("", ())]
    assert [(query.relevant, query.answerable) for query in found.queries] == [({"d1": 1.0}, True), ({}, False)]
    assert (found.name, found.skipped) == (tmp_path.name, 0)


def test_a_query_without_a_judgement_is_left_out_and_counted(tmp_path: Path) -> None:
    found = load(written(tmp_path, queries=[*QUERIES, {"id": "q3", "text": "unjudged"}]))
    assert ([query.id for query in found.queries], found.skipped) == (["q1", "q2"], 1)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels.jsonl"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    (written(tmp_path) / name).unlink()
    with pytest.raises(Problem, match=rf"{name} is missing"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "d3", ', r"corpus\.jsonl, line 4: this is no JSON"),
        ("[1]", r"corpus\.jsonl, line 4: this is no JSON object"),
        ('{"id": "d3"}', r"corpus\.jsonl, line 4: `text` is missing"),
        ('{"id": "", "text": "x"}', r"corpus\.jsonl, line 4: `id` is empty"),
        ('{"id": "d1", "text": "x"}', r"corpus\.jsonl, line 4: the document 'd1' is there twice"),
        ('{"id": "d3", "text": "x", "keywords": "E3"}', r"corpus\.jsonl, line 4: `keywords` should be a list"),
    ],
)
def test_a_broken_line_is_named_by_its_number(tmp_path: Path, line: str, message: str) -> None:
    with (written(tmp_path) / "corpus.jsonl").open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    with pytest.raises(Problem, match=message):
        load(tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"query": "q1", "doc": "d9"}, r"qrels\.jsonl, line 1: no document in corpus\.jsonl has the id 'd9'"),
        ({"query": "q9", "doc": "d1"}, r"qrels\.jsonl, line 1: no query in queries\.jsonl has the id 'q9'"),
        ({"query": "q1", "doc": "d1", "score": "high"}, r"qrels\.jsonl, line 1: `score` is 'high'"),
        ({"query": "q2", "doc": "d1"}, r"qrels\.jsonl: the query 'q2' has an answer but is not answerable"),
        ({"query": "q1", "doc": "d1", "score": 0}, r"there is no query that a document answers"),
    ],
)
def test_a_judgement_that_cannot_be_is_named(tmp_path: Path, row: Mapping[str, object], message: str) -> None:
    with pytest.raises(Problem, match=message):
        load(written(tmp_path, qrels=[row]))


def test_golden_queries_are_read_with_the_documents_around_them(tmp_path: Path) -> None:
    found = golden(
        tmp_path, "- {id: a, query: E1, primary: api/codes.md, found: true}\n- {id: b, query: b, found: false}\n"
    )
    assert [(document.id, document.title, document.keywords) for document in found.documents] == [
        ("api/codes.md", "Codes", ("E1",))
    ]
    assert [(query.relevant, query.answerable) for query in found.queries] == [
        ({"api/codes.md": 1.0}, True),
        ({}, False),
    ]
    assert load(tmp_path / "golden_queries.yaml") == found


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("- {id: a}", r"golden_queries\.yaml, entry 1: a query needs `id` and `query`"),
        ("- {id: a, query: x, supplement: [b.md]}", r"entry 1 \(a\): there is no document 'b\.md'"),
        ("- {id: a, query: x}", r"entry 1 \(a\): a query that is found needs"),
        (
            "- {id: a, query: x, found: false}\n- {id: a, query: x, found: false}",
            r"entry 2: the query 'a' is there twice",
        ),
        ("- {id: [", r"golden_queries\.yaml cannot be read"),
    ],
)
def test_a_golden_query_that_cannot_be_is_named(tmp_path: Path, entry: str, message: str) -> None:
    with pytest.raises(Problem, match=message):
        golden(tmp_path, entry + "\n")


def test_the_program_ends_with_the_message_and_no_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--embedder", "hashing", "--cache", str(tmp_path)]) == 1
    assert "holds neither corpus.jsonl" in capsys.readouterr().err
    assert main([str(tmp_path / "nowhere"), "--embedder", "hashing", "--cache", str(tmp_path)]) == 1
    assert "is not there" in capsys.readouterr().err


def test_half_of_the_queries_lose_their_answers_and_the_others_keep_them() -> None:
    documents = [Document(f"d{n}", "", f"text {n}") for n in range(60)]
    queries = [Query(f"q{n}", f"query {n}", {f"d{n}": 1.0}, answerable=True) for n in range(60)]
    half = halved(RetrievalSet("set", documents, queries))
    lost = [query for query in half.queries if not query.answerable]
    assert half.name == "set, halved"
    assert 20 <= len(lost) <= 40
    assert len(half.documents) == 60 - len(lost)
    left = {document.id for document in half.documents}
    assert all(query.relevant.keys() <= left for query in half.queries)
    assert all(bool(query.relevant) is query.answerable for query in half.queries)
    assert halved(RetrievalSet("set", documents, queries)) == half
