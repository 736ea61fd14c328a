"""The exact tier on real documentation: error codes find their pages, and unrelated queries find nothing certain."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from daachorse import CharwiseDoubleArrayAhoCorasick

from knowledge.domain.document import KnowledgeEntry
from knowledge.domain.lookup import Confidence
from knowledge.domain.text import is_word_character, normalise
from knowledge.retrieval.catalog_index import CatalogIndex
from tests.bench.figures import Figures
from tests.bench.measuring import answering, keywords_of, p99, times_us
from tests.bench.real_sets import Base, Questions, load_bases, load_questions
from tests.bench.test_loading import loaded
from tests.services.world import World

pytestmark = pytest.mark.bench


def test_codes_find_their_pages_and_unrelated_queries_nothing_certain(
    set_folders: list[Path], figures: Figures, tmp_path: Path
) -> None:
    bases, questions = load_bases(set_folders), load_questions(set_folders)
    if not bases:
        pytest.skip("none of the sets is a base: a folder with corpus.jsonl and without queries.jsonl")
    for base in bases:
        measure_as_declared(base, questions, figures, tmp_path)
        measure_from_files(base, questions, figures)


def measure_as_declared(base: Base, questions: Questions, figures: Figures, folder: Path) -> None:
    """The exact tier alone, over keywords as the set lists them, commas inside them included."""
    entries = [KnowledgeEntry(page.path, page.title, page.keywords, page.text) for page in base.pages]
    index, automaton = CatalogIndex(entries), CharwiseDoubleArrayAhoCorasick(keywords_of(entries))

    def answer(query: str) -> Answer:
        count, match = answering(index)(query)
        return Answer(match.entry.file_path, count == 1 and not match.weak) if match else Answer(None, False)

    codes = messages_of(base, questions)
    asked = [*codes, *codes.values(), *questions.unrelated]
    matching = times_us(index.match, asked)
    raw = times_us(lambda text: list(automaton.find_overlapping(text)), list(map(normalise, asked)))
    load = loaded(index, folder)
    figures.record(
        base.name,
        real_match_mean_us=statistics.mean(matching),
        real_match_p99_us=p99(matching),
        real_automaton_mean_us=statistics.mean(raw),
        real_automaton_p99_us=p99(raw),
        real_load_s=load.elapsed_s,
        real_load_resident_mb=load.resident_mb,
        **{f"real_{name}": share for name, share in shares(answer, base, questions).items()},
    )
    if questions.unrelated:
        hits = [hits_on_words(automaton, query) for query in questions.unrelated]
        figures.record(base.name, real_unrelated_hit_share=statistics.mean(hits))


def measure_from_files(base: Base, questions: Questions, figures: Figures) -> None:
    """The product's own lookup over the set's files, in which a comma parts keywords."""
    world = World()
    for page in base.pages:
        world.drop(page.path, page.markdown())
    started = time.perf_counter()
    world.index.load()
    scan_s = time.perf_counter() - started
    # A page that declares thousands of keywords has a larger block than is read as frontmatter.
    assert len(world.index.entries) >= 0.99 * len(base.pages)

    def answer(query: str) -> Answer:
        primary = world.ask(query).primary
        return Answer(primary.source, primary.confidence is Confidence.HIGH) if primary else Answer(None, False)

    of_files = {f"real_files_{name}": share for name, share in shares(answer, base, questions).items()}
    figures.record(base.name, real_files_scan_s=scan_s, **of_files)


@dataclass(frozen=True, slots=True)
class Answer:
    """The primary's path, and whether it came with high confidence."""

    path: str | None
    is_certain: bool


def shares(answer: Callable[[str], Answer], base: Base, questions: Questions) -> dict[str, float]:
    """How many codes have their page as primary, and how many unrelated queries a certain one."""
    found, pages, messages = {}, base.pages_of_codes, messages_of(base, questions)

    def has_page(code: str, query: str) -> bool:
        """Any page that declares the code will do: where there are two, index order decides."""
        return answer(query).path in {page.path for page in pages[code]}

    if messages:
        found["codes_alone_share"] = statistics.mean(has_page(code, code) for code in messages)
        found["codes_in_message_share"] = statistics.mean(has_page(*asked) for asked in messages.items())
    if questions.unrelated:
        found["unrelated_certain_share"] = statistics.mean(answer(query).is_certain for query in questions.unrelated)
    return found


def messages_of(base: Base, questions: Questions) -> dict[str, str]:
    """What a compiler prints, by error code."""
    return {code: questions.message(code, pages[0]) for code, pages in base.pages_of_codes.items()}


def hits_on_words(automaton: CharwiseDoubleArrayAhoCorasick, query: str) -> bool:
    """The baseline: some keyword is in the query, no letter or digit touching it."""
    text = f" {normalise(query)} "
    return any(
        not is_word_character(text[start - 1]) and not is_word_character(text[end])
        for start, end, _ in automaton.find_overlapping(text)
        if start > 0 and end < len(text)
    )
