"""A knowledge item as a Markdown document, from which the product's own parser reads back exactly what it says."""

import math
import re

import yaml

from knowledge.domain.item import Draft
from knowledge.domain.text import normalise

# Source: own choice, with the design: what a list shows beside the title.
_MAX_SUMMARY_CHARS = 200
_HEADING = re.compile(r"#{1,6}\s+")
_FIRST_SENTENCE = re.compile(r".*?(?:[。！？]|[.!?](?=\s|\Z))")


def render(draft: Draft) -> bytes:
    """The document: the same bytes for the same draft, in every process; the content is its body, verbatim."""
    fields: dict[str, object] = {"title": draft.title, "keywords": list(draft.tags)}
    if summary := summary_of(draft.content):
        fields["summary"] = summary
    fields |= {"kind": draft.kind.value, "source_ref": draft.source_ref}
    block = yaml.safe_dump(fields, allow_unicode=True, sort_keys=False, width=math.inf)
    return f"---\n{block}---\n{draft.content}".encode()


def summary_of(content: str) -> str | None:
    """The first sentence of the first line in which something can be seen, at most 200 characters; None without one."""
    line = next((line for line in content.splitlines() if normalise(line)), "")
    line = _HEADING.sub("", line.strip(), count=1)
    sentence = _FIRST_SENTENCE.match(line)
    summary = (sentence[0] if sentence else line)[:_MAX_SUMMARY_CHARS].strip()
    return summary if normalise(summary) else None
