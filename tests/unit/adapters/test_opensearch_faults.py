"""What OpenSearchVectorStore makes of a node that fails. The node is a script; cases are named by their id."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from botocore.credentials import Credentials
from opensearchpy import OpenSearch
from opensearchpy.connection import Connection
from opensearchpy.exceptions import ConnectionError as NoConnection
from opensearchpy.exceptions import ConnectionTimeout

from knowledge.adapters.opensearch_calls import Backoff
from knowledge.adapters.opensearch_client import opensearch_client
from knowledge.adapters.opensearch_vectors import OpenSearchVectorStore
from knowledge.errors import ConfigError, CorruptState, DependencyUnavailable
from tests.contract.builders import DOC, GENERATION, chunk

Answer = tuple[int, object] | Exception
JSON = {"content-type": "application/json"}
FIVE = [chunk(f"chunk {n}", [1, n], ordinal=n) for n in range(5)]
DOWN = NoConnection("N/A", "refused", OSError())
SLOW = ConnectionTimeout("TIMEOUT", "read timed out", OSError())


class Script(Connection):
    """Answers requests by what their path ends with, one answer after the other; the last one stays."""

    answers: Mapping[str, Iterator[Answer]]
    bodies: list[str]

    def perform_request(self, method: str, url: str, *rest: Any, **options: Any) -> Any:
        body = rest[1] if len(rest) > 1 else options.get("body")
        name = url.rpartition("/")[2]
        self.bodies.append((body or b"").decode())
        answer = next(self.answers[name])
        if isinstance(answer, Exception):
            raise answer
        status, content = answer
        text = content if isinstance(content, str) else json.dumps(content)
        if status >= 400:
            self._raise_error(status, text, "application/json")
        return status, JSON, text


def scripted(
    waits: list[float] | None = None, *, serverless: bool = False, **answers: Any
) -> tuple[OpenSearchVectorStore, list[str]]:
    """A store over such a node, and the bodies it has sent."""

    def endless(given: list[Answer]) -> Iterator[Answer]:
        yield from given
        while True:
            yield given[-1]

    # Every object of the client makes its own connection, so the script hangs on a class of its own.
    known: dict[str, list[Answer]] = {"kb": [(200, {})], **answers}
    bodies: list[str] = []
    content = {"answers": {name: endless(given) for name, given in known.items()}, "bodies": bodies}
    client = OpenSearch(hosts=["http://node"], connection_class=type("Own", (Script,), content), max_retries=0)
    backoff = Backoff(sleep=(waits if waits is not None else []).append, random=lambda: 1.0)
    return OpenSearchVectorStore(client, alias="kb", dimension=2, serverless=serverless, backoff=backoff), bodies


def bulk(*statuses: int, kind: str = "some_exception", action: str = "index") -> Answer:
    items = [
        {action: {"status": status, **({"error": {"type": kind}} if status >= 300 else {})}} for status in statuses
    ]
    return 200, {"errors": any(status >= 300 for status in statuses), "items": items}


def ordinals(body: str) -> list[int]:
    return [line["ordinal"] for line in map(json.loads, body.splitlines()) if "ordinal" in line]


def test_d05_only_the_items_that_were_refused_for_now_are_sent_again() -> None:
    waits: list[float] = []
    store, bodies = scripted(waits, _bulk=[bulk(201, 201, 429, 201, 503), bulk(201, 429), bulk(201)])
    store.write(DOC, GENERATION, "kb/a.md", FIVE)
    assert [ordinals(body) for body in bodies if body] == [[0, 1, 2, 3, 4], [2, 4], [4]]
    assert waits == [0.1, 0.2]


def test_d05_an_item_that_does_not_fit_fails_the_document_with_the_reason() -> None:
    mapping = {"kb-000001": {"mappings": {"properties": {"vector": {"dimension": 2}}}}}
    refused = bulk(201, 201, 429, 201, 400, kind="mapper_parsing_exception")
    store, _ = scripted(_bulk=[refused], _mapping=[(200, mapping)])
    with pytest.raises(CorruptState, match=r"chunk 4 .*mapper_parsing_exception.*make reindex"):
        store.write(DOC, GENERATION, "kb/a.md", FIVE)


def test_items_that_stay_refused_fail_the_write() -> None:
    store, _ = scripted(_bulk=[bulk(*[429] * 5)])
    with pytest.raises(DependencyUnavailable, match="too much to do"):
        store.write(DOC, GENERATION, "kb/a.md", FIVE)


@pytest.mark.parametrize("lost", [DOWN, SLOW, (502, "bad gateway")], ids=["down", "slow", "502"])
def test_d05_on_a_domain_a_write_whose_answer_was_lost_is_made_again_under_the_same_ids(lost: Answer) -> None:
    store, bodies = scripted(_bulk=[lost, bulk(*[200] * 5)])
    store.write(DOC, GENERATION, "kb/a.md", FIVE)
    sent = [body for body in bodies if body]
    assert len(sent) == 2
    assert sent[0] == sent[1]
    assert f'"_id":"{DOC}-{GENERATION}-4"' in sent[0]


def test_d05_on_serverless_only_what_is_missing_is_stored_after_a_lost_answer() -> None:
    waits: list[float] = []
    found = [{"_id": str(n), "_source": {"ordinal": n, "chunk_count": 5}, "sort": [n]} for n in (0, 1, 3)]
    look = {"timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": found}}
    store, bodies = scripted(waits, serverless=True, _bulk=[SLOW, bulk(201, 201)], _search=[(200, look)])
    store.write(DOC, GENERATION, "kb/a.md", FIVE)
    assert [ordinals(body) for body in bodies if "chunk_count" in body and "text" in body] == [[0, 1, 2, 3, 4], [2, 4]]
    assert waits == [60.0]


FAULTS: Mapping[str, Answer] = {
    "down": DOWN,
    "slow": SLOW,
    "too many requests": (429, {"error": {"type": "es_rejected_execution_exception"}}),
    "forbidden": (403, {"error": {"type": "security_exception"}}),
    "forbidden without a form": (403, "<html>"),
    "too large": (413, "Request Entity Too Large"),
    "failed": (500, {"error": {"type": "x"}}),
    "gateway": (504, "<html>"),
    "not json": (200, "<html>"),
    "empty": (200, {}),
    "a list": (200, []),
    "other form": (200, {"responses": [{"status": 200}]}),
    "refused inside": (200, {"responses": [{"status": 500, "error": {"type": "x"}}]}),
    "part of the shards": (200, {"responses": [{"status": 200, "timed_out": False, "_shards": {"failed": 1}}]}),
    "out of time": (200, {"responses": [{"status": 200, "timed_out": True, "_shards": {"failed": 0}}]}),
}


OPERATIONS: Mapping[str, Callable[[OpenSearchVectorStore], object]] = {
    "search": lambda store: store.search("q", [1.0, 0.0], limit=3),
    "write": lambda store: store.write(DOC, GENERATION, "kb/a.md", FIVE),
    "delete": lambda store: store.delete(DOC, GENERATION),
    "embeddings": lambda store: store.embeddings(DOC, GENERATION),
    "notes": lambda store: store.notes(),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_whatever_the_node_does_is_a_dependency_that_failed(
    fault: Answer, operation: Callable[[OpenSearchVectorStore], object]
) -> None:
    faulty = [fault]
    store, _ = scripted(_msearch=faulty, _bulk=faulty, _delete_by_query=faulty, _search=faulty, _mapping=faulty)
    with pytest.raises(DependencyUnavailable) as raised:
        operation(store)
    assert "<html>" not in str(raised.value)


def test_a_search_is_asked_again_after_a_refusal_and_not_after_a_timeout() -> None:
    empty = {"timed_out": False, "_shards": {"failed": 0}, "status": 200}
    counts = {
        "hits": {"total": {"value": 0}},
        "aggregations": {"mean_length": {"value": None}, "scripts": {"buckets": []}},
    }
    whole = {"responses": [empty | counts, *[empty | {"hits": {"hits": []}}] * 2]}
    store, bodies = scripted(_msearch=[FAULTS["too many requests"], DOWN, (200, whole)])
    assert list(store.search("?", [1.0, 0.0], limit=3).hits) == []
    assert len(bodies) == 3
    store, bodies = scripted(_msearch=[SLOW])
    with pytest.raises(DependencyUnavailable, match="in time"):
        store.search("?", [1.0, 0.0], limit=3)
    assert len(bodies) == 1


@pytest.mark.parametrize("service", ["es", "aoss"])
def test_requests_are_signed_and_carry_the_hash_of_their_content(service: Any) -> None:
    client = opensearch_client(
        "https://node.example/prefix", service=service, region="eu-west-1", credentials=Credentials("key", "secret")
    )
    connection = client.transport.get_connection()
    headers = connection.http_auth("POST", "https://node.example/prefix/kb/_search", b"{}")
    assert headers["X-Amz-Content-SHA256"] == hashlib.sha256(b"{}").hexdigest()
    assert f"/eu-west-1/{service}/aws4_request" in headers["Authorization"]
    assert (connection.host, connection.url_prefix) == ("https://node.example:443", "/prefix")
    assert (connection.timeout.connect_timeout, connection.timeout.read_timeout) == (2, 5)
    client.close()


def test_an_address_that_cannot_be_one_stops_the_start() -> None:
    for url in ("", "node:9200", "ftp://node"):
        with pytest.raises(ConfigError, match="no address"):
            opensearch_client(url)
    with pytest.raises(ConfigError, match="region"):
        opensearch_client("https://node", service="es", credentials=Credentials("key", "secret"))
