"""The whole evaluation over a tiny set, with an embedder that needs no model."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from knowledge.adapters.hashing_embedder import HashingEmbedder
from knowledge.ports import Vector
from tools.eval import stores
from tools.eval.__main__ import main
from tools.eval.baselines import Bm25, Dense, Grep, Rrf, passages, words_for
from tools.eval.embedding_cache import CachedEmbedder
from tools.eval.evaluation import SYSTEMS
from tools.eval.ours import markdown
from tools.eval.sets import Document, Query

DOCUMENTS: list[dict[str, object]] = [
    {"id": "disk", "title": "Disk full", "text": "The volume has no free space left.", "keywords": ["E42"]},
    {"id": "login", "title": "Login refused", "text": "The password was typed wrongly three times."},
    {"id": "cache", "title": "缓存雪崩", "text": "大量缓存同时过期，请求全部打到数据库。"},
    {"id": "bare", "title": "Printer out of paper", "text": ""},
]
QUERIES = [
    {"id": "code", "text": "what is E42"},
    {"id": "words", "text": "password typed wrongly three times"},
    {"id": "chinese", "text": "大量缓存同时过期"},
    {"id": "title", "text": "printer out of paper"},
    {"id": "none", "text": "zebra quilting", "answerable": False},
]
QRELS = [
    {"query": "code", "doc": "disk", "score": 1},
    {"query": "words", "doc": "login", "score": 1},
    {"query": "chinese", "doc": "cache", "score": 1},
    {"query": "title", "doc": "bare", "score": 1},
]
AS_DOCUMENTS = [Document(str(row["id"]), str(row["title"]), str(row["text"])) for row in DOCUMENTS]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    for name, rows in (("corpus", DOCUMENTS), ("queries", QUERIES), ("qrels", QRELS)):
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_the_program_measures_every_system_and_writes_figures_table_and_plot(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out" / "figures.json"
    assert main([str(tiny), "--embedder", "hashing", "--cache", str(tmp_path / "cache"), "--json", str(out)]) == 0
    figures = json.loads(out.read_text(encoding="utf-8"))["tiny"]
    assert tuple(figures) == SYSTEMS
    assert figures["ours"]["ndcg@10"] == 1.0
    assert figures["ours"]["vector_calls_avoided"] == 0.2
    assert figures["ours"]["certain_precision"] == 1.0
    assert figures["ours"]["not_found_recall"] == 1.0
    assert {"ndcg@10/tuning", "ndcg@10/held_out", "recall@3", "mrr@10", "auroc"} <= figures["dense"].keys()
    assert figures["bm25"]["auroc"] == pytest.approx(0.875)  # "what is E42" has "what" and "is" in no document
    assert "| ours | 1.000 |" in out.with_suffix(".md").read_text(encoding="utf-8")
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert "4 documents, 5 queries, 1 of them unanswerable" in capsys.readouterr().out


def test_two_sets_of_one_name_are_refused(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tiny), str(tiny), "--embedder", "hashing", "--cache", str(tmp_path)]) == 1
    assert "two sets have the same folder name: tiny, tiny" in capsys.readouterr().err


def test_opensearch_without_a_node_says_what_is_missing(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENSEARCH_URL", raising=False)
    assert main([str(tiny), "--embedder", "hashing", "--cache", str(tmp_path), "--store", "opensearch"]) == 1
    assert "OPENSEARCH_URL is not set" in capsys.readouterr().err


def test_the_baselines_find_by_words_by_vectors_and_by_both() -> None:
    words_of = words_for(document.text for document in AS_DOCUMENTS)
    bm25, grep = Bm25(AS_DOCUMENTS, words_of), Grep(AS_DOCUMENTS, words_of)
    dense = Dense(AS_DOCUMENTS, HashingEmbedder())
    asked = Query("q", "缓存 password", {}, True)
    assert set(bm25.find(asked).ranked) == {"login", "cache"}
    assert grep.find(asked).ranked == ["login", "cache"]
    assert grep.find(asked).score == 1.0
    assert len(dense.find(asked).ranked) == 4
    assert set(Rrf(dense, bm25).find(asked).ranked[:2]) == {"login", "cache"}
    nothing = Query("q", "?!", {}, True)
    assert (bm25.find(nothing).ranked, grep.find(nothing).ranked) == ([], [])


def test_a_long_document_is_compared_by_its_best_piece() -> None:
    document = Document("long", "Title", "".join(f"line {number} of it\n" for number in range(300)))
    pieces = passages(document)
    assert len(pieces) > 2
    assert all(piece.startswith("Title\n\n") and len(piece) <= 1510 for piece in pieces)
    assert passages(Document("short", "", "text")) == ["text"]


def test_a_document_is_written_as_its_author_would() -> None:
    written = markdown(Document("d", "A: title", "Text.", ("E1", "超时"))).decode()
    assert written == "---\ntitle: 'A: title'\nkeywords:\n- E1\n- 超时\n---\n\nText.\n"
    assert markdown(Document("d", "", "---\nno frontmatter")).decode() == "\n---\nno frontmatter\n"


class Counting(HashingEmbedder):
    """Counts the texts that it is given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_query(self, text: str) -> Vector:
        self.texts.append(text)
        return super().embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        self.texts.extend(texts)
        return super().embed_passages(texts)


def test_a_text_is_embedded_once_whatever_runs_later(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    with CachedEmbedder(first, tmp_path) as embedder:
        assert embedder.missing("query", ["a", "b", "a"]) == ["a", "b"]
        query, passage = embedder.embed_query("a"), embedder.embed_passages(["a"])
    with CachedEmbedder(second, tmp_path) as embedder:
        assert embedder.missing("query", ["a", "b"]) == ["b"]
        assert (embedder.embed_query("a"), embedder.embed_passages(["a"])) == (query, passage)
    assert (first.texts, second.texts) == (["a", "a"], [])
    assert query == pytest.approx(HashingEmbedder().embed_query("a"))


class Interrupted(HashingEmbedder):
    """Is stopped by the person at the keyboard after two texts."""

    def __init__(self) -> None:
        self.left = 2

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return super().embed_passages(texts)


def test_an_interrupted_run_keeps_what_it_embedded(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "embedder", lambda _: Interrupted())
    assert main([str(tiny), "--cache", str(tmp_path)]) == 130
    assert "What was embedded is kept" in capsys.readouterr().err
    pieces = [piece for document in AS_DOCUMENTS for piece in passages(document)]
    with CachedEmbedder(HashingEmbedder(), tmp_path) as embedder:
        assert embedder.missing("passage", pieces) == pieces[2:]
