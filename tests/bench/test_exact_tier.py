"""The exact tier in memory: matching whole keywords and parts of them, and changing, as the catalog grows."""

import statistics
import time
from collections import defaultdict
from collections.abc import Iterable

import pytest
from daachorse import CharwiseDoubleArrayAhoCorasick

from knowledge.domain.document import KnowledgeEntry
from knowledge.domain.text import normalise
from knowledge.retrieval.catalog_index import CatalogIndex
from tests.bench.documents import parts_of_keywords, queries
from tests.bench.figures import SIZES, Figures
from tests.bench.measuring import (
    answering,
    documents_of,
    index_of,
    keywords_of,
    p99,
    processor_times_us,
    times_us,
)

pytestmark = [pytest.mark.bench, pytest.mark.parametrize("count", SIZES)]

# Changes are measured one by one until they took this long, so that dear ones do not take minutes.
MOST_MS_OF_CHANGES = 3_000.0


def test_matching_against_the_automaton_and_the_plain_scan(count: int, figures: Figures) -> None:
    documents, index = documents_of(count), index_of(count)
    keywords = keywords_of(documents)
    assert len(keywords) == 5 * count
    asked = queries(3_000, documents)
    answered = [len(index.match(query)) for query in asked]  # warms up, too
    assert answered.count(0) < len(asked) / 2

    automaton, texts = CharwiseDoubleArrayAhoCorasick(keywords), list(map(normalise, asked))
    match, raw = times_us(index.match, asked), times_us(automaton.find_overlapping, texts)
    normalised, answer = times_us(normalise, asked), processor_times_us(answering(index), asked)
    scan = times_us(lambda query: plain_scan(keywords, query), asked[:30])
    figures.record(
        count,
        match_mean_us=statistics.mean(match),
        match_median_us=statistics.median(match),
        match_p99_us=p99(match),
        normalise_mean_us=statistics.mean(normalised),
        automaton_mean_us=statistics.mean(raw),
        automaton_median_us=statistics.median(raw),
        automaton_p99_us=p99(raw),
        plain_scan_mean_us=statistics.mean(scan),
        answer_mean_us=statistics.mean(answer),
        answer_p99_us=p99(answer),
        match_to_automaton=p99(match) / p99(raw),
        plain_scan_to_match=statistics.mean(scan) / statistics.mean(match),
    )


def plain_scan(keywords: Iterable[str], query: str) -> list[str]:
    text = normalise(query)
    return [keyword for keyword in keywords if keyword in text]


def test_parts_of_keywords_against_a_scan_of_them(count: int, figures: Figures) -> None:
    documents, index = documents_of(count), index_of(count)
    asked = parts_of_keywords(1_000, documents)
    hits = [len(index.match(query)) for query in asked]
    times = processor_times_us(answering(index), asked)
    groups: dict[str, list[float]] = defaultdict(list)
    for hit_count, elapsed_us in zip(hits, times, strict=True):
        groups["to_10" if hit_count <= 10 else "to_1000" if hit_count <= 1000 else "over_1000"].append(elapsed_us)
    keywords = keywords_of(documents)
    scan = processor_times_us(lambda query: plain_scan_for_a_part(keywords, query), asked[:30])
    figures.record(
        count,
        partial_mean_us=statistics.mean(times),
        partial_p99_us=p99(times),
        partial_scan_mean_us=statistics.mean(scan),
        partial_scan_to_partial=statistics.mean(scan) / statistics.mean(times),
        **{f"partial_p99_us_{name}_hits": p99(group) for name, group in groups.items()},
    )


def plain_scan_for_a_part(keywords: Iterable[str], query: str) -> list[str]:
    text = normalise(query)
    return [keyword for keyword in keywords if text in keyword]


def test_one_change_against_building_anew(count: int, figures: Figures) -> None:
    documents = documents_of(count)
    started = time.perf_counter()
    index = CatalogIndex(documents)
    build_ms = (time.perf_counter() - started) * 1000
    step = count // 100
    changed = [
        KnowledgeEntry(entry.file_path, entry.title, (*entry.keywords[1:], f"NEW-{number:04}"), entry.summary)
        for number, entry in enumerate(documents[::step])
    ]
    times: list[float] = []
    for entry in changed:
        if sum(times) > MOST_MS_OF_CHANGES:
            break
        started = time.perf_counter()
        index = index.changed({entry.file_path: entry})
        times.append((time.perf_counter() - started) * 1000)
    index = index.changed({entry.file_path: entry for entry in changed})
    change_ms = statistics.median(times)
    figures.record(
        count,
        build_ms=build_ms,
        change_ms=change_ms,
        build_to_change=build_ms / change_ms,
        changed_match_p99_us=p99(processor_times_us(answering(index), queries(3_000, documents))),
    )
    assert len(index) == count
    assert [match.entry.file_path for match in index.match("NEW-0007")] == [changed[7].file_path]
    assert not index.match(documents[0].keywords[0])
