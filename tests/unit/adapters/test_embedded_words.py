"""The embedded store's words in arrays give what the plain index of the memory store gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.adapters.embedded_words import ChunkWords, WordIndex
from knowledge.retrieval.lexical_index import LexicalIndex, LexicalPart

WORDS = st.sampled_from(["timeout", "err_timeout", "the", "支付网关", "退款", "x", "ERR_7", "。", ""])
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)
FILES = st.lists(st.lists(TEXTS, min_size=1, max_size=3), min_size=1, max_size=4)


@given(FILES, TEXTS)
def test_scores_weights_and_held_terms_are_those_of_the_plain_index(files: list[list[str]], query: str) -> None:
    parts = [LexicalPart(texts) for texts in files]
    expected = LexicalIndex(parts).search(query)
    found = WordIndex([ChunkWords.of(texts) for texts in files]).search(query)
    count = sum(map(len, files))
    assert found.idf == expected.idf
    assert dict(enumerate(found.scores)) == pytest.approx({row: expected.scores.get(row, 0.0) for row in range(count)})
    assert {term for term, rows in found.rows.items() if not len(rows)} == expected.absent
    held = [
        part.held(place, expected.idf) for part, texts in zip(parts, files, strict=True) for place in range(len(texts))
    ]
    assert found.held(range(count)) == held
    best = sorted(expected.scores, key=lambda row: (-round(expected.scores[row], 9), row))
    assert [round(found.scores[row], 9) for row in found.best(3)] == [
        round(expected.scores[row], 9) for row in best[:3]
    ]


@pytest.mark.parametrize(
    "broken",
    [
        {"hashes": np.zeros(1, dtype=np.uint64)},
        {"hashes": np.zeros(2, dtype=np.int64)},
        {"places": np.array([0, 1], dtype=np.uint32)},
        {"lengths": np.zeros(2, dtype=np.uint32)},
        {"counts": np.zeros((2, 1), dtype=np.uint32)},
    ],
)
def test_arrays_that_do_not_fit_together_are_not_sound(
    broken: dict[str, "np.ndarray[tuple[int, ...], np.dtype[np.uint32]]"],
) -> None:
    words = ChunkWords.of(["two terms"])
    assert words.is_sound(1)
    for name, array in broken.items():
        setattr(words, name, array)
    assert not words.is_sound(1)
