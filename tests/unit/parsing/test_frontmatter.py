import logging

import pytest

from knowledge.parsing.frontmatter import FrontmatterParser, frontmatter_is_complete
from tests.unit.parsing.reading import frontmatter_of, outcome, read, warnings_of


def test_a_byte_order_mark_hides_nothing_and_is_no_part_of_the_body_A01() -> None:
    content = b"\xef\xbb\xbf---\ntitle: VPN guide\nkeywords: [vpn]\n---\nbody".decode()

    assert outcome(content) == {
        "frontmatter": True,
        "title": "VPN guide",
        "keywords": ["vpn"],
        "summary": None,
        "body": "body",
    }


def test_dates_stay_the_text_that_was_typed_at_every_depth_A02() -> None:
    content = (
        "---\ncreated: 2026-04-14\nnested: {review: {due: 2026-05-01}}\nhistory: [2026-01-02T03:04:05Z]\n---\nbody"
    )

    assert frontmatter_of(content).fields == {
        "created": "2026-04-14",
        "nested": {"review": {"due": "2026-05-01"}},
        "history": ["2026-01-02T03:04:05Z"],
    }


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("title: Assignment 1: some title", "line 2, column 20"),
        ("title: @team handbook", "line 2, column 8"),
        ("title: `code`", "line 2, column 8"),
        ("keywords: [c#, #tag]", "line 2, column 21"),
        ("keywords:\n\t- a", "line 3, column 1"),
    ],
)
def test_a_broken_block_stays_in_the_body_and_the_warning_names_line_and_column_A04(line: str, place: str) -> None:
    content = f"---\n{line}\n---\nbody"

    assert read(content).frontmatter is None
    assert read(content).body == content
    assert f"The frontmatter is ignored: {place}" in warnings_of(content)


def test_scalar_keywords_stay_as_typed_and_nested_ones_never_enter_the_index_A05() -> None:
    content = '---\nkeywords: [no, on, 1.10, 0123, 12:30, null, "", ~, [a], {b: c}]\n---\nbody'

    assert frontmatter_of(content).keywords == ("no", "on", "1.10", "0123", "12:30", "null")
    assert "keywords" in warnings_of(content)


@pytest.mark.parametrize(
    ("value", "keywords"),
    [
        ("C# 7, tuple, Visual Studio", ("C# 7", "tuple", "Visual Studio")),
        ("部署，回滚、灰度", ("部署", "回滚", "灰度")),
        ("single", ("single",)),
        ("' , ，、'", ()),
        ("|\n  one\n  two", ("one", "two")),
        ("[VPN, vpn, ＶＰＮ, 'v\u200bpn']", ("VPN",)),
    ],
)
def test_comma_strings_of_every_kind_give_the_intended_keywords_A06(value: str, keywords: tuple[str, ...]) -> None:
    assert frontmatter_of(f"---\nkeywords: {value}\n---\nbody").keywords == keywords


@pytest.mark.parametrize(
    "content",
    [
        "---\n\nhello\n\n---\nbye",
        "---\n- a\n- b\n---\nbody",
        "```yaml\n---\ntitle: sample\n---\n```\n",
        "---\n\n**bold** and [a link](x), `code`\n\n---\nbye",
        "---\n\n请注意，以下内容：如下。\n\n---\n再见",
        "---\n---\nbody",
        "---",
        "text\n---\ntitle: A\n---\n",
    ],
)
def test_a_rule_on_top_loses_no_character_A07(content: str) -> None:
    assert read(content).frontmatter is None
    assert read(content).body == content


@pytest.mark.parametrize(
    "content", ["---\n\nhello\n\n---\nbye", "---\n\n**bold** [link](x)\n\n---\nbye", "---\n\nprose without end\n"]
)
def test_prose_between_rules_gives_no_warning_A07(content: str) -> None:
    assert read(content).warnings == ()


def test_reserved_and_odd_keys_become_text_A12() -> None:
    content = (
        "---\ntitle: a\ncontent: draft\nhandler: h\non: push\n2024-01-01: kick-off meeting\n1: one\n"
        "~: nothing\n? [a, {b: c}]\n: complex\n---\nbody"
    )

    assert frontmatter_of(content).fields == {
        "title": "a",
        "content": "draft",
        "handler": "h",
        "on": "push",
        "2024-01-01": "kick-off meeting",
        "1": "one",
        "~": "nothing",
        '["a", {"b": "c"}]': "complex",
    }


