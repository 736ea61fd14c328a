import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.domain.text import is_unspaced, is_word_character, normalise


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ERR_TIMEOUT", "err_timeout"),
        ("ＥＲＲ＿ＴＩＭＥＯＵＴ", "err_timeout"),
        ("Foo\u200bBar", "foobar"),
        ("foo\ufeffbar", "FooBar"),
        ("soft\u00adhyphen", "softhyphen"),
        ("a\u00a0b\u3000c", "a b c"),
        ("left\u200eright", "leftright"),
        ("雾凇 词库", "雾凇词库"),
        ("Straße", "STRASSE"),
        ("cafe\u0301", "café"),
        ("\u2764\ufe0f", "\u2764"),
        ("  a \t\n b  ", "a b"),
        ("ﬁle", "FILE"),
        ("支付 API", "支付API"),
        ("API 网关", "api网关"),
        ("e\u2011mail", "e-mail"),
        ("it\u2019s", "it's"),
        ("ガ", "カ\u3099"),
    ],
)
def test_texts_that_look_the_same_are_equal_E05(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


def test_blanks_between_latin_words_stay() -> None:
    assert normalise("部署 payment  service 指南") == "部署payment service指南"


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


_SELECTORS = {chr(code) for code in range(0xFE00, 0xFE10)}
_DASHES, _SINGLE, _DOUBLE = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "\u2018\u2019\u201a\u201b\u02bc", "“”„‟"
_ODD = f"aB3_ -.,支付網ア한é\u0301ß\u3000\u00a0，？ＡＢ\u200b\ufe0f\ufeff\ufe58\uff07ﬁⅣ😀{_DASHES}{_SINGLE}{_DOUBLE}"


def _plainly_normalised(text: str) -> str:
    """The definition, a character at a time."""
    visible = "".join(char for char in text if unicodedata.category(char) != "Cf" and char not in _SELECTORS)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    for ascii_one, alike in (("-", _DASHES), ("'", _SINGLE), ('"', _DOUBLE)):
        folded = re.sub(f"[{alike}]", ascii_one, folded)
    words = " ".join(folded.split())
    return "".join(
        char
        for place, char in enumerate(words)
        if char != " " or not (is_unspaced(words[place - 1]) or is_unspaced(words[place + 1]))
    )


@given(st.text() | st.text(alphabet=_ODD))
def test_the_quick_way_gives_what_the_definition_gives(text: str) -> None:
    # What this Python's Unicode does not know yet may be invisible in a later one.
    text = "".join(char for char in text if unicodedata.category(char) != "Cn")
    assert normalise(text) == _plainly_normalised(text)


def test_every_invisible_character_goes_and_no_other_one() -> None:
    for char in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.category(char) != "Cn":
            invisible = unicodedata.category(char) == "Cf" or char in _SELECTORS
            assert (normalise(f"支{char}付") == "支付") is (invisible or char.isspace()), f"U+{ord(char):04X}"


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_short_way_for_ascii_gives_what_the_long_way_gives(text: str) -> None:
    assert normalise(text) == normalise(text + "\u200b")


@pytest.mark.parametrize(
    ("char", "expected"),
    [
        ("a", True),
        ("_", True),
        ("é", True),
        ("7", True),
        ("错", False),
        ("ア", False),
        ("-", False),
        ("+", False),
        ("한", False),
    ],
)
def test_word_characters_are_those_of_spaced_scripts(char: str, expected: bool) -> None:
    assert is_word_character(char) is expected
