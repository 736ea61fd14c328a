"""An embedder that remembers on disk what it has embedded. Knows nothing of retrieval sets."""

import array
import hashlib
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Literal, Self

from knowledge.domain.question_centring import QuestionCentring
from knowledge.ports import Embedder, Vector

# Stored as 32 bit floats, the precision of every model here.
_FLOAT32 = "f"
# A model may embed a question otherwise than a text that answers one.
_Kind = Literal["query", "passage"]


class CachedEmbedder:
    """Embedder whose vectors are kept in one file for each model; any number of processes may share it.

    Every vector is on disk as soon as it is made, so an interrupted run loses none. Thread-safe when the embedder
    within is.
    """

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        """The file is made in `folder`; another model name is another file."""
        self._embedder = embedder
        self._lock = Lock()
        folder.mkdir(parents=True, exist_ok=True)
        name = "".join(char if char.isalnum() or char in "-." else "_" for char in embedder.name)
        # Autocommit: a vector is worth keeping by itself. What a power cut takes is only embedded again.
        self._file = sqlite3.connect(
            folder / f"{name}.sqlite", isolation_level=None, check_same_thread=False, timeout=60.0
        )
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute("CREATE TABLE IF NOT EXISTS vectors (text_hash TEXT PRIMARY KEY, vector BLOB NOT NULL)")

    def __enter__(self) -> Self:
        """The embedder itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """The file is closed."""
        self._file.close()

    @property
    def name(self) -> str:
        """See Embedder."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """See Embedder."""
        return self._embedder.dimension

    @property
    def max_tokens(self) -> int:
        """See Embedder."""
        return self._embedder.max_tokens

    @property
    def answer_threshold(self) -> float:
        """See Embedder."""
        return self._embedder.answer_threshold

    @property
    def question_centring(self) -> QuestionCentring | None:
        """See Embedder."""
        return self._embedder.question_centring

    @property
    def batch_size(self) -> int:
        """See Embedder."""
        return self._embedder.batch_size

    def embed_query(self, text: str) -> Vector:
        """See Embedder; no call for a text seen before."""
        return self._remembered("query", text)

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        """See Embedder; one call for each text not seen before."""
        return [self._remembered("passage", text) for text in texts]

    def missing(self, kind: _Kind, texts: Sequence[str]) -> list[str]:
        """The texts, each once, that are not remembered yet and so will take time."""
        return [text for text in dict.fromkeys(texts) if self._read(_key(kind, text)) is None]

    def measure(self, texts: Sequence[str]) -> list[float]:
        """How long the embedder within takes for each of these queries, in milliseconds; nothing is remembered."""
        return [self._timed("query", text)[1] for text in texts]

    def _remembered(self, kind: _Kind, text: str) -> Vector:
        key = _key(kind, text)
        blob = self._read(key)
        if blob is None:
            blob = array.array(_FLOAT32, self._timed(kind, text)[0]).tobytes()
            with self._lock:
                self._file.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", (key, blob))
        return array.array(_FLOAT32, blob).tolist()

    def _read(self, key: str) -> bytes | None:
        with self._lock:
            row = self._file.execute("SELECT vector FROM vectors WHERE text_hash = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def _timed(self, kind: _Kind, text: str) -> tuple[Vector, float]:
        started = time.perf_counter()
        vector = self._embedder.embed_query(text) if kind == "query" else self._embedder.embed_passages([text])[0]
        return vector, (time.perf_counter() - started) * 1000


def _key(kind: _Kind, text: str) -> str:
    return hashlib.sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()
