"""The round trips of a search in OpenSearch: one `_msearch`, and now and then another for the languages' means."""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from opensearchpy import OpenSearch
from opensearchpy.exceptions import TransportError

from knowledge.adapters.opensearch_calls import (
    Backoff,
    IndexAbsentError,
    ask,
    error_type,
    is_retriable_status,
    readable,
)
from knowledge.adapters.opensearch_index import SPACED, UNSPACED, Document, Engine, script_of, unpack
from knowledge.adapters.opensearch_nearness import CentredQuery, mean
from knowledge.adapters.opensearch_search import (
    Counts,
    Question,
    checked,
    counts_in,
    result_of,
    searches,
)
from knowledge.ports import SearchResult, Vector

# A mean over hundreds of chunks hardly moves in that time. Source: own choice.
_MEANS_KEPT_S = 600.0
# Chunks of each language of which the mean is taken: a twentieth as far from the mean of all as a single chunk is.
# Source: own choice.
_SAMPLE = 400


class HybridSearch:
    """Searches one alias; thread-safe."""

    def __init__(
        self, client: OpenSearch, alias: str, engine: Engine, backoff: Backoff, clock: Callable[[], float]
    ) -> None:
        """Makes no call; `clock` gives monotonic seconds."""
        self._client = client
        self._alias = alias
        self._engine = engine
        self._backoff = backoff
        self._clock = clock
        self._lock = Lock()
        self._means: tuple[float, Mapping[str, Vector]] | None = None

    def run(self, question: Question) -> SearchResult:
        """The candidates; one call. In a base of two languages, every ten minutes, two more.

        Raises:
            IndexAbsentError, UnfitSearchError: stay inside the adapter.
            DependencyUnavailable: OpenSearch failed, or answered for a part of the index only.
        """
        means = self._known_means()
        result, counts = self._search(question, means)
        if counts.has_two_languages == (means is not None):
            return result
        result, _ = self._search(question, self._load_means() if counts.has_two_languages else None)
        return result

    def forget_means(self) -> None:
        """The next search in a base of two languages takes them anew."""
        with self._lock:
            self._means = None

    def _search(self, question: Question, means: Mapping[str, Vector] | None) -> tuple[SearchResult, Counts]:
        centred = CentredQuery.of(question.vector, script_of(question.query), means) if means else None
        answers = self._msearch(searches(question, centred))
        with readable():
            counts = counts_in(answers[0], question.words)
            return result_of(question, counts, answers[1:], self._engine, centred), counts

    def _msearch(self, bodies: Sequence[Document]) -> Sequence[Document]:
        lines = [line for body in bodies for line in ({}, body)]
        with readable():
            try:
                return checked(self._answers(lines))
            except IndexAbsentError:
                # A rebuilt index may have taken its place between the lookup of the alias and the search.
                return checked(self._answers(lines))

    def _answers(self, lines: Sequence[Document]) -> Sequence[Document]:
        def call() -> Sequence[Document]:
            answers: Sequence[Document] = self._client.msearch(index=self._alias, body=list(lines))["responses"]
            for answer in answers:
                # One search of several can be refused for now, as a call can: its shard is still starting.
                if is_retriable_status(answer["status"]):
                    raise TransportError(answer["status"], error_type(answer["error"]), {"error": answer["error"]})
            return answers

        answers: Sequence[Document] | None = ask(call, self._backoff)
        if answers is None:
            raise IndexAbsentError
        return answers

    def _known_means(self) -> Mapping[str, Vector] | None:
        with self._lock:
            if self._means is None or self._clock() - self._means[0] >= _MEANS_KEPT_S:
                return None
            return self._means[1]

    def _load_means(self) -> Mapping[str, Vector]:
        answers = self._msearch(_samples())
        with readable():
            means = _means_in(answers)
        with self._lock:
            self._means = (self._clock(), means)
        return means


def _samples() -> list[Document]:
    """The bodies of an `_msearch` for chunks of each kind of script, taken at random but the same ones every time."""
    chance = {"seed": 1, "field": "content_hash"}
    return [
        {
            "size": _SAMPLE,
            "_source": ["embedding"],
            "query": {
                "function_score": {
                    "query": {"term": {"script": script}},
                    "random_score": chance,
                    "boost_mode": "replace",
                }
            },
        }
        for script in (SPACED, UNSPACED)
    ]


def _means_in(answers: Sequence[Document]) -> Mapping[str, Vector]:
    """The mean vector by script, from what `_samples` found."""
    return {
        script: mean([unpack(hit["_source"]["embedding"]) for hit in answer["hits"]["hits"]])
        for script, answer in zip((SPACED, UNSPACED), answers, strict=True)
    }
