"""OpenSearch Serverless as far as a client can tell, in front of a real node.

Refuses what Serverless refuses, shows writes only after a while, asks for signature and content hash. Source:
OpenSearch Service guide, "Supported operations and plugins in Amazon OpenSearch Serverless". The node has no engine
`faiss`: the stand-in accepts that one alone and gives the node `lucene`, whose inner product scores alike.
"""

import hashlib
import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import urllib3

from knowledge.domain.document import DocId, Generation, Json
from knowledge.ports import EmbeddedChunk, RebuildableVectorStore, SearchResult, Vector

_INDEX = r"/[^/_][^/]*"
_SUPPORTED = re.compile(
    rf"PUT {_INDEX}|GET {_INDEX}|HEAD {_INDEX}|DELETE {_INDEX}|(GET|PUT|POST) {_INDEX}/_mapping|HEAD /_alias/[^/]+"
    rf"|POST /_aliases|POST ({_INDEX})?/_bulk|(GET|POST) ({_INDEX})?/(_search|_msearch|_count)"
)


class Refused(Exception):
    """What Serverless answers with status, type and reason."""


class Standin:
    """The server; `url` is where it answers."""

    def __init__(self, node_url: str, *, visible_after_s: float) -> None:
        self.node_url = node_url
        self.visible_after_s = visible_after_s
        self.lose_bulk_answers = 0
        """So many of the next bulk requests take effect without their answer arriving."""
        self.refuse_items: deque[Mapping[int, tuple[int, str]]] = deque()
        """For each of the next bulk requests: status and type of error by the place of an item that is not stored."""
        self.requests: list[str] = []
        self._node = urllib3.PoolManager(maxsize=32)
        self._unseen = 0
        self._changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def serving(self) -> Iterator["Standin"]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield self
        finally:
            self.settle()
            self._server.shutdown()
            self._server.server_close()
            thread.join()
            self._node.clear()

    def settle(self) -> None:
        """Whatever has been written or deleted shows."""
        with self._changed:
            self._changed.wait_for(lambda: self._unseen == 0, timeout=30)

    def answer(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, str, bytes] | None:
        """Status, content type and body; None when the answer gets lost."""
        path, _, query = target.partition("?")
        self.requests.append(f"{method} {path}")
        try:
            _check_signature(headers, body)
            if not _SUPPORTED.fullmatch(f"{method} {path}"):
                raise Refused(404, "not_found", f"{method} {path} is not supported")
            if "refresh" in query or "require_alias" in query:
                raise Refused(400, "illegal_argument_exception", f"{query} is not supported")
            if method == "PUT" and path.count("/") == 1:
                body = _index_for_the_node(body)
            if path.endswith("/_bulk"):
                _check_bulk(body)
        except Refused as refusal:
            status, kind, reason = refusal.args
            error = {"type": kind, "reason": reason, "root_cause": [{"type": kind, "reason": reason}]}
            return status, "application/json", json.dumps({"error": error, "status": status}).encode()
        refused = self.refuse_items.popleft() if path.endswith("/_bulk") and self.refuse_items else {}
        body = _without_items(body, refused)
        found = self._node.request(
            method, self.node_url + target, body=body or None, headers={"Content-Type": "application/json"}
        )
        if path.endswith("/_bulk") and found.status < 300:
            self._show_later(path.removesuffix("/_bulk"))
            if self.lose_bulk_answers:
                self.lose_bulk_answers -= 1
                return None
        data = _with_refusals(found.data, refused) if refused else found.data
        return found.status, found.headers.get("Content-Type", "application/json"), data

    def _show_later(self, index: str) -> None:
        with self._changed:
            self._unseen += 1

        def show() -> None:
            self._node.request("POST", f"{self.node_url}{index}/_refresh")
            with self._changed:
                self._unseen -= 1
                self._changed.notify_all()

        threading.Timer(self.visible_after_s, show).start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        standin = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                answer = standin.answer(self.command, self.path, dict(self.headers.items()), body)
                if answer is None:
                    self.close_connection = True
                    return
                status, content_type, content = answer
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve

            def log_message(self, *_: object) -> None: ...

        return Handler


