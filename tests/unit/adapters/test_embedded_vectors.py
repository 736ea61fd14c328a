import io
import json
import logging

import numpy as np
import pytest

from knowledge.adapters.embedded_vectors import EmbeddedVectorStore
from knowledge.adapters.memory_objects import MemoryObjectStore
from tests.contract.builders import DOC, GENERATION, OTHER_DOC, chunk

KEY = f"_index/vectors/{DOC}/{GENERATION}.npz"


def archive(vectors: object, chunks: object) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, vectors=np.asarray(vectors), chunks=np.frombuffer(json.dumps(chunks).encode(), dtype=np.uint8))
    return buffer.getvalue()


DESCRIBED = {"file_path": "kb/a.md", "ordinals": [0], "texts": ["x"], "content_hashes": ["h"]}
ROW = np.asarray([[1.0, 0.0]], dtype=np.float32)
BROKEN = {
    "empty": b"",
    "text": b"not an archive",
    "torn": archive(ROW, DESCRIBED)[:-40],
    "npy": b"\x93NUMPY\x01\x00",
    "other arrays": archive(ROW, {"file_path": "kb/a.md"}),
    "doubles": archive([[1.0, 0.0]], DESCRIBED),
    "flat": archive(np.asarray([1.0], dtype=np.float32), DESCRIBED),
    "too many rows": archive(np.ones((2, 2), dtype=np.float32), DESCRIBED),
    "not a number": archive(np.asarray([[np.nan, 0.0]], dtype=np.float32), DESCRIBED),
    "no rows": archive(
        np.ones((0, 2), dtype=np.float32), {**DESCRIBED, "ordinals": [], "texts": [], "content_hashes": []}
    ),
    "unequal": archive(ROW, {**DESCRIBED, "texts": []}),
}


@pytest.fixture
def objects() -> MemoryObjectStore:
    return MemoryObjectStore()


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN.keys())
def test_an_object_that_cannot_be_read_is_reported_once_and_the_others_are_found(
    objects: MemoryObjectStore, caplog: pytest.LogCaptureFixture, body: bytes
) -> None:
    vectors = EmbeddedVectorStore(objects)
    vectors.write(OTHER_DOC, GENERATION, "kb/b.md", [chunk("fine", [1, 0])])
    objects.put(KEY, body, content_type="application/octet-stream")
    with caplog.at_level(logging.WARNING):
        found = [[hit.text for hit in vectors.search("q", [1.0, 0.0], limit=5).hits] for _ in range(2)]
    assert found == [["fine"], ["fine"]]
    assert [(record.message, record.__dict__["key"]) for record in caplog.records] == [("vectors_unreadable", KEY)]
    assert vectors.embeddings(DOC, GENERATION) == {}


def test_an_archive_with_a_python_object_is_not_executed(objects: MemoryObjectStore) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, vectors=np.asarray([{"a": 1}], dtype=object), chunks=np.zeros(1, dtype=np.uint8))
    objects.put(KEY, buffer.getvalue(), content_type="application/octet-stream")
    assert EmbeddedVectorStore(objects).search("q", [1.0, 0.0], limit=5).hits == []


def test_a_repaired_object_is_found(objects: MemoryObjectStore) -> None:
    vectors = EmbeddedVectorStore(objects)
    objects.put(KEY, b"torn", content_type="application/octet-stream")
    assert vectors.search("q", [1.0, 0.0], limit=5).hits == []
    vectors.write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
    assert [hit.text for hit in vectors.search("q", [1.0, 0.0], limit=5).hits] == ["x"]


def test_an_object_that_goes_away_while_it_is_read_is_not_found(objects: MemoryObjectStore) -> None:
    class Vanishing(MemoryObjectStore):
        def read(self, key: str, *, max_bytes: int) -> None:
            return None

    vanishing = Vanishing()
    vectors = EmbeddedVectorStore(vanishing)
    vectors.write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
    assert vectors.search("q", [1.0, 0.0], limit=5).hits == []


def test_an_object_is_read_once_however_often_is_searched(objects: MemoryObjectStore) -> None:
    reads: list[str] = []

    class Counting(MemoryObjectStore):
        def read(self, key: str, *, max_bytes: int):  # type: ignore[no-untyped-def]
            reads.append(key)
            return super().read(key, max_bytes=max_bytes)

    vectors = EmbeddedVectorStore(Counting())
    for doc_id in (DOC, OTHER_DOC):
        vectors.write(doc_id, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
    for _ in range(3):
        assert len(vectors.search("q", [1.0, 0.0], limit=5).hits) == 2
    assert len(reads) == 2


def test_the_prefix_is_where_the_objects_lie(objects: MemoryObjectStore) -> None:
    vectors = EmbeddedVectorStore(objects, prefix="other/")
    vectors.write(DOC, GENERATION, "kb/a.md", [chunk("x", [1, 0])])
    assert [info.key for info in objects.list("")] == [f"other/{DOC}/{GENERATION}.npz"]
