"""The command line of the OpenSearch node."""

import argparse
import sys

from tools.local_cloud.places import Problem
from tools.opensearch_node import node, service


def main() -> int:
    """Runs from the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.opensearch_node",
        description="A real OpenSearch node with k-NN on 127.0.0.1. Prints its address. Every command may be repeated.",
        epilog="OPENSEARCH_JAVA_HOME names the Java 17 to run on, OPENSEARCH_HEAP its heap (default 1g).",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    start = commands.add_parser("start", help="start it, or say where it runs; the first time takes about a minute")
    start.add_argument("--port", type=int, default=9200, help="of 127.0.0.1 (default: %(default)s)")
    start.add_argument("--from", dest="origin", choices=["docker", "maven"], help="instead of the first that works")
    start.set_defaults(command=lambda options: _say(service.start(options.port, options.origin)))
    stop = commands.add_parser("stop", help="end it; its data stays")
    stop.set_defaults(command=lambda _: _stop())
    wipe = commands.add_parser("wipe", help="end it and remove its data")
    wipe.set_defaults(command=lambda _: _wipe())
    url = commands.add_parser("url", help="print its address; exit code 1 when it does not run")
    url.set_defaults(command=lambda _: _url())
    options = parser.parse_args()
    try:
        return int(options.command(options))
    except Problem as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1


def _say(text: str) -> int:
    print(text)
    return 0


def _stop() -> int:
    return _say("Stopped." if service.stop() else "Nothing was running.")


def _wipe() -> int:
    _stop()
    service.wipe()
    return _say("Its data is gone.")


def _url() -> int:
    url = node.running_url()
    print(url or "It does not run. Start it: make opensearch", file=sys.stdout if url else sys.stderr)
    return 0 if url else 1


if __name__ == "__main__":
    sys.exit(main())
