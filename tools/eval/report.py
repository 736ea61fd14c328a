"""Shows what was measured: in the terminal, as Markdown, as JSON and as a plot."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.eval.evaluation import SYSTEMS, Figures, Report, averages

# What a figure is called in a table, in order.
_COLUMNS = {
    "ndcg@10": "nDCG@10",
    "ndcg@10/tuning": "tuning",
    "ndcg@10/held_out": "held out",
    "recall@3": "recall@3",
    "mrr@10": "MRR@10",
    "auroc": "AUROC",
    "auroc/margin": "of margin",
    "not_found_precision": "n-f precision",
    "not_found_recall": "n-f recall",
    "answered": "answered",
}
_STAGES = ("exact", "embed", "search", "fuse")
_COLOURS = dict(zip(SYSTEMS, ("#1f77b4", "#7f7f7f", "#bcbd22", "#ff7f0e", "#d9d9d9"), strict=True))


def show(reports: Sequence[Report], console: Console) -> None:
    """A table for each set, then their averages."""
    for title, remarks, figures in _sections(reports):
        table = Table(title=title, title_justify="left")
        table.add_column("system")
        for column in _COLUMNS.values():
            table.add_column(column, justify="right")
        for system in SYSTEMS:
            table.add_row(system, *_cells(figures[system]))
        console.print(table)
        for remark in remarks:
            console.print(remark, highlight=False, markup=False)
        console.print()


def write(reports: Sequence[Report], json_file: Path) -> Sequence[Path]:
    """JSON, Markdown and plot are in files of that name with their own endings; returns their paths."""
    json_file.parent.mkdir(parents=True, exist_ok=True)
    paths = [json_file, json_file.with_suffix(".md"), json_file.with_suffix(".png")]
    everything = {report.name: report.figures for report in reports}
    paths[0].write_text(json.dumps(everything, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    paths[1].write_text(as_markdown(reports), encoding="utf-8")
    _plot(reports, paths[2])
    return paths


def as_markdown(reports: Sequence[Report]) -> str:
    """The same tables as in the terminal."""
    lines: list[str] = []
    for title, remarks, figures in _sections(reports):
        lines += [f"## {title}", "", f"| system | {' | '.join(_COLUMNS.values())} |", f"|---|{'---|' * len(_COLUMNS)}"]
        lines += [f"| {system} | {' | '.join(_cells(figures[system]))} |" for system in SYSTEMS]
        lines += ["", *(f"{remark}  " for remark in remarks), ""]
    return "\n".join(lines)


def _sections(reports: Sequence[Report]) -> list[tuple[str, Sequence[str], Mapping[str, Figures]]]:
    sections: list[tuple[str, Sequence[str], Mapping[str, Figures]]] = [
        (_title(report), _remarks(report), report.figures) for report in reports
    ]
    if len(reports) > 1:
        sections.append((f"mean of {len(reports)} sets", [], averages(reports)))
    return sections


def _title(report: Report) -> str:
    return (
        f"{report.name}: {report.documents:,} documents, {report.queries:,} queries, "
        f"{report.unanswerable:,} of them unanswerable"
    )


def _remarks(report: Report) -> list[str]:
    own = report.figures["ours"]
    stages = [f"{stage} {_ms(own, stage, 50)} / {_ms(own, stage, 99)}" for stage in _STAGES]
    remarks = [
        f"ours, semantic tier alone: nDCG@10 {_cell(own['ndcg@10/semantic'])}",
        f"ours, vector calls avoided by the exact tier: {own['vector_calls_avoided'] or 0.0:.1%} of the queries; "
        f"share of those with a right document: {_cell(own['certain_precision'])}",
        f"ours, ms by stage (p50 / p99): {', '.join(stages)}",
    ]
    if report.skipped:
        remarks.append(f"left out: {report.skipped} queries without a judgement that do not say answerable: false")
    return remarks


def _ms(figures: Figures, stage: str, percent: int) -> str:
    value = figures[f"{stage}_ms/p{percent}"]
    return "-" if value is None else f"{value:.1f}"


def _cells(figures: Figures) -> list[str]:
    return [_cell(figures.get(name)) for name in _COLUMNS]


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _plot(reports: Sequence[Report], path: Path) -> None:
    """nDCG@10 as bars, side by side for each set; a dot where the held-out half alone lies."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.5 + 2.2 * len(reports), 4.5), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(SYSTEMS)
    for at, system in enumerate(SYSTEMS):
        places = [number + (at - (len(SYSTEMS) - 1) / 2) * width for number in range(len(reports))]
        heights = [report.figures[system]["ndcg@10"] or 0.0 for report in reports]
        axes.bar(places, heights, width * 0.9, label=system, color=_COLOURS[system])
        held_out = [report.figures[system]["ndcg@10/held_out"] for report in reports]
        dots = [(place, value) for place, value in zip(places, held_out, strict=True) if value is not None]
        label = "held out" if at == 0 else None
        axes.plot([dot[0] for dot in dots], [dot[1] for dot in dots], "k.", markersize=5, label=label)
    axes.set_xticks(range(len(reports)), [report.name for report in reports])
    axes.set_ylim(0, 1)
    axes.set_ylabel("nDCG@10")
    figure.legend(loc="outside right upper", frameon=False)
    figure.savefig(path, dpi=150)
