"""Writing and removing the chunks of one generation: on a domain by ids of our own, on Serverless without.

On Serverless a document has no id of our choosing, nothing can be deleted by a query, and what is written or deleted
shows only after a while. Source: OpenSearch Service guide, "Supported operations and plugins in Amazon OpenSearch
Serverless" and "Choosing a collection type".
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from opensearchpy import OpenSearch

from knowledge.adapters.opensearch_bulk import AmbiguousBulkError, Bulk, Item, batches
from knowledge.adapters.opensearch_calls import MAX_TRIES, OPENSEARCH, Backoff, ask, readable
from knowledge.adapters.opensearch_index import Document, generation_query
from knowledge.adapters.opensearch_search import checked
from knowledge.domain.document import DocId, Generation
from knowledge.errors import DependencyUnavailable

# Chunks of one generation read in a call: with 1,024 numbers each, about 3 MB. Source: own choice.
_PAGE = 500
# Generations counted in a call. Source: own choice; OpenSearch takes up to 65,535 buckets (`search.max_buckets`).
_GENERATIONS_PAGE = 1000
# Generations whose removal is remembered. Source: own choice, about 2 MB.
_MAX_REMEMBERED = 10_000


class Generations(Protocol):
    """How chunks of one generation are stored and removed."""

    def write(self, doc_id: DocId, generation: Generation, documents: Sequence[Document]) -> None:
        """The documents are stored, each once."""

    def delete(self, doc_id: DocId, generation: Generation) -> None:
        """No chunk is left; DependencyUnavailable when that is not certain."""


def stored_chunks(
    client: OpenSearch, alias: str, backoff: Backoff, doc_id: DocId, generation: Generation, shown: Sequence[str]
) -> Iterator[Any]:
    """Every hit of that generation that a search shows, in order of ordinals; a call for each 500 of them."""
    seen: set[str] = set()
    first = 0
    while True:
        body = {
            "size": _PAGE,
            "_source": list(shown),
            "sort": ["ordinal"],
            "query": generation_query(doc_id, generation, {"range": {"ordinal": {"gte": first}}}),
        }
        answer = ask(lambda body=body: client.search(index=alias, body=body), backoff)  # type: ignore[misc]
        with readable():
            found = checked([answer])[0]["hits"]["hits"] if answer is not None else []
            new = [hit for hit in found if hit["_id"] not in seen]
        yield from new
        if len(found) < _PAGE or not new:
            return
        seen.update(hit["_id"] for hit in new)
        first = new[-1]["sort"][0]


def whole_generations(
    client: OpenSearch, alias: str, backoff: Backoff, after: DocId | None
) -> Iterator[tuple[DocId, Generation]]:
    """Every generation with as many documents as it has chunks, in order of ids; a call for each 1,000 of them."""
    sources = [{name: {"terms": {"field": name}}} for name in ("doc_id", "generation")]
    pages: Document = {"size": _GENERATIONS_PAGE, "sources": sources}
    if after is not None:
        # `~` comes after every character of a generation.
        pages["after"] = {"doc_id": after, "generation": "~"}
    while True:
        wanted = {"composite": pages, "aggs": {"chunk_count": {"max": {"field": "chunk_count"}}}}
        body = {"size": 0, "aggs": {"generations": wanted}}
        answer = ask(lambda body=body: client.search(index=alias, body=body), backoff)  # type: ignore[misc]
        if answer is None:
            return
        with readable():
            found = checked([answer])[0]["aggregations"]["generations"]
            whole = [
                (DocId(bucket["key"]["doc_id"]), Generation(bucket["key"]["generation"]))
                for bucket in found["buckets"]
                if bucket["doc_count"] >= bucket["chunk_count"]["value"]
            ]
        yield from whole
        if "after_key" not in found:
            return
        pages = pages | {"after": found["after_key"]}


@dataclass(frozen=True, slots=True)
class DomainGenerations:
    """A chunk's id says which it is, so that a write whose answer was lost can be made again."""

    client: OpenSearch
    alias: str
    backoff: Backoff

    def write(self, doc_id: DocId, generation: Generation, documents: Sequence[Document]) -> None:
        """See Generations; a call for each 4 MiB, and every search sees them when the last one returns."""
        # Without `require_alias` a write to an absent index would make one with guessed fields.
        bulk = Bulk(self.client, self.alias, self.backoff, repeatable=True, params={"require_alias": "true"})
        items = [
            Item({"index": {"_id": f"{doc_id}-{generation}-{document['ordinal']}"}}, document) for document in documents
        ]
        groups = list(batches(items))
        for group in groups:
            bulk.send(group, refresh=group is groups[-1])

    def delete(self, doc_id: DocId, generation: Generation) -> None:
        """See Generations; one call, and no later search sees them."""
        body = {"query": generation_query(doc_id, generation)}
        params = {"conflicts": "proceed", "refresh": "true"}
        for failures in range(1, MAX_TRIES + 1):
            answer = ask(
                lambda: self.client.delete_by_query(index=self.alias, body=body, params=dict(params)), self.backoff
            )
            with readable():
                # A conflict is a chunk that somebody wrote or deleted meanwhile; the next try sees which.
                if answer is None or not (answer["version_conflicts"] or answer["failures"] or answer["timed_out"]):
                    return
            self.backoff.wait(failures)
        raise DependencyUnavailable(OPENSEARCH, "could not delete every chunk")


