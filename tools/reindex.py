"""Embeds every document of a base into a new index, while lookups go on. `make reindex` does it for the local cloud.

For a deployed stack: `python -m tools.reindex`, with AWS credentials that may do what the indexer may. With settings
that the functions do not have yet, such as `EMBEDDER=bedrock EMBEDDING_MODEL=...`, the index is made ready for them:
then deploy them, and run it again with --changed. See docs/operations.md.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Mapping

from rich.progress import track

from knowledge import bootstrap
from knowledge.domain.document import DocumentStatus
from knowledge.errors import ConfigError, KnowledgeError
from tools.local_cloud import functions, places, seed


def main() -> int:
    """Runs from the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.reindex", description=__doc__)
    parser.add_argument(
        "--changed",
        action="store_true",
        help="no new index: only what has changed since the last one was built, as after a deployment",
    )
    parser.add_argument(
        "settings", nargs="*", metavar="NAME=value", help="settings that the functions are going to have"
    )
    arguments = parser.parse_args()
    running = functions.configuration("indexer")["Environment"]["Variables"]
    wanted = {**running, **_settings(parser, arguments.settings)}
    os.environ.update(wanted)
    try:
        return _run(running, only_changed=arguments.changed, are_deployed=wanted == running)
    except (KnowledgeError, ConfigError) as error:
        print(f"{error}\nLookups go on as before. Run it again: it goes on where it stopped.", file=sys.stderr)
        return 1


def _run(running: Mapping[str, str], *, only_changed: bool, are_deployed: bool) -> int:
    reindex, total = bootstrap.reindex(running), seed.document_count(running["TABLE_NAME"])
    if not only_changed:
        for _ in track(reindex.build(), description="building the index", total=total):
            pass
    if not are_deployed:
        print("The index is ready. Deploy the stack with these settings, then run this again with --changed.")
        return 0
    counts = Counter(record.status for record in track(reindex.settle(), description="settling", total=total))
    print(", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "there are no documents")
    if counts[DocumentStatus.PENDING]:
        print("Some are not finished; run it again.", file=sys.stderr)
        return 1
    return 0


def _settings(parser: argparse.ArgumentParser, given: list[str]) -> dict[str, str]:
    for one in given:
        if "=" not in one:
            parser.error(f"{one!r} is no setting: NAME=value is wanted")
    return dict(one.split("=", 1) for one in given)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except places.Problem as problem:
        sys.exit(str(problem))
