"""Shows how a knowledge base is: bucket, table, queue, catalog, vectors, and where they differ. `make doctor`.

For a deployed stack: `python -m tools.doctor`, with the stack's region and AWS credentials that may read what it looks
at. It only looks; with --fix every difference is repaired, for which the credentials must allow what the function
`maintenance` may. Ends with 1 when something is wrong. See docs/operations.md.
"""

import argparse
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.progress import Progress

from knowledge import bootstrap
from knowledge.domain.document import DocumentStatus
from knowledge.errors import ConfigError, KnowledgeError
from knowledge.ports import CatalogHead
from knowledge.services.reconcile_progress import Report
from tools.local_cloud import functions, places, seed, stack

# A path is never cut or broken: it is there to be copied.
_console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one part."""

    part: str
    is_well: bool
    text: str


def main() -> int:
    """Runs from the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.doctor", description=__doc__)
    parser.add_argument("--fix", action="store_true", help="repair every difference, as the function does each day")
    options = parser.parse_args()
    # What services warn of is in the findings.
    logging.disable(logging.WARNING)
    settings = functions.configuration("maintenance")["Environment"]["Variables"]
    try:
        reconcile, log = bootstrap.reconcile(settings), bootstrap.catalog_log(settings)
        findings = [
            examined("bucket", lambda: bucket(settings["BUCKET_NAME"])),
            examined("table", lambda: table(settings["TABLE_NAME"])),
            examined("queue", lambda: queue("EventQueue")),
            examined("dead letters", lambda: dead_letters("DeadLetterQueue")),
            examined("catalog", lambda: catalog(log.head())),
        ]
        report = followed(reconcile.run(repair=options.fix), total=seed.document_count(settings["TABLE_NAME"]))
    except (KnowledgeError, ConfigError, ClientError, BotoCoreError) as error:
        print(f"{error}\nThe stores could not be compared.", file=sys.stderr)
        return 1
    return told([*findings, documents(report), items(report), vectors(report)], report, is_fixing=options.fix)


def examined(part: str, look: Callable[[], tuple[bool, str]]) -> Finding:
    """What `look` found of a part; one that does not answer does not keep the others from being looked at."""
    try:
        return Finding(part, *look())
    except (KnowledgeError, ClientError, BotoCoreError) as error:
        return Finding(part, is_well=False, text=str(error))


def bucket(name: str) -> tuple[bool, str]:
    """Whether it is there and keeps versions."""
    status = boto3.client("s3").get_bucket_versioning(Bucket=name).get("Status")
    return status == "Enabled", f"{name}: {'keeps versions' if status == 'Enabled' else 'keeps no versions'}"


def table(name: str) -> tuple[bool, str]:
    """Whether it can be used."""
    status = boto3.client("dynamodb").describe_table(TableName=name)["Table"]["TableStatus"]
    return status == "ACTIVE", f"{name}: {status}"


def queue(logical_id: str) -> tuple[bool, str]:
    """How much the indexer has before it, which is never wrong by itself."""
    waiting, handled = _depth(logical_id)
    return True, f"{waiting} events wait, {handled} are being handled"


def dead_letters(logical_id: str) -> tuple[bool, str]:
    """Whether events were given up."""
    count = sum(_depth(logical_id))
    return not count, f"{count} events were given up" + ("; see docs/operations.md, What to watch" if count else "")


def catalog(head: CatalogHead) -> tuple[bool, str]:
    """From where a new process begins; a long way from the snapshot is slow and not wrong."""
    if not head.snapshots:
        return True, f"version {head.version}, no snapshot yet"
    newest = head.snapshots[0]
    after = head.version - newest.version
    return True, f"version {head.version}; snapshot of {newest.written_at:%Y-%m-%d %H:%M} UTC, {after} changes after it"


def documents(report: Report) -> Finding:
    """Records by status."""
    counts = {status: report.statuses.get(status, 0) for status in DocumentStatus}
    text = ", ".join(f"{count:,} {status}" for status, count in counts.items() if count) or "there are none"
    return Finding("documents", not counts[DocumentStatus.FAILED], text)


def items(report: Report) -> Finding:
    """Whether the documents of knowledge items say what the items say."""
    count = report.unsettled_items
    text = f"{count:,} wait for their documents" if count else "all have the documents they should have"
    if report.published_without_embedding:
        text += f"; {report.published_without_embedding:,} published ones are not found by meaning yet"
    return Finding("items", not count, text)


def vectors(report: Report) -> Finding:
    """Whether they could be compared, and what waits."""
    if report.left_out is not None:
        return Finding("vectors", is_well=False, text=report.left_out)
    text = f"{report.generations:,} generations"
    if report.waiting:
        text += f"; {report.waiting:,} more that no record names are removed when that is still so in an hour"
    return Finding("vectors", is_well=True, text=text)


def told(findings: Sequence[Finding], report: Report, *, is_fixing: bool) -> int:
    """Prints a line for each part, then the differences; the exit code, 1 when something is wrong."""
    for finding in findings:
        state = "[green]well[/]" if finding.is_well else "[red]WRONG[/]"
        _console.print(f"{finding.part:13} {state}  {_plain(finding.text)}")
    _tell_differences(report, is_fixing=is_fixing)
    return 0 if all(finding.is_well for finding in findings) and not report.unrepaired else 1


def _tell_differences(report: Report, *, is_fixing: bool) -> None:
    count = sum(report.differences.values())
    if not count:
        _console.print(f"\n{report.documents:,} documents were compared: no differences.")
        return
    _console.print(
        f"\n{report.documents:,} documents were compared: {count:,} differences, {report.repaired:,} repaired."
    )
    for kind, number in sorted(report.differences.items()):
        _console.print(f"  {number:,} {kind.value}")
    for one in report.told:
        state = "repaired" if one.is_repaired else one.reason or ""
        _console.print(f"{one.kind.value:16} {_plain(one.path)}  {_plain(state)}")
    if count > len(report.told):
        _console.print(f"... and {count - len(report.told):,} more")
    if not is_fixing:
        _console.print("Nothing was changed. To repair: make doctor FIX=1, or wait for the function maintenance.")


def _plain(text: str) -> str:
    return text.replace("[", r"\[")


def followed(reports: Iterator[Report], *, total: int) -> Report:
    """The last of the reports; shows how far they are."""
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("comparing", total=total)
        for report in reports:
            progress.update(task, completed=report.documents, total=max(total, report.documents))
    return report


def _depth(logical_id: str) -> tuple[int, int]:
    """Messages that wait, and messages that somebody has."""
    client, url = boto3.client("sqs"), stack.physical_id(logical_id)
    found = client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    waiting = int(found["ApproximateNumberOfMessages"]) + int(found.get("ApproximateNumberOfMessagesDelayed", "0"))
    return waiting, int(found["ApproximateNumberOfMessagesNotVisible"])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except places.Problem as problem:
        sys.exit(str(problem))
    except KeyboardInterrupt:
        print("\nBroken off. What was repaired stays.", file=sys.stderr)
        sys.exit(130)
