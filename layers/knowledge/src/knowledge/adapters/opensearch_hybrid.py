"""The round trip of a search in OpenSearch: one `_msearch`."""

from collections.abc import Sequence

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
from knowledge.adapters.opensearch_index import Document, Engine
from knowledge.adapters.opensearch_search import Question, checked, counts_in, result_of, searches
from knowledge.ports import SearchResult


class HybridSearch:
    """Searches one alias; thread-safe."""

    def __init__(self, client: OpenSearch, alias: str, engine: Engine, backoff: Backoff) -> None:
        """Makes no call."""
        self._client = client
        self._alias = alias
        self._engine = engine
        self._backoff = backoff

    def run(self, question: Question) -> SearchResult:
        """The candidates; one call.

        Raises:
            IndexAbsentError, UnfitSearchError: stay inside the adapter.
            DependencyUnavailable: OpenSearch failed, or answered for a part of the index only.
        """
        lines = [line for body in searches(question) for line in ({}, body)]
        with readable():
            try:
                answers = checked(self._answers(lines))
            except IndexAbsentError:
                # A rebuilt index may have taken its place between the lookup of the alias and the search.
                answers = checked(self._answers(lines))
            return result_of(question, counts_in(answers[0], question.words), answers[1:], self._engine)

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
