"""Takes a document apart into frontmatter and body. Never raises, and never loses a character of the body."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from frontmatter.default_handlers import YAMLHandler

from knowledge.domain.document import Frontmatter, ParsedDocument
from knowledge.parsing.declared import declared
from knowledge.parsing.diagnosis import cause_of, looks_like_keys
from knowledge.parsing.yaml_block import Block, load_block
from knowledge.parsing.yaml_values import BlockError, Note

logger = logging.getLogger(__name__)

BYTE_ORDER_MARK = "\ufeff"
# Enough to see what is wrong with a block; a generated file can have thousands. Source: own choice.
MAX_PROBLEMS = 20

_IGNORED = "frontmatter_ignored"
_FIELD_IGNORED = "frontmatter_field_ignored"

# Line ends are those of CommonMark 0.31, section 2.1: LF, CR LF, and the CR of old Macs.
_LINE_END = re.compile(r"\r\n?|\n")
_REST = r"[^\S\r\n]*(?:\r\n?|\n)"
_FIRST_LINE = r"\A(?:\s*[\r\n])?"
_OPENER = re.compile(rf"{_FIRST_LINE}-{{3,}}{_REST}")
_CLOSER = re.compile(rf"(?<![^\r\n])(?:-{{3,}}|\.{{3}})(?:{_REST}|[^\S\r\n]*\Z)")
_TOML = re.compile(rf"{_FIRST_LINE}\+{{3}}{_REST}")
_MAY_BECOME_OPENER = re.compile(r"\s*-*[^\S\r\n]*\Z")
_FIRST_PARAGRAPH = re.compile(r"\s*(?:[^\r\n]*\S[^\r\n]*(?:\r\n?|\n|\Z)){0,50}")


class FrontmatterHandler(YAMLHandler):
    """python-frontmatter's YAML handler with delimiters as people type them and our limits on the YAML.

    The opening line is the first that is not blank. The closing one is three dashes or dots. Both may end in blanks,
    and every kind of line end counts.
    """

    FM_BOUNDARY = _OPENER

    def split(self, text: str) -> tuple[str, str]:
        """The block between the delimiters and everything after the closing line. Raises ValueError without one."""
        opener = _OPENER.match(text)
        closer = _CLOSER.search(text, opener.end()) if opener else None
        if opener is None or closer is None:
            raise ValueError("no block, or one that is not closed")
        return text[opener.end() : closer.start()], text[closer.end() :]

    def load(self, fm: str, **kwargs: object) -> Block | None:  # type: ignore[override]
        """The mapping in `fm`, None when it is one scalar or nothing. Raises BlockError."""
        return load_block(fm)


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why something was ignored; lines and columns count from 1, as editors do."""

    event: str
    line: int
    column: int | None
    reason: str

    def sentence(self) -> str:
        place = f"line {self.line}" + (f", column {self.column}" if self.column else "")
        if self.event == _IGNORED:
            return f"The frontmatter is ignored: {place}: {self.reason}."
        return f"Frontmatter, {place}: {self.reason}."


