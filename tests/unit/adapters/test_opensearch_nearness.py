import math
import random

import numpy as np
import pytest

from knowledge.adapters.opensearch_index import FAISS, LUCENE, SPACED, UNSPACED, pack, unpack
from knowledge.adapters.opensearch_nearness import CentredQuery, dot, mean, within


def unit(generator: random.Random, size: int = 64) -> list[float]:
    vector = [generator.gauss(0.2, 1) for _ in range(size)]
    return [value / math.hypot(*vector) for value in vector]


@pytest.mark.parametrize("value", [-1.0, -0.5, 0.0, 0.25, 1.0])
def test_a_score_gives_the_cosine_back_in_either_space(value: float) -> None:
    assert LUCENE.cosine((1 + value) / 2) == pytest.approx(value)
    assert FAISS.cosine(1 + value if value > 0 else 1 / (1 - value)) == pytest.approx(value)


def test_a_rounded_score_is_no_cosine_above_one() -> None:
    assert LUCENE.cosine(1.0000001) == 1.0
    assert FAISS.cosine(2.0000002) == 1.0
    assert within(1.0000001) == 1.0


def test_a_centred_cosine_is_the_cosine_of_the_centred_vectors() -> None:
    generator = random.Random(7)  # noqa: S311 - test data
    groups = {script: [unit(generator) for _ in range(30)] for script in (SPACED, UNSPACED)}
    means = {script: mean(vectors) for script, vectors in groups.items()}
    query = unit(generator)
    centred = CentredQuery.of(query, UNSPACED, means)
    left = np.asarray(query) - np.mean(groups[UNSPACED], axis=0)
    for script, vectors in groups.items():
        for vector in vectors:
            right = np.asarray(vector) - np.mean(groups[script], axis=0)
            expected = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
            probed = dot(vector, centred.probes[script].vector)
            for known in (None, probed):
                assert centred.cosines(vector, script, known) == pytest.approx((dot(vector, query), float(expected)))


def test_the_probe_orders_chunks_as_both_cosines_together_do() -> None:
    generator = random.Random(7)  # noqa: S311 - test data
    vectors = [unit(generator) for _ in range(200)]
    means = {SPACED: mean(vectors), UNSPACED: unit(generator)}
    centred = CentredQuery.of(unit(generator), UNSPACED, means)
    probe = centred.probes[SPACED].vector
    wanted = sorted(vectors, key=lambda vector: -sum(centred.cosines(vector, SPACED, None)))
    found = sorted(vectors, key=lambda vector: -dot(vector, probe))
    assert wanted[0] == found[0]
    assert len([vector for vector in wanted[:20] if vector in found[:30]]) == 20


def test_what_is_its_own_mean_has_no_direction() -> None:
    means = {SPACED: [1.0, 0.0], UNSPACED: [0.0, 1.0]}
    assert CentredQuery.of([1.0, 0.0], SPACED, means).cosines([0.0, 1.0], SPACED, None) == pytest.approx((0.0, 0.0))
    assert CentredQuery.of([0.0, 1.0], SPACED, means).cosines([1.0, 0.0], SPACED, None) == pytest.approx((0.0, 0.0))


def test_a_packed_vector_is_that_vector_in_32_bits() -> None:
    vector = [0.1, -0.25, 1e-12, 1.0]
    assert list(unpack(pack(vector))) == [float(np.float32(value)) for value in vector]
    with pytest.raises(ValueError, match="padding"):
        unpack("AAA")
