"""Catalogs of each size, made once in a run, and how a call is timed."""

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from knowledge.domain.document import KnowledgeEntry
from knowledge.domain.text import normalise
from knowledge.retrieval.catalog_index import CatalogIndex
from knowledge.retrieval.matches import Match
from tests.bench.documents import entries

_T = TypeVar("_T")

documents_of = functools.cache(entries)


@functools.cache
def index_of(count: int) -> CatalogIndex:
    """The index of that many generated documents."""
    return CatalogIndex(documents_of(count))


def answering(index: CatalogIndex) -> Callable[[str], tuple[int, Match | None]]:
    """What a lookup asks of the index: how many documents a query hits, up to 100, and the most specific of them."""

    def answer(query: str) -> tuple[int, Match | None]:
        matches = index.match(query)
        return matches.count(100), next(iter(matches.most_specific_first()), None)

    return answer


def keywords_of(documents: Iterable[KnowledgeEntry]) -> list[str]:
    """Every keyword as it is matched, once."""
    return list(dict.fromkeys(filter(None, (normalise(keyword) for entry in documents for keyword in entry.keywords))))


def times_us(
    work: Callable[[_T], object], items: Iterable[_T], clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Microseconds for each item, in their order."""
    times = []
    for item in items:
        started = clock()
        work(item)
        times.append((clock() - started) * 1e6)
    return times


def processor_times_us(work: Callable[[_T], object], items: Iterable[_T]) -> list[float]:
    """The same for work in memory that takes so long that another process may get the processor meanwhile."""
    return times_us(work, items, time.thread_time)


def p99(times: Sequence[float]) -> float:
    """The 99th percentile."""
    return sorted(times)[int(len(times) * 0.99)]