@pytest.mark.parametrize(
    ("content", "line", "cause"),
    [
        ("---\ntitle：部署手册\nkeywords：[k8s]\n---\nbody", "line 2", "full-width colon"),
        ("\n---\ntitle: A\n标题：部署手册\n---\nbody", "line 4", "full-width colon"),
        ("---\ntitle:\u00a0a\n---\nx", "line 2", "no-break space"),
        ("---\r\nsummary: s\r\ntitle:\u3000a\r\n---\r\nx", "line 3", "no-break space"),
        ("---\ntitle:a\nkeywords:[k]\n---\nx", "line 2", "no blank after the colon"),
    ],
)
def test_a_colon_from_an_input_method_is_named_with_its_line_A14(content: str, line: str, cause: str) -> None:
    assert read(content).frontmatter is None
    assert read(content).body == content
    assert line in warnings_of(content)
    assert cause in warnings_of(content)


def test_explicit_standard_tags_are_text_and_every_other_tag_refuses_the_block() -> None:
    assert frontmatter_of("---\ntitle: !!int 7\nsummary: !!str null\n---\n").fields == {"title": "7", "summary": "null"}
    assert "tag" in warnings_of("---\ntitle: !secret x\n---\n")


def test_fields_of_the_wrong_shape_are_named_and_left_out() -> None:
    content = "---\ntitle: [a]\nsummary: {b: c}\nkeywords: {d: e}\n---\nbody"

    assert outcome(content) == {"frontmatter": True, "title": None, "keywords": [], "summary": None, "body": "body"}
    assert all(name in warnings_of(content) for name in ("title", "summary", "keywords"))


def test_a_keyword_that_nobody_would_type_is_left_out_with_the_reason() -> None:
    content = f"---\nkeywords: [vpn, {'x' * 201}, {'y' * 200}]\n---\nbody"

    assert frontmatter_of(content).keywords == ("vpn", "y" * 200)
    assert "201 characters" in warnings_of(content)


def test_a_nested_key_given_twice_is_named_too() -> None:
    assert frontmatter_of("---\na: {b: 1, b: 2}\n---\n").fields == {"a": {"b": "2"}}
    assert "'b'" in warnings_of("---\na: {b: 1, b: 2}\n---\n")


def test_carriage_returns_alone_end_lines() -> None:
    assert outcome("---\rtitle: A\rkeywords: a\r---\rbody\r")["body"] == "body\r"


def test_one_problem_is_one_warning_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        FrontmatterParser().parse("---\ntitle: [a]\nkeywords: [vpn]\n---\n", path="kb/a.md")
        FrontmatterParser().parse("---\ntitle: a: b\n---\n", path="kb/b.md")

    logged = [(r.levelname, r.getMessage(), r.__dict__["path"], r.__dict__["line"]) for r in caplog.records]
    assert logged == [
        ("WARNING", "frontmatter_field_ignored", "kb/a.md", 2),
        ("WARNING", "frontmatter_ignored", "kb/b.md", 2),
    ]


def test_asking_whether_there_is_frontmatter_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    parser = FrontmatterParser()

    assert parser.has_frontmatter("---\ntitle: [a]\n---\n")
    assert not parser.has_frontmatter("---\ntitle: a: b\n---\n")
    assert not parser.has_frontmatter("# Only a body\n")
    assert caplog.records == []


@pytest.mark.parametrize(
    "head", ["", "\ufeff", "\n\n", "--", "---", "---\n", "---\ntitle: A\n--", "---\ntitle: A\n---"]
)
def test_a_head_in_which_the_block_may_go_on_is_not_complete(head: str) -> None:
    assert not frontmatter_is_complete(head)


@pytest.mark.parametrize("head", ["# Title\n", "---\ntitle: A\n---\n", "\ufeff\n---\ntitle: A\n...\r", "text"])
def test_a_head_with_the_whole_block_or_none_is_complete(head: str) -> None:
    assert frontmatter_is_complete(head)
