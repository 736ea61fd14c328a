"""The command line of the evaluation: `make eval`."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tools.eval import golden, report, stores
from tools.eval.embedding_cache import CachedEmbedder
from tools.eval.evaluation import evaluate
from tools.eval.sets import RetrievalSet, halved, load_jsonl
from tools.local_cloud.places import LOCAL, SEED, Problem

CACHE = LOCAL / "eval-cache"
DEFAULT_JSON = LOCAL / "eval" / "report.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs from the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        sets = [load(path) for path in options.sets or [SEED]]
        sets += [halved(found) for found in sets] if options.halved else []
        names = [found.name for found in sets]
        if len(set(names)) < len(names):
            raise Problem(f"two sets have the same folder name: {', '.join(sorted(names))}")
        with CachedEmbedder(stores.embedder(options.embedder), options.cache) as embedder:
            reports = [evaluate(found, embedder, options.store) for found in sets]
    except Problem as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. What was embedded is kept, so the next run goes on from there.", file=sys.stderr)
        return 130
    # Wide enough that no table wraps where the output is no terminal.
    report.show(reports, Console() if sys.stdout.isatty() else Console(width=140))
    for path in report.write(reports, options.json):
        print(path)
    return 0


def load(path: Path) -> RetrievalSet:
    """The set at `path`: a folder with corpus.jsonl, one with golden queries, or a file of golden queries.

    Raises:
        Problem: it is none of them, or its content is not as it should be.
    """
    path = path.resolve()
    if path.is_file():
        return golden.load_golden(path)
    if (path / golden.FILE_NAME).exists():
        return golden.load_golden(path / golden.FILE_NAME)
    if not path.is_dir():
        raise Problem(f"{path} is not there")
    if not any((path / name).exists() for name in ("corpus.jsonl", "queries.jsonl", "qrels.jsonl")):
        raise Problem(f"{path} holds neither corpus.jsonl, queries.jsonl and qrels.jsonl nor {golden.FILE_NAME}")
    return load_jsonl(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.eval",
        description="Measures how well the knowledge base answers, beside plain vectors, BM25, their fusion and grep.",
        epilog="docs/evaluation.md describes the files of a set and every figure.",
    )
    parser.add_argument(
        "sets",
        nargs="*",
        type=Path,
        metavar="SET",
        help=f"folder with corpus.jsonl, queries.jsonl and qrels.jsonl, or with Markdown documents and "
        f"{golden.FILE_NAME} (default: {SEED.name})",
    )
    parser.add_argument(
        "--json",
        type=Path,
        default=DEFAULT_JSON,
        metavar="FILE",
        help="where the figures go; a table and a plot beside it, ending in .md and .png (default: .local/eval)",
    )
    parser.add_argument(
        "--halved",
        action="store_true",
        help="measure each set once more without the documents that answer half of its queries",
    )
    parser.add_argument(
        "--store",
        choices=stores.STORES,
        default="embedded",
        help="vector store; opensearch is the node at OPENSEARCH_URL (default: %(default)s)",
    )
    parser.add_argument(
        "--embedder",
        choices=stores.EMBEDDERS,
        default="local",
        help="what makes vectors; hashing knows no meaning but takes no time (default: %(default)s)",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=CACHE,
        metavar="FOLDER",
        help="where vectors are kept between runs (default: .local/eval-cache)",
    )
    return parser


if __name__ == "__main__":
    # What the product logs about each document and query is no news here.
    logging.getLogger("knowledge").setLevel(logging.ERROR)
    sys.exit(main())
