from collections.abc import Sequence

import pytest

from knowledge.adapters.hashing_embedder import HashingEmbedder
from knowledge.adapters.memory import MemoryVectorStore
from knowledge.domain.document import Chunk
from knowledge.ports import Vector
from knowledge.services.chunk_vectors import ChunkVectors


class Paced(HashingEmbedder):
    """Takes a while for each text, and as many of them as one likes."""

    def __init__(self, clock: list[float], seconds_per_text: float) -> None:
        self.clock, self.seconds_per_text = clock, seconds_per_text
        self.batches: list[int] = []

    @property
    def batch_size(self) -> int:
        return 32

    def embed_passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        self.batches.append(len(texts))
        self.clock[0] += self.seconds_per_text * len(texts)
        return super().embed_passages(texts)


@pytest.mark.parametrize(
    ("seconds_per_text", "batches"), [(0.001, [4, 8, 16, 32, 10]), (0.2, [4] * 17 + [2]), (1.0, [4, *[2] * 33])]
)
def test_batches_grow_while_the_embedder_is_quick_and_shrink_while_it_is_slow(
    seconds_per_text: float, batches: list[int]
) -> None:
    now = [0.0]
    embedder = Paced(now, seconds_per_text)
    chunks = [Chunk(number, (), f"text {number}") for number in range(70)]
    vectors: dict[str, Vector] = {}
    ChunkVectors(MemoryVectorStore(), embedder, lambda: now[0]).embed_missing(chunks, vectors)
    assert embedder.batches == batches
    assert len(vectors) == 70