class FrontmatterParser:
    """Reads the YAML block at the top of a document. Holds no state; one instance serves every thread."""

    def __init__(self, *, log_problems: bool = True) -> None:
        """`log_problems=False` is for callers that only look at documents whose problems are logged elsewhere."""
        self._handler = FrontmatterHandler()
        self._log_problems = log_problems

    def parse(self, content: str, *, path: str = "<document>") -> Frontmatter | None:
        """The frontmatter, or None when there is none that can be used; problems are logged as `read` does."""
        return self.read(content, path=path).frontmatter

    def has_frontmatter(self, content: str) -> bool:
        """True when `parse` gives one. Logs nothing."""
        return self._take_apart(content)[0].frontmatter is not None

    def read(self, content: str, *, path: str = "<document>") -> ParsedDocument:
        """The document taken apart. Each warning is a sentence for a person, and is logged under `path` as well.

        Without usable frontmatter the body is the whole text. A byte order mark belongs to neither part. There are at
        most MAX_PROBLEMS warnings; the last one says how many it stands for.
        """
        parsed, problems = self._take_apart(content)
        for problem in problems if self._log_problems else ():
            logger.warning(problem.event, extra={"path": path, "line": problem.line, "reason": problem.reason})
        return replace(parsed, warnings=tuple(problem.sentence() for problem in problems))

    def _take_apart(self, content: str) -> tuple[ParsedDocument, list[_Problem]]:
        text = content.lstrip(BYTE_ORDER_MARK)
        if not self._handler.detect(text):
            return ParsedDocument(None, text), _toml_problem(text)
        start = _block_start(text)
        try:
            source, body = self._handler.split(text)
        except ValueError:
            return ParsedDocument(None, text), _unclosed_problem(text, start)
        failure = BlockError("the block is not a mapping of keys")
        try:
            block = self._handler.load(source)
        except BlockError as error:
            block, failure = None, error
        if block is None:
            problems = _block_problem(text, start, source, failure)
            # Without a problem it is prose between two rules.
            return ParsedDocument(None, text, rejected_chars=len(text) - len(body) if problems else 0), problems
        frontmatter, notes = declared(block)
        problems = [_problem_at(text, start + note.index, note.reason, _FIELD_IGNORED) for note in _listed(notes)]
        return ParsedDocument(frontmatter, body), problems


def frontmatter_is_complete(head: str) -> bool:
    """True when the frontmatter of a file that begins with `head` is wholly inside `head`, or there is none.

    False asks for more of the file. It may be a false alarm, as for prose after a rule; True never misses a block that
    closes later. Decode the first bytes with errors="ignore": the last character may be cut.
    """
    text = head.lstrip(BYTE_ORDER_MARK)
    if _MAY_BECOME_OPENER.match(text):
        return False
    opener = _OPENER.match(text)
    if opener is None:
        return True
    closer = _CLOSER.search(text, opener.end())
    return closer is not None and closer[0].endswith(("\r", "\n"))


def _block_start(text: str) -> int:
    opener = _OPENER.match(text)
    return opener.end() if opener else 0


def _opener_line(text: str, start: int) -> int:
    return len(_LINE_END.findall(text, 0, start))


def _problem_at(text: str, index: int, reason: str, event: str) -> _Problem:
    before = text[:index]
    line_start = max(before.rfind("\n"), before.rfind("\r")) + 1
    return _Problem(event, len(_LINE_END.findall(before)) + 1, index - line_start + 1, reason)


def _listed(notes: Sequence[Note]) -> list[Note]:
    """The notes from top to bottom; of too many the first ones, and one that counts the others."""
    ordered = sorted(notes, key=lambda note: note.index)
    if len(ordered) > MAX_PROBLEMS:
        others = ordered[MAX_PROBLEMS - 1 :]
        ordered[MAX_PROBLEMS - 1 :] = [Note(others[0].index, f"{len(others)} more problems from here on")]
    return ordered


def _toml_problem(text: str) -> list[_Problem]:
    toml = _TOML.match(text)
    if toml is None:
        return []
    reason = "TOML between +++ lines is not read; write YAML between --- lines"
    return [_Problem(_IGNORED, _opener_line(text, toml.end()), None, reason)]


def _unclosed_problem(text: str, start: int) -> list[_Problem]:
    """A rule on top of prose opens nothing: only what begins like a block is worth a warning."""
    beginning = _FIRST_PARAGRAPH.match(text, start)
    if beginning is None or not looks_like_keys(beginning[0]):
        return []
    reason = "the block that begins here is not closed by a line of three dashes"
    return [_Problem(_IGNORED, _opener_line(text, start), None, reason)]


def _block_problem(text: str, start: int, source: str, error: BlockError) -> list[_Problem]:
    """The likely cause where one can be seen, else what the loader said; nothing for prose between two rules."""
    cause = cause_of(source, before=error.index)
    if cause is not None:
        return [_problem_at(text, start + cause.index, cause.reason, _IGNORED)]
    if not (error.is_data or looks_like_keys(source)):
        return []
    if error.index is None:
        return [_Problem(_IGNORED, _opener_line(text, start), None, error.reason)]
    return [_problem_at(text, start + error.index, error.reason, _IGNORED)]
