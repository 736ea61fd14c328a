"""The command line of the local cloud."""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

from knowledge import bootstrap
from knowledge.domain.access import Role
from knowledge.services.authentication import token_hash
from tools.local_cloud import container, functions, places, running, seed, shown, stack, vectors
from tools.local_cloud.ministack import Ministack, Request
from tools.local_cloud.places import CLOUD, OUTPUTS, TOKEN, Problem
from tools.local_cloud.shown import step
from tools.opensearch_node import service

_ADMIN = "local-admin"


def main() -> int:
    """Runs from the command line; returns the exit code."""
    options = _parser().parse_args()
    # Also SIGINT: a shell that starts a program in the background makes it deaf to Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    CLOUD.mkdir(parents=True, exist_ok=True)
    try:
        command: Callable[[argparse.Namespace], int] = options.command
        return command(options)
    except Problem as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.local_cloud", description="The whole stack on this machine.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="start it, stay in the foreground, show requests; Ctrl-C ends it")
    run.set_defaults(command=_run)
    within = commands.add_parser("exec", help="run a command against it, starting it for as long if it is not running")
    within.add_argument("program", nargs=argparse.REMAINDER, help="the command and its arguments")
    within.set_defaults(command=_exec)
    for parser_with_port in (run, within):
        parser_with_port.add_argument("--port", type=int, default=4566, help="of 127.0.0.1 (default: %(default)s)")
        parser_with_port.add_argument("--store", choices=vectors.STORES, help="of vectors (default: embedded)")

    stop = commands.add_parser("stop", help="end what runs, or what an earlier run left behind")
    stop.set_defaults(command=_stop)
    build = commands.add_parser("build", help="build the stack for Lambda into .aws-sam/build")
    build.set_defaults(command=_build)

    invoke = commands.add_parser("invoke", help="call one function's handler in this process")
    invoke.add_argument("--debug", action="store_true", help="under pdb, stopped at the handler's first line")
    invoke.set_defaults(command=_invoke)
    sam_local = commands.add_parser("sam-local", help="run one function in Lambda's container, with sam local invoke")
    sam_local.set_defaults(command=_sam_local)
    for parser_with_event in (invoke, sam_local):
        parser_with_event.add_argument("function", help="folder in functions/, such as lookup")
        parser_with_event.add_argument("event", type=Path, help="JSON file with the event, such as events/lookup.json")
    return parser


def _run(options: argparse.Namespace) -> int:
    printer = shown.RequestPrinter()
    with _local_cloud(options.port, options.store, printer, introduce=True) as ministack:
        printer.enabled = True
        try:
            ministack.wait()
        except KeyboardInterrupt:
            return 0  # the way to end it
    return 0


def _exec(options: argparse.Namespace) -> int:
    cloud = running.read()
    if cloud and cloud.runner and OUTPUTS.exists():
        _turn_this_process_to(cloud.port)
        if options.store not in (None, store := stack.parameter("VectorStore")):
            raise Problem(f"The local cloud that is running keeps its vectors in the store {store}. End it: make stop")
        return subprocess.run(options.program, env=places.process_environment(cloud.port), check=False).returncode
    with _local_cloud(options.port, options.store, shown.RequestPrinter()):
        return subprocess.run(options.program, env=places.process_environment(options.port), check=False).returncode


def _stop(_: argparse.Namespace) -> int:
    stopped = [running.stop(), service.stop_lent()]
    print("Stopped." if any(stopped) else "Nothing was running.")
    return 0


def _build(_: argparse.Namespace) -> int:
    print("Built." if stack.build(stack.LAMBDA_BUILD) else "Nothing has changed since the last build.")
    return 0


def _invoke(options: argparse.Namespace) -> int:
    _use_running_cloud()
    answer = functions.invoke(options.function, _event(options.event), debug=options.debug)
    print(json.dumps(answer, indent=2, ensure_ascii=False))
    return 0


def _sam_local(options: argparse.Namespace) -> int:
    _event(options.event)
    return container.invoke(options.function, options.event, _use_running_cloud())


@contextmanager
def _local_cloud(
    port: int, store: str | None, on_request: Callable[[Request], None], *, introduce: bool = False
) -> Iterator[Ministack]:
    """The stack is up, holds the seed, and its outputs and an admin token are on file. No `store` is "embedded"."""
    running.clear_leftovers()
    OUTPUTS.unlink(missing_ok=True)
    _turn_this_process_to(port)
    with vectors.chosen(store or "embedded") as parameters, Ministack(port, on_request) as ministack:
        with step("build"):
            stack.build(stack.LOCAL_BUILD, python=places.program("ministack", "python"))
        with step("deploy"):
            stack.deploy(stack.LOCAL_BUILD, parameters, dict(os.environ))
            stack.apply_own_answers_of_the_gateway()
            stack.spare_processors()
            outputs = stack.outputs(port)
            token, prefix = _ensure_token(outputs["TableName"]), stack.parameter("KnowledgeBasePath")
        is_other = vectors.restore()
        total, dropped = seed.ingest(outputs["BucketName"], outputs["TableName"], prefix)
        print(f"{total} seed documents are indexed, {dropped} of them new or changed")
        if dropped or is_other:
            with step("calibrate and compact"):
                functions.run("maintenance")
        OUTPUTS.write_text(json.dumps(outputs, indent=2) + "\n")
        with step("check"):
            examples = shown.examples(outputs["ApiUrl"], token)
        if introduce:
            shown.introduce(outputs, token, examples, port=port, prefix=prefix)
        yield ministack


def _ensure_token(table: str) -> str:
    """The token in `.local/token`, which is the table's for `local-admin`; the file can be read by its owner alone."""
    tokens = bootstrap.tokens(table)
    known = {token.name: token.token_hash for token in tokens.list()}.get(_ADMIN)
    if TOKEN.exists() and known == token_hash(secret := TOKEN.read_text().strip()):
        return secret
    new = tokens.rotate(_ADMIN, grace=timedelta(0)) if known else tokens.create(_ADMIN, Role.ADMIN, None)
    TOKEN.unlink(missing_ok=True)
    with open(os.open(TOKEN, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(new.secret)
    return new.secret


def _event(path: Path) -> dict[str, Any]:
    try:
        event: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Problem(f"{path} is no readable JSON file: {error}") from error
    return event


def _use_running_cloud() -> int:
    cloud = running.read()
    if not cloud or not cloud.ministack:
        raise Problem("The local cloud is not running. Start it in another terminal: make run")
    _turn_this_process_to(cloud.port)
    return cloud.port


def _turn_this_process_to(port: int) -> None:
    environment = places.process_environment(port)
    os.environ.clear()
    os.environ.update(environment)


def _interrupt(number: int, _: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
