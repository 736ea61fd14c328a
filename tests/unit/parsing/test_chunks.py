import time

import pytest

from knowledge.parsing.chunks import MIN_MAX_TOKENS
from knowledge.parsing.tokens import cost, estimate_tokens
from tests.unit.parsing.chunking import chunks_of, piece, visible


def test_a_chunk_is_its_heading_path_a_blank_line_and_the_piece() -> None:
    body = "intro\n\n# T\n\none\n\n## Codes\n\ntwo\n\n### Deep\n\nthree\n\n# Other\n\nfour\n"

    assert [chunk.text for chunk in chunks_of(body)] == [
        "T\n\nintro",
        "T\n\none",
        "T > Codes\n\ntwo",
        "T > Codes > Deep\n\nthree",
        "T > Other\n\nfour",
    ]
    assert [chunk.ordinal for chunk in chunks_of(body)] == [0, 1, 2, 3, 4]


def test_small_paragraphs_of_one_section_share_a_chunk() -> None:
    assert [piece(chunk) for chunk in chunks_of("one\n\ntwo\n\n- three\n- four\n")] == ["one\n\ntwo\n\n- three\n- four"]


@pytest.mark.parametrize("body", ["", "\n \n", "\u200b", "# A\n\n## B\n", "# A\n\n---\n\n***\n", "#\n"])
def test_a_document_without_text_gives_no_chunk_I05(body: str) -> None:
    assert chunks_of(body) == ()


@pytest.mark.parametrize(("opening", "closing"), [("```bash", "```"), ("~~~", "~~~"), ("````md", "````")])
def test_comments_in_fences_are_no_headings_I05(opening: str, closing: str) -> None:
    body = f"{opening}\n# comment\n```` x\necho\n{closing}\n"

    assert [chunk.text for chunk in chunks_of(body)] == ["T\n\n" + body.rstrip()]


def test_a_fence_that_fits_the_limit_is_never_cut_and_stays_with_its_introduction_I05() -> None:
    fence = "```python\n" + "value = compute(1)\n" * 45 + "```"

    assert [piece(chunk) for chunk in chunks_of(f"Run this:\n\n{fence}\n")] == [f"Run this:\n\n{fence}"]


@pytest.mark.parametrize("prefix", ["", "> ", "   "])
def test_every_piece_of_a_long_fence_is_a_closed_fence_I05(prefix: str) -> None:
    lines = [f"{prefix}value_{number} = compute({number})" for number in range(200)]
    pieces = [piece(chunk) for chunk in chunks_of("\n".join([f"{prefix}```python", *lines, f"{prefix}```", ""]))]

    assert len(pieces) > 1
    assert all(p.startswith(f"{prefix}```python\n") and p.endswith(f"\n{prefix}```") for p in pieces)
    assert [line for p in pieces for line in p.split("\n")[1:-1]] == lines


def test_a_fence_in_a_list_is_opened_again_without_the_list_mark_I05() -> None:
    body = "- ```\n" + "  some line of output, number 1234\n" * 200 + "  ```\n"
    pieces = [piece(chunk) for chunk in chunks_of(body)]

    assert pieces[0].startswith("- ```\n")
    assert all(p.startswith("  ```\n") for p in pieces[1:])
    assert all(p.endswith("\n  ```") for p in pieces)


def test_a_fence_that_nobody_closed_is_closed_I05() -> None:
    assert [piece(chunk) for chunk in chunks_of("```\na\nb\n")] == ["```\na\nb\n```"]


def test_one_line_longer_than_a_chunk_is_cut_inside_its_fence_I05() -> None:
    pieces = [piece(chunk) for chunk in chunks_of("```\n" + "word " * 2000 + "\n```\n")]

    assert all(p.startswith("```\n") and p.endswith("\n```") for p in pieces)
    assert visible("".join(p[4:-4] for p in pieces)) == "word" * 2000


def test_every_piece_of_a_sixty_row_table_has_the_header_I05() -> None:
    rows = [f"| ERR_{number} | {number} | the meaning of this code, at some length |" for number in range(60)]
    header = "| code | HTTP | meaning |\n|---|---|---|"
    pieces = [piece(chunk) for chunk in chunks_of("\n".join([header, *rows, ""]))]

    assert len(pieces) > 1
    assert all(p.startswith(header + "\n") for p in pieces)
    assert [row for p in pieces for row in p.split("\n")[2:]] == rows


def test_five_thousand_chinese_characters_without_a_blank_are_cut_at_sentence_ends_I05() -> None:
    body = "支付网关返回超时错误时不要重试！应当先查询订单状态。资金是否已经冻结？" * 145
    pieces = [piece(chunk) for chunk in chunks_of(body)]

    assert "".join(pieces) == body
    assert all(p[-1] in "。！？" for p in pieces)


@pytest.mark.parametrize("cluster", ["👨\u200d👩\u200d👧\u200d👦", "e\u0301\u0323", "🇨🇳", "👍🏽", "नि"])
def test_no_cut_falls_inside_a_grapheme_cluster_I05(cluster: str) -> None:
    pieces = [piece(chunk) for chunk in chunks_of(cluster * 1500)]

    assert len(pieces) > 1
    assert all(len(p) % len(cluster) == 0 for p in pieces)
    assert "".join(pieces) == cluster * 1500


def test_a_heading_too_long_for_the_path_is_shown_cut_and_stays_in_the_text() -> None:
    heading = "A heading that goes on and on " * 10

    (chunk,) = chunks_of(f"# {heading}\n\ntext\n")

    assert chunk.heading_path[1].endswith("…")
    assert piece(chunk) == f"# {heading}\n\ntext"


def test_comments_definitions_and_other_front_matter_stay_text() -> None:
    body = "+++\ntitle = 1\n+++\n\n<!-- note -->\n\n[ref]: http://x 'y'\n"

    assert visible(piece(chunks_of(body)[0])) == visible(body)


def test_a_limit_too_small_for_a_path_is_refused() -> None:
    with pytest.raises(ValueError, match=str(MIN_MAX_TOKENS)):
        chunks_of("text", max_tokens=MIN_MAX_TOKENS - 1)


@pytest.mark.parametrize(
    "unit",
    ["支付网关", "a", "word ", "好的。", "line\n", "Some text. More text.\n\n", "\n", " ", "a\u0301"],
    ids=lambda unit: ascii(unit),
)
def test_a_body_of_a_megabyte_takes_about_a_second(unit: str) -> None:
    body = unit * (1024 * 1024 // len(unit.encode()))
    started = time.monotonic()

    chunks_of(body)

    assert time.monotonic() - started < 10  # weighing the whole rest for every piece would take minutes


def test_the_estimate_adds_up_and_is_never_zero_for_text() -> None:
    assert estimate_tokens("支付网关") == 4
    assert estimate_tokens("a") == 1
    assert estimate_tokens("") == 0
    assert cost("超时 ERR_1 é🚀") == sum(map(cost, "超时 ERR_1 é🚀"))
