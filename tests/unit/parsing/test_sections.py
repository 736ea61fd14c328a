import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.domain.document import Frontmatter
from knowledge.parsing.sections import display_title, first_heading, headings, opening, section

BODY = """Intro

# Payment `errors`

## **Codes** and [links](http://x)

```bash
# no heading
## nor this
```

### Details

text

Setext One
==========

~~~
# no
~~~

Setext two
---

last
"""


def test_headings_come_in_order_without_markup_and_never_from_fences() -> None:
    assert headings(BODY) == ("Payment errors", "Codes and links", "Details", "Setext One", "Setext two")


def test_a_heading_inside_a_list_or_quote_or_without_text_is_none_of_the_document() -> None:
    assert headings("- # a\n\n> # b\n\n#\n\n# &amp; c #\n") == ("& c",)


def test_the_first_heading_is_none_when_there_is_none() -> None:
    assert first_heading(BODY) == "Payment errors"
    assert first_heading("text\n") is None


def test_a_section_goes_up_to_the_next_heading_of_its_level_or_a_higher_one() -> None:
    found = section(BODY, "Codes and links")

    assert found is not None
    assert found[0] == "Codes and links"
    assert found[1].startswith("## **Codes**")
    assert found[1].endswith("### Details\n\ntext")


@pytest.mark.parametrize("title", ["SETEXT TWO", "setext  two", "ｓetext two"])
def test_a_section_is_found_as_a_reader_would_name_it(title: str) -> None:
    assert section(BODY, title) == ("Setext two", "Setext two\n---\n\nlast")


@pytest.mark.parametrize("title", ["", "  ", "no heading", "absent"])
def test_what_no_heading_says_is_no_section(title: str) -> None:
    assert section(BODY, title) is None


@pytest.mark.parametrize(
    ("declared", "body", "path", "title"),
    [
        ("Declared", "# Heading", "kb/a.md", "Declared"),
        (None, "# Heading", "kb/a.md", "Heading"),
        ("\u200b", "# Heading", "kb/a.md", "Heading"),
        ("two\n lines", "", "kb/a.md", "two lines"),
        (None, "text", "kb/部署 手册.md", "部署 手册"),
        (None, "# \u200b\n\n# <!-- -->", "kb/a.MD", "a"),
        (None, "", ".md", ".md"),
        (None, "", "", "untitled"),
    ],
)
def test_the_title_shown_is_the_declared_one_then_the_heading_then_the_file_name(
    declared: str | None, body: str, path: str, title: str
) -> None:
    assert display_title(Frontmatter(declared, (), None, {}), body, path) == title


@pytest.mark.parametrize(("length", "shown"), [(200, "x" * 200), (201, "x" * 199 + "…"), (50_000, "x" * 199 + "…")])
def test_the_title_shown_has_at_most_200_characters(length: int, shown: str) -> None:
    assert display_title(Frontmatter("x" * length, (), None, {}), "", "kb/a.md") == shown
    assert display_title(None, "# " + "x" * length, "kb/a.md") == shown
    assert display_title(None, "", "kb/" + "x" * length + ".md") == shown


@given(st.text(), st.text(), st.text())
def test_the_title_shown_is_never_blank(declared: str, body: str, path: str) -> None:
    assert display_title(Frontmatter(declared, (), None, {}), body, path).strip()


@given(st.text(alphabet="#ab \n`-=>*[]\r\t"))
def test_every_heading_can_be_asked_for(body: str) -> None:
    assert all(section(body, heading) is not None for heading in headings(body))


@pytest.mark.parametrize(
    ("body", "first"),
    [
        ("# Title\n\nFirst sentence. Second one.", "First sentence."),
        ("## 标题\n\n退款在三天内到账。超过请联系客服！", "退款在三天内到账。"),
        ("- **bold** item\n- other", "bold item"),
        ("Version 1.2 is out", "Version 1.2 is out"),
        ("# Title\n\n```\ncode\n```\n\n> quoted? Yes.", "quoted?"),
        ("x" * 300, "x" * 200),
        ("# Only a heading\n", None),
        ("", None),
    ],
)
def test_the_opening_is_the_first_sentence_that_is_no_heading(body: str, first: str | None) -> None:
    assert opening(body) == first
