"""What tests ask of a document's text."""

from typing import Any

from knowledge.domain.document import Frontmatter, ParsedDocument
from knowledge.parsing.frontmatter import FrontmatterParser


def read(content: str) -> ParsedDocument:
    return FrontmatterParser().read(content, path="kb/a.md")


def frontmatter_of(content: str) -> Frontmatter:
    frontmatter = read(content).frontmatter
    assert frontmatter is not None
    return frontmatter


def warnings_of(content: str) -> str:
    return "\n".join(read(content).warnings)


def outcome(content: str) -> dict[str, Any]:
    parsed = read(content)
    declared = parsed.frontmatter or Frontmatter(None, (), None, {})
    return {
        "frontmatter": parsed.frontmatter is not None,
        "title": declared.title,
        "keywords": list(declared.keywords),
        "summary": declared.summary,
        "body": parsed.body,
    }
