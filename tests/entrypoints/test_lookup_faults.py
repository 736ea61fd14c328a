"""A lookup over HTTP while OpenSearch is down, slow, refuses or talks nonsense; the server is real and fails so."""

import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest

from knowledge.adapters.opensearch_client import opensearch_client
from knowledge.adapters.opensearch_vectors import OpenSearchVectorStore
from knowledge.entrypoints import read_http
from tests.entrypoints.events import Context, everybody, json_event
from tests.services.world import World, markdown
from tests.unit.adapters.network import dead_url

ERROR = '{{"error": {{"type": "{}", "reason": "a foreign text"}}, "status": {}}}'


@dataclass(frozen=True)
class Fault:
    """What the server answers to everything, and what is said of it."""

    status: int
    body: str
    reason: str
    cause: str = "OpenSearch"
    budget_s: float = 5.0
    is_slow: bool = False


FAULTS: Mapping[str, Fault] = {
    "slow": Fault(200, "{}", "no answer within 0.5 s", cause="timeout", budget_s=0.5, is_slow=True),
    "429": Fault(429, ERROR.format("rejected_execution_exception", 429), "OpenSearch: has too much to do"),
    "403": Fault(
        403, ERROR.format("security_exception", 403), "OpenSearch: refused the call (403, security_exception)"
    ),
    "403 of a proxy": Fault(403, "<html>Forbidden</html>", "OpenSearch: refused the call (403, unknown)"),
    "413": Fault(413, "Request Entity Too Large", "OpenSearch: refused the call (413, unknown)"),
    "500": Fault(500, ERROR.format("null_pointer_exception", 500), "OpenSearch: failed"),
    "malformed": Fault(200, "<html>Welcome</html>", "OpenSearch: gave an answer that cannot be read"),
    "cut off": Fault(200, '{"responses": [{"status": 200, "hits"', "OpenSearch: gave an answer that cannot be read"),
    "of another form": Fault(200, '{"responses": [{"status": 200}]}', "OpenSearch: gave an answer that cannot be read"),
}
DOWN = Fault(0, "", "OpenSearch: could not be reached")


@contextmanager
def failing(fault: Fault) -> Iterator[str]:
    """The address of a server that answers every request alike."""
    stopped = Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if fault.is_slow:
                stopped.wait(30)
            self.send_response(fault.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(fault.body)))
            self.end_headers()
            self.wfile.write(fault.body.encode())

        do_GET = do_POST = _answer

        def log_message(self, *_: object) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # A client that gave up.

    server = Server(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()


def look_up(url: str, budget_s: float, query: str) -> tuple[Any, float]:
    """The answer of the reading function with its vectors at `url`, and after how many seconds it came."""
    client = opensearch_client(url)
    world = World(vectors=lambda _: OpenSearchVectorStore(client, alias="kb", dimension=256))
    for name in ("a", "b"):
        world.drop(f"knowledge_base/api/{name}.md", markdown("timeout", body=f"Document {name}."))
    index, lookup = world.instance(semantic_timeout_s=budget_s)
    index.load()
    handler = read_http.build_handler(lambda: read_http.ReadServices(lookup, world.reader), everybody)
    started = time.monotonic()
    answer = handler(json_event("POST", "/lookup", {"query": query}), Context())
    elapsed_s = time.monotonic() - started
    client.close()
    assert answer["statusCode"] == 200
    return json.loads(answer["body"]), elapsed_s


def metrics_in(output: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [line for line in lines if "_aws" in line]


def check(
    url: str, fault: Fault, query: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Degraded, in time, with the cause in log and metric and the query in neither; returns the answer."""
    caplog.set_level(logging.INFO)
    body, elapsed_s = look_up(url, fault.budget_s, query)
    assert body["degraded"] == ["semantic_L1"]
    assert body["supplement"] is None
    # The exact tier and the answer take their part too; another half second is what a loaded machine may need.
    assert elapsed_s < fault.budget_s + 0.5
    (logged,) = [vars(record) for record in caplog.records if record.message == "semantic_tier_failed"]
    assert (logged["cause"], logged["reason"]) == (fault.cause, fault.reason)
    (metric,) = metrics_in(capsys.readouterr().out)
    assert metric["TierFailed"] == [1.0]
    assert (metric["tier"], metric["cause"], metric["reason"]) == ("semantic_L1", fault.cause, fault.reason)
    (described,) = metric["_aws"]["CloudWatchMetrics"]
    assert (described["Namespace"], described["Dimensions"]) == ("KnowledgeBase", [["tier", "cause"]])
    # The client's trace is nobody's log: it is written only for those who hang a handler on it, as pytest does.
    records = [vars(record) for record in caplog.records if record.name != "opensearchpy.trace"]
    assert not any("zeppelin" in str(record) for record in records)
    return body


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_an_uncertain_exact_answer_is_given_whatever_opensearch_does_D15(
    fault: Fault, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with failing(fault) as url:
        body = check(url, fault, "a timeout on the zeppelin", caplog, capsys)
    assert (body["found"], body["primary"]["source"]) == (True, "knowledge_base/api/a.md")
    assert body["primary"]["confidence"] == "low"


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_query_without_a_keyword_is_answered_in_time_whatever_opensearch_does_D15(
    fault: Fault, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with failing(fault) as url:
        body = check(url, fault, "where is the zeppelin", caplog, capsys)
    assert (body["found"], body["primary"]) == (False, None)


@pytest.mark.parametrize(("query", "found"), [("a timeout on the zeppelin", True), ("where is the zeppelin", False)])
def test_lookups_are_answered_while_opensearch_is_down_D15(
    query: str, found: bool, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(dead_url(), DOWN, query, caplog, capsys)["found"] is found


def test_a_certain_exact_answer_does_not_notice_that_opensearch_is_down_D13(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.WARNING)
    client = opensearch_client(dead_url())
    world = World(vectors=lambda _: OpenSearchVectorStore(client, alias="kb", dimension=256))
    world.drop("knowledge_base/api/a.md", markdown("ERR_77"))
    handler = read_http.build_handler(lambda: read_http.ReadServices(world.lookup, world.reader), everybody)
    body = json.loads(handler(json_event("POST", "/lookup", {"query": "what is ERR_77"}), Context())["body"])
    client.close()
    assert body["primary"]["confidence"] == "high"
    assert "degraded" not in body
    assert caplog.records == []
    assert metrics_in(capsys.readouterr().out) == []
