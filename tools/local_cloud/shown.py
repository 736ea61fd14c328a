"""What the person in front of the local cloud sees: steps, things to try, requests."""

import json
import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import yaml
from rich.console import Console

from tools.local_cloud import places, seed
from tools.local_cloud.ministack import Request
from tools.local_cloud.places import ROOT, Problem

_console = Console(highlight=False)


@dataclass(frozen=True, slots=True)
class Example:
    """A query of one kind, and what the API answered to it."""

    kind: str
    query: str
    answer: Mapping[str, Any]


class RequestPrinter:
    """Prints a line per request, once `enabled`."""

    def __init__(self) -> None:
        self.enabled = False

    def __call__(self, request: Request) -> None:
        """Prints the request's line, or nothing."""
        if self.enabled:
            colour = "green" if request.status < 400 else "yellow" if request.status < 500 else "red"
            when = datetime.now().astimezone().strftime("%H:%M:%S")
            path = request.path.replace("[", r"\[")
            line = f"{when}  {request.method:6} {path}  [{colour}]{request.status}[/]  {request.elapsed_ms:.0f} ms"
            _console.print(line, soft_wrap=True)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Says what is going on, and how long it took."""
    started = time.monotonic()
    with _console.status(f"{name} ..."):
        yield
    _console.print(f"{name:8} {time.monotonic() - started:5.1f} s")


def examples(api_url: str, token: str) -> list[Example]:
    """The API's answers to one query of each kind that people should try; the first call also starts the function."""
    queries = yaml.safe_load(seed.golden_queries().read_text(encoding="utf-8"))["queries"]
    kinds = ("exact", "semantic", "unanswerable")
    chosen = [(kind, next(golden["query"] for golden in queries if golden["kind"] == kind)) for kind in kinds]
    return [Example(kind, query, _look_up(api_url, token, query)) for kind, query in chosen]


def introduce(outputs: Mapping[str, str], token: str, tried: list[Example], *, port: int, prefix: str) -> None:
    """Prints where the API is, and commands that can be pasted, with what they answer."""
    _console.print(f"\n[bold]The knowledge base answers on {outputs['ApiUrl']}[/bold]\nTry, in another terminal:\n")
    headers = f"-H 'Authorization: Bearer {token}' -H 'Content-Type: application/json'"
    for example in tried:
        body = shlex.quote(json.dumps({"query": example.query}, ensure_ascii=False))
        print(f"# {example.kind}: {_described(example.answer)}")
        print(f"curl -s {outputs['ApiUrl']}/lookup {headers} -d {body}\n")
    settings = " ".join(f"{name}={value}" for name, value in places.aws_environment(port).items())
    aws = Path(places.program("sam", "aws")).relative_to(ROOT)
    print("# a file dropped into the bucket is found a moment later")
    print(f"{settings} {aws} s3 cp README.md s3://{outputs['BucketName']}/{prefix}\n")
    print("Ctrl-C ends it. Requests:")


def _look_up(api_url: str, token: str, query: str) -> Mapping[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    response = httpx.post(f"{api_url}/lookup", json={"query": query}, headers=headers, timeout=60, trust_env=False)
    if response.status_code != httpx.codes.OK:
        raise Problem(f"{api_url}/lookup answers {response.status_code}: {response.text}")
    answer: Mapping[str, Any] = response.json()
    return answer


def _described(answer: Mapping[str, Any]) -> str:
    part = answer["primary"] or answer["supplement"]
    return f"answered from {part['source']} ({part['matchType']})" if part else 'answered with "found": false'
