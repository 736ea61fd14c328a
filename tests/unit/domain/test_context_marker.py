"""What was put before a prompt is told and taken out, whatever happened to it. Source: specification K8, K9."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.domain.context_marker import END, START, defused, is_injected, without_context

BLOCK = f"{START}\nReference material.\nSource: a.md (A)\n> Retry twice.\n{END}\n"
LINES = BLOCK.splitlines()

# What people, models and programs do to a block of lines.
FORMS = {
    "as it is": LINES,
    "quoted": [f"> {line}" for line in LINES],
    "quoted twice": [f"> > {line}" for line in LINES],
    "indented": [f"    {line}" for line in LINES],
    "in a list": [f"- {LINES[0]}", *(f"\t{line}" for line in LINES[1:])],
    "in upper case": [line.upper() for line in LINES],
    "full width": [line.replace("[", "［").replace("]", "］") for line in LINES],
    "with invisible characters": [line.replace("know", "kn\u200bow") for line in LINES],
    "with more blanks": [line.replace("[", "[ ").replace("]", "\u00a0]") for line in LINES],
    "with brackets escaped": [line.replace("[", "\\[").replace("]", "\\]") for line in LINES],
    "bold": [f"**{line}**" for line in LINES],
    "in one line, as JSON": [json.dumps(BLOCK)],
    "nested": [LINES[0], "> before", *(f"> {line}" for line in LINES), "> after", LINES[-1]],
    "nested twice": [LINES[0], *LINES, "between", *LINES, LINES[-1]],
    "twice": [*LINES, *LINES],
}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_context_is_taken_out_and_the_rest_stays_as_it_was(form: list[str], end: str) -> None:
    before, after = f"  Why twice?{end}{end}", f"Because.\t{end}`[x]`"
    text = before + "".join(line + end for line in form) + after
    assert is_injected(text)
    assert without_context(text) == before + after


@pytest.mark.parametrize("form", [form for form in FORMS.values() if len(form) > 1])
def test_without_its_end_a_context_reaches_to_the_end(form: list[str]) -> None:
    text = "\n".join(["before", *form[:-1], "after"])
    assert is_injected(text)
    assert without_context(text) == "before\n"


def test_without_its_beginning_a_context_has_begun_with_the_text() -> None:
    text = "\n".join(["> Retry twice.", END, "after"])
    assert is_injected(text)
    assert without_context(text) == "after"


@pytest.mark.parametrize("cut", range(1, len(END)))
def test_a_context_that_was_cut_within_its_end_mark_is_taken_out_whole(cut: int) -> None:
    assert without_context("before\n" + BLOCK.rstrip()[:-cut]) == "before\n"


@pytest.mark.parametrize(
    "text", ["", "x", "knowledge context", "[knowledge]\n[context]\r\n", "[the knowledge context]"]
)
def test_text_without_a_mark_stays_as_it_is(text: str) -> None:
    assert not is_injected(text)
    assert without_context(text) == text


_PIECES = st.one_of(
    st.sampled_from([START, END, "[", "]", "［", "］", "/", "knowledge", "context", "KNOWLEDGE ", " ", "\\", "> "]),
    st.sampled_from(["\n", "\r\n", "\u2028", "\x0b", "\u200b", "\u00ad", "﹇", "ﬀ", "İ", "x", "支付"]),
)


@given(st.lists(_PIECES).map("".join))
def test_no_text_holds_a_mark_once_it_is_defused(text: str) -> None:
    assert not any(map(is_injected, defused(text)))
    assert not is_injected("\n".join(f"> {line}" for line in defused(text)))


@given(st.lists(_PIECES).map("".join))
def test_text_without_marks_is_not_changed_by_defusing(text: str) -> None:
    if not is_injected(text):
        assert list(defused(text)) == text.splitlines()


@given(st.lists(_PIECES).map("".join), st.lists(_PIECES).map("".join))
def test_nothing_of_a_whole_context_is_left_whatever_it_holds(inside: str, after: str) -> None:
    block = "\n".join([START, *(f"> secret {line}" for line in defused(inside)), END, ""])
    assert "secret" not in without_context(block + after)