@dataclass(frozen=True, slots=True)
class ServerlessGenerations:
    """What cannot be seen yet is not taken for gone."""

    client: OpenSearch
    alias: str
    backoff: Backoff
    visible_after_s: float
    clock: Callable[[], float]
    _empty_since: dict[tuple[DocId, Generation], float] = field(default_factory=dict)
    """When a generation was first seen without chunks; minus infinity when all of them were deleted by us."""

    def write(self, doc_id: DocId, generation: Generation, documents: Sequence[Document]) -> None:
        """See Generations; a call for each 4 MiB.

        When an answer is lost, waits until what was stored must show, and stores what is missing: never twice.
        """
        self._empty_since.pop((doc_id, generation), None)
        bulk = Bulk(self.client, self.alias, self.backoff, repeatable=False, params={})
        for group in batches([Item({"index": {}}, document) for document in documents]):
            missing = group
            for _ in range(MAX_TRIES):
                try:
                    bulk.send(missing)
                    break
                except AmbiguousBulkError:
                    self.backoff.sleep(self.visible_after_s)
                present = {hit["_source"]["ordinal"] for hit in self._look(doc_id, generation)}
                missing = [item for item in missing if item.source and item.source["ordinal"] not in present]
                if not missing:
                    break
            else:
                raise DependencyUnavailable(OPENSEARCH, "did not say whether it stored every chunk")

    def delete(self, doc_id: DocId, generation: Generation) -> None:
        """See Generations; a call to find up to 500 chunks and one to delete them.

        Raises:
            DependencyUnavailable: not every chunk was visible, or none was. The latter is believed when none is visible
                `visible_after_s` later either: whoever asks again then, in this process, gets no error.
        """
        key = (doc_id, generation)
        found = list(self._look(doc_id, generation))
        if found:
            self._delete([hit["_id"] for hit in found])
            ordinals = {hit["_source"]["ordinal"] for hit in found}
            if len(ordinals) >= max(hit["_source"]["chunk_count"] for hit in found):
                self._remember(key, -math.inf)
                return
        elif self.clock() - self._remember(key, self.clock()) >= self.visible_after_s:
            return
        raise DependencyUnavailable(OPENSEARCH, "may not show every chunk yet; delete them again later")

    def _delete(self, ids: Sequence[str]) -> None:
        bulk = Bulk(self.client, self.alias, self.backoff, repeatable=True, params={})
        for group in batches([Item({"delete": {"_id": one}}) for one in ids]):
            bulk.send(group)

    def _look(self, doc_id: DocId, generation: Generation) -> Iterator[Any]:
        shown = ("ordinal", "chunk_count")
        return stored_chunks(self.client, self.alias, self.backoff, doc_id, generation, shown)

    def _remember(self, key: tuple[DocId, Generation], since: float) -> float:
        """The earliest known moment at which that generation had no chunks."""
        earliest = min(since, self._empty_since.pop(key, math.inf))
        self._empty_since[key] = earliest
        while len(self._empty_since) > _MAX_REMEMBERED:
            del self._empty_since[next(iter(self._empty_since))]
        return earliest