def _check_signature(headers: Mapping[str, str], body: bytes) -> None:
    lowered = {name.lower(): value for name, value in headers.items()}
    if lowered.get("x-amz-content-sha256") != hashlib.sha256(body).hexdigest():
        raise Refused(403, "security_exception", "x-amz-content-sha256 is missing or wrong")
    if "/aoss/aws4_request" not in lowered.get("authorization", ""):
        raise Refused(403, "security_exception", "not signed for aoss")


def _index_for_the_node(body: bytes) -> bytes:
    definition = json.loads(body)
    method = definition["mappings"]["properties"]["vector"]["method"]
    if method["engine"] != "faiss":
        raise Refused(400, "illegal_argument_exception", f"engine {method['engine']} is not supported")
    index = definition["settings"]["index"]
    if refused := index.keys() & {"number_of_shards", "number_of_replicas", "refresh_interval"}:
        raise Refused(400, "illegal_argument_exception", f"unknown settings {sorted(refused)}")
    method["engine"] = "lucene"
    index["refresh_interval"] = "-1"
    return json.dumps(definition).encode()


def _check_bulk(body: bytes) -> None:
    lines = iter(body.splitlines())
    for line in lines:
        ((name, action),) = json.loads(line).items()
        if name != "delete":
            next(lines)
            if "_id" in action:
                raise Refused(400, "illegal_argument_exception", "Document ID is not supported in create/index request")


def _without_items(body: bytes, refused: Mapping[int, object]) -> bytes:
    """A bulk of two lines each, without the items at those places."""
    if not refused:
        return body
    lines = body.splitlines(keepends=True)
    return b"".join(line for number, line in enumerate(lines) if number // 2 not in refused)


def _with_refusals(answer: bytes, refused: Mapping[int, tuple[int, str]]) -> bytes:
    """The answer to the whole bulk; OpenSearch gives it with status 200."""
    whole = json.loads(answer)
    for place, (status, kind) in sorted(refused.items()):
        whole["items"].insert(place, {"index": {"status": status, "error": {"type": kind, "reason": "refused"}}})
    return json.dumps(whole | {"errors": True}).encode()


def eventually(check: Callable[[], bool], *, within_s: float = 10) -> None:
    """Returns as soon as `check` holds; fails when it never does."""
    deadline = time.monotonic() + within_s
    while not check():
        assert time.monotonic() < deadline, "it never became true"
        time.sleep(0.05)


class Settled:
    """A vector store whose writes and deletes return once they show, for tests of what comes after."""

    def __init__(self, store: RebuildableVectorStore, standin: Standin) -> None:
        self._store = store
        self._standin = standin

    def notes(self) -> Mapping[str, Json]:
        return self._store.notes()

    def note(self, notes: Mapping[str, Json]) -> None:
        self._store.note(notes)

    def write(self, doc_id: DocId, generation: Generation, file_path: str, chunks: Sequence[EmbeddedChunk]) -> None:
        self._store.write(doc_id, generation, file_path, chunks)
        self._standin.settle()

    def embeddings(self, doc_id: DocId, generation: Generation) -> Mapping[str, Vector]:
        return self._store.embeddings(doc_id, generation)

    def search(
        self, query: str, vector: Vector, *, limit: int, nearest_to: Vector | None = None, folders: Sequence[str] = ()
    ) -> SearchResult:
        return self._store.search(query, vector, limit=limit, nearest_to=nearest_to, folders=folders)

    def delete(self, doc_id: DocId, generation: Generation) -> None:
        self._store.delete(doc_id, generation)
        self._standin.settle()

    def begin_rebuild(self) -> "Settled":
        return Settled(self._store.begin_rebuild(), self._standin)

    def finish_rebuild(self) -> None:
        self._store.finish_rebuild()

    def generations(self, *, after: DocId | None = None) -> Iterator[tuple[DocId, Generation]]:
        return self._store.generations(after=after)

    def remove_others(self) -> None:
        self._store.remove_others()
