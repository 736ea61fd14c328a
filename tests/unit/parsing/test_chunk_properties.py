import re
import unicodedata
from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.domain.text import normalise
from knowledge.parsing.chunks import MIN_MAX_TOKENS, RESERVED_TOKENS
from knowledge.parsing.cutting import cut_text
from knowledge.parsing.markdown import blocks_of, headings_in, lines_of
from knowledge.parsing.tokens import cost, estimate_tokens
from tests.unit.parsing.chunking import LIMIT, chunks_of, piece, visible

WORDS = [
    "word",
    "支付网关。",
    "e\u0301",
    "👍🏽",
    "🇨🇳",
    "`code`",
    "**b**",
    "http://x/y",
    "a" * 300,
    "超" * 200,
    "|",
    "-",
    "\\",
]
LINES = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join),
    st.sampled_from(
        ["", "# H", "## 标题", "### " + "long " * 40, "```", "~~~", "````py", "> quote", "- item", "1. one"]
    )
    | st.sampled_from(["  - nested", "    code", "| a | b |", "|---|---|", "| 1 | 2 |", "---", "===", "<!-- c", "-->"])
    | st.sampled_from(["<div>", "[r]: /u", "> ```", "- ```sh", "  ```", "\x00", "\u200b", "\t", ">", "-", "#"]),
)
BODIES = st.tuples(st.lists(LINES, max_size=40), st.sampled_from(["\n", "\r\n", "\r"])).map(
    lambda pair: pair[1].join(pair[0])
)
REJECTED = st.just("") | BODIES.map(lambda text: f"---\ntitle: a: b\n{text}\n---\n")
LIMITS = st.sampled_from([MIN_MAX_TOKENS, 128, LIMIT])


@settings(max_examples=300)
@given(BODIES, REJECTED, LIMITS)
def test_every_chunk_is_within_the_limit_and_none_is_blank(body: str, rejected: str, max_tokens: int) -> None:
    chunks = chunks_of(body, rejected=rejected, max_tokens=max_tokens)

    assert all(estimate_tokens(chunk.text) <= max_tokens - RESERVED_TOKENS for chunk in chunks)
    assert all(normalise(piece(chunk)) for chunk in chunks)
    assert chunks == chunks_of(body, rejected=rejected, max_tokens=max_tokens)


@settings(max_examples=300)
@given(BODIES, REJECTED, LIMITS)
def test_path_and_pieces_hold_every_character_of_the_body(body: str, rejected: str, max_tokens: int) -> None:
    chunks = chunks_of(body, rejected=rejected, max_tokens=max_tokens)
    held = Counter(visible("".join(chunk.text for chunk in chunks)))
    text = body.replace("\x00", "\ufffd")
    shown_in_the_path = {n for heading in headings_in(blocks_of(text)) for n in range(heading.start, heading.end)}
    lines = [line for n, line in enumerate(lines_of(text)) if n not in shown_in_the_path and holds_text(line)]
    lines += filter(holds_text, lines_of(rejected.replace("\x00", "\ufffd")))

    assert not Counter(visible("".join(lines))) - held


def holds_text(line: str) -> bool:
    """False for rules and for what nobody can see."""
    return re.sub(r"[\s\-\u200b]", "", line) != ""


@given(st.lists(st.sampled_from([*WORDS, " ", "\n", "नि", "👨\u200d👩\u200d👧"]), max_size=80), st.integers(12, 60))
def test_cut_text_gives_the_text_again_and_never_cuts_a_cluster(parts: list[str], tokens: int) -> None:
    text = "".join(parts)
    pieces = list(cut_text(text, tokens * 100))

    assert "".join(pieces) == text
    assert all(cost(p) <= tokens * 100 for p in pieces)
    assert not any(splits_cluster(before, after) for before, after in pairwise(pieces))


def splits_cluster(before: str, after: str) -> bool:
    """True when the boundary stands inside a grapheme cluster; the kinds that tests use, not all of UAX #29."""
    joined = unicodedata.category(after[0]).startswith("M") or after[0] == "\u200d" or before[-1] == "\u200d"
    flags = len(before) - len(before.rstrip("\U0001f1e8\U0001f1f3"))
    return joined or (flags % 2 == 1 and after[0] in "\U0001f1e8\U0001f1f3") or "🏻" <= after[0] <= "🏿"
