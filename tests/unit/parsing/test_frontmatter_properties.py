import json

from hypothesis import given
from hypothesis import strategies as st

from knowledge.domain.document import Frontmatter
from knowledge.parsing.frontmatter import FrontmatterParser, frontmatter_is_complete

CHARACTERS = st.sampled_from("\n\n\n\n\r \t\ufeff-x：，{}[]\"'#|>?~\u2028\x85\xa0\x00\ud800\udfff\x07🚀\u0301")
WORDS = st.sampled_from(["---", "...", "+++", "\r\n", "title: ", "keywords: [a, b]", "title：", "- ", "&a ", "*a"])
YAML = st.sampled_from(["!!str ", "!x ", "```", "%YAML 1.2", "<<", "null", '"\\ud800"', '"\\0"', "? ", ": "])
PARTS = CHARACTERS | WORDS | YAML
DOCUMENTS = st.one_of(
    st.text(),
    st.lists(PARTS, max_size=40).map("".join),
    st.lists(PARTS, max_size=20).map(lambda parts: "---\n" + "".join(parts) + "\n---\nbody"),
)


@given(DOCUMENTS)
def test_frontmatter_and_body_together_account_for_every_character(content: str) -> None:
    parsed = FrontmatterParser().read(content)
    text = content.lstrip("\ufeff")
    block = text[: len(text) - len(parsed.body)]

    assert block + parsed.body == text
    assert (parsed.frontmatter is None) == (block == "")


@given(DOCUMENTS)
def test_a_rejected_block_is_the_beginning_of_the_body_and_has_a_warning(content: str) -> None:
    parsed = FrontmatterParser().read(content)

    assert parsed.body[: parsed.rejected_chars] + parsed.prose == parsed.body
    assert 0 <= parsed.rejected_chars <= len(parsed.body)
    assert parsed.rejected_chars == 0 or (parsed.frontmatter is None and len(parsed.warnings) == 1)


@given(DOCUMENTS)
def test_every_text_is_read_to_values_that_can_be_stored(content: str) -> None:
    parsed = FrontmatterParser().read(content)
    declared = parsed.frontmatter or Frontmatter(None, (), None, {})

    json.dumps(dict(declared.fields), ensure_ascii=False).encode()
    "".join((*declared.keywords, declared.title or "", declared.summary or "")).encode()
    assert all(keyword.strip() == keyword != "" for keyword in declared.keywords)


@given(DOCUMENTS, st.integers(min_value=0, max_value=80))
def test_a_head_called_complete_holds_all_of_the_frontmatter(content: str, length: int) -> None:
    head = content[:length]
    complete = frontmatter_is_complete(head)

    expected = FrontmatterParser().parse(content)

    assert FrontmatterParser().parse(head if complete else content) == expected
