"""Real documentation and real queries, read from the folders that a run names. docs/performance.md has their form."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

# What compilers, linkers and assemblers call their errors: `C2065`, `LNK2001`. Source: the pages of the set l0_cppdocs.
_ERROR_CODE = re.compile(r"[A-Z]{1,4}[0-9]{3,5}")
_A_MESSAGE = "undeclared identifier"


@dataclass(frozen=True, slots=True)
class Page:
    """One document of a base."""

    path: str
    title: str
    keywords: tuple[str, ...]
    text: str

    def markdown(self) -> bytes:
        """The file as its author would write it."""
        declared = {"title": self.title, "keywords": list(self.keywords), "summary": self.text}
        return f"---\n{yaml.safe_dump(declared, allow_unicode=True, sort_keys=False)}---\n{self.text}\n".encode()


@dataclass(frozen=True, slots=True)
class Base:
    """The documents of one folder."""

    name: str
    pages: Sequence[Page]

    @property
    def pages_of_codes(self) -> Mapping[str, Sequence[Page]]:
        """Which pages declare each error code."""
        found: dict[str, list[Page]] = {}
        for page in self.pages:
            for keyword in filter(_ERROR_CODE.fullmatch, page.keywords):
                found.setdefault(keyword, []).append(page)
        return found


@dataclass(frozen=True, slots=True)
class Questions:
    """The queries of all folders that have some."""

    messages: Mapping[str, str]
    """What is said beside an error code, by the code."""
    unrelated: Sequence[str]

    def message(self, code: str, page: Page) -> str:
        """`code` as a compiler reports it: with the message the queries have for it, else with what its page says.

        The overview pages of many codes name other codes; a message names one.
        """
        own = page.text if set(_ERROR_CODE.findall(page.text)) <= {code} else _A_MESSAGE
        return f"main.cpp(12): error {code}: {self.messages.get(code, own)}"


def load_bases(folders: Iterable[Path]) -> list[Base]:
    """The folders that hold documents and no queries."""
    return [
        Base(
            folder.name,
            [
                Page(
                    f"knowledge_base/{row['id'].removesuffix('.md')}.md",
                    row.get("title", ""),
                    tuple(dict.fromkeys([*row.get("keywords", ()), *row.get("f1_keywords", ())])),
                    row["text"],
                )
                for row in _rows(folder / "corpus.jsonl")
            ],
        )
        for folder in folders
        if not (folder / "queries.jsonl").exists()
    ]


def load_questions(folders: Iterable[Path]) -> Questions:
    """What the folders with queries ask."""
    rows = [row for folder in folders for row in _rows(folder / "queries.jsonl")]
    messages = {row["code"]: row["text"] for row in rows if "code" in row}
    return Questions(messages, [row["text"] for row in rows if "code" not in row])


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        yield from map(json.loads, filter(str.strip, path.read_text(encoding="utf-8").split("\n")))
