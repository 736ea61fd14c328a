import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.domain.text import is_word_character, normalise


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
