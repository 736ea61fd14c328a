"""Every figure that the benchmarks report, and what is shown, drawn and written of those that were measured."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SIZES = (1_000, 10_000, 100_000)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure; it is reported once for each size, as `name.size`."""

    name: str
    unit: str
    meaning: str
    baseline: str | None = None
    """The figure of the same run that this one is to be seen beside."""
    at_most: Mapping[str, float] | None = None
    """The target by size."""
    at_least: Mapping[str, float] | None = None

    @property
    def target(self) -> str:
        """In words, empty where there is none."""
        bounds = [f"at most {bound:g} at {size}" for size, bound in (self.at_most or {}).items()]
        bounds += [f"at least {bound:g} at {size}" for size, bound in (self.at_least or {}).items()]
        return ", ".join(bounds)

    def verdict(self, size: str, value: float) -> str:
        """How the value stands to the target, empty where there is none."""
        if self.at_most and size in self.at_most:
            return f"{'met' if value <= self.at_most[size] else 'MISSED'}: at most {self.at_most[size]:g}"
        if self.at_least and size in self.at_least:
            return f"{'met' if value >= self.at_least[size] else 'MISSED'}: at least {self.at_least[size]:g}"
        return ""


_LARGEST = "100000"

# Source of the targets: specification N1, N3 and N4, and what the exact tier was made to reach.
FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            "match_mean_us",
            "µs",
            "one query of 50 characters: normalised and matched: which keywords are in it, which can decide",
            "automaton_mean_us",
        ),
        Figure("match_median_us", "µs", "the same, median", "automaton_median_us"),
        Figure("match_p99_us", "µs", "the same, 99th percentile", "automaton_p99_us", at_most={_LARGEST: 50}),
        Figure("normalise_mean_us", "µs", "of the first, what normalising the query takes"),
        Figure(
            "answer_mean_us", "µs", "the same, its documents counted and the most specific one made", "match_mean_us"
        ),
        Figure("answer_p99_us", "µs", "the same, 99th percentile", "match_p99_us"),
        Figure("automaton_mean_us", "µs", "daachorse alone: every occurrence in the text, normalised before"),
        Figure("automaton_median_us", "µs", "the same, median"),
        Figure("automaton_p99_us", "µs", "the same, 99th percentile"),
        Figure("plain_scan_mean_us", "µs", "the same queries by `keyword in query` for every keyword"),
        Figure("match_to_automaton", "ratio", "`match_p99_us` to `automaton_p99_us`", at_most={_LARGEST: 3}),
        Figure(
            "plain_scan_to_match", "ratio", "mean of the plain scan to mean of matching", at_least={_LARGEST: 1_000}
        ),
        Figure("partial_mean_us", "µs", "a query that is a part of some keyword", "partial_scan_mean_us"),
        Figure("partial_p99_us", "µs", "the same, 99th percentile", at_most={_LARGEST: 1_000}),
        Figure("partial_p99_us_to_10_hits", "µs", "the same, of the queries with 10 documents at most"),
        Figure("partial_p99_us_to_1000_hits", "µs", "the same, of those with 11 to 1,000"),
        Figure("partial_p99_us_over_1000_hits", "µs", "the same, of those with more"),
        Figure("partial_scan_mean_us", "µs", "the same queries by `query in keyword` for every keyword"),
        Figure("partial_scan_to_partial", "ratio", "mean of that scan to mean of partial matching"),
        Figure("build_ms", "ms", "an index made of its entries"),
        Figure("change_ms", "ms", "an index with one document more changed, one by one, median", "build_ms"),
        Figure("build_to_change", "ratio", "`build_ms` to `change_ms`"),
        Figure("changed_match_p99_us", "µs", "matching after 100 changes, 99th percentile", "match_p99_us"),
        Figure("dump_ms", "ms", "an index written as bytes"),
        Figure("dump_kb", "kB", "those bytes"),
        Figure(
            "load_s",
            "s",
            "a fresh process imports what loading needs and loads those bytes",
            "rebuild_s",
            at_most={"1000": 0.3, _LARGEST: 2},
        ),
        Figure(
            "load_resident_mb",
            "MB",
            "what that process then holds above a bare interpreter",
            "rebuild_resident_mb",
            at_most={"1000": 10, _LARGEST: 150},
        ),
        Figure("load_peak_mb", "MB", "the most it held meanwhile, above the same", "rebuild_peak_mb"),
        Figure("rebuild_s", "s", "a fresh process imports the same and builds from the entries as JSON"),
        Figure("rebuild_resident_mb", "MB", "what that process then holds above a bare interpreter"),
        Figure("rebuild_peak_mb", "MB", "the most it held meanwhile, above the same"),
        Figure("rebuild_to_load", "ratio", "`rebuild_s` to `load_s`"),
        Figure(
            "ready_s",
            "s",
            "a fresh process imports the service, checks and loads a snapshot, and answers; stores answer at once",
            "rebuild_s",
            at_most={"1000": 0.3, _LARGEST: 2},
        ),
        Figure(
            "ready_resident_mb",
            "MB",
            "what that process then holds above a bare interpreter",
            "rebuild_resident_mb",
            at_most={"1000": 10, _LARGEST: 150},
        ),
        Figure(
            "ready_beside_clients_mb",
            "MB",
            "what the same adds to a process that has the AWS clients, as every function has",
        ),
        Figure(
            "scan_s",
            "s",
            "the catalog from the bucket without a snapshot, on the local cloud",
            "scan_one_by_one_s",
            at_most={"1000": 5},
        ),
        Figure("scan_one_by_one_s", "s", "the same objects read one after the other"),
        Figure("scan_one_by_one_to_scan", "ratio", "the second to the first"),
        Figure("cold_import_ms", "ms", "a fresh process imports the lookup handler", "cold_clients_ms"),
        Figure("cold_services_ms", "ms", "the same process makes what the handler needs", "cold_clients_ms"),
        Figure("cold_resident_mb", "MB", "what it then holds above a bare interpreter", "cold_clients_mb"),
        Figure("cold_clients_ms", "ms", "a fresh process imports boto3 and makes one client for S3 and DynamoDB each"),
        Figure("cold_clients_mb", "MB", "what it then holds above a bare interpreter"),
        Figure("cold_to_clients", "ratio", "import and services to the clients alone"),
        Figure(
            "real_codes_alone_share",
            "share",
            "error codes of a documentation set asked alone whose page is the primary",
            at_least={"l0_cppdocs": 0.99},
        ),
        Figure(
            "real_codes_in_message_share",
            "share",
            "the same, asked inside their message",
            at_least={"l0_cppdocs": 0.99},
        ),
        Figure(
            "real_unrelated_certain_share",
            "share",
            "unrelated queries with an answer of high confidence",
            "real_unrelated_hit_share",
            at_most={"l0_cppdocs": 0.02},
        ),
        Figure("real_unrelated_hit_share", "share", "unrelated queries that hold some keyword on word boundaries"),
        Figure("real_match_mean_us", "µs", "matching all those queries", "real_automaton_mean_us"),
        Figure("real_match_p99_us", "µs", "the same, 99th percentile", "real_automaton_p99_us"),
        Figure("real_automaton_mean_us", "µs", "daachorse alone over the same"),
        Figure("real_automaton_p99_us", "µs", "the same, 99th percentile"),
        Figure("real_load_s", "s", "as `load_s`, for the set"),
        Figure("real_load_resident_mb", "MB", "as `load_resident_mb`, for the set"),
        Figure(
            "real_files_codes_alone_share",
            "share",
            "as `real_codes_alone_share`, through the product's lookup over files, where a comma parts keywords",
            "real_codes_alone_share",
        ),
        Figure(
            "real_files_codes_in_message_share",
            "share",
            "the same, asked inside their message",
            "real_codes_in_message_share",
        ),
        Figure(
            "real_files_unrelated_certain_share",
            "share",
            "unrelated queries with an answer of high confidence, through the same",
            "real_unrelated_certain_share",
        ),
        Figure("real_files_scan_s", "s", "those files parsed and indexed, from memory", "real_load_s"),
        Figure("semantic_rank_ms", "ms", "the semantic tier over OpenSearch, median", "semantic_msearch_ms"),
        Figure("semantic_search_ms", "ms", "its search alone, median", "semantic_msearch_ms"),
        Figure("semantic_msearch_ms", "ms", "the same `_msearch` made by hand, median"),
        Figure("semantic_rank_to_msearch", "ratio", "the first to the third", at_most={"384": 1.2, "1024": 1.2}),
        Figure(
            "item_search_ms", "ms", "items by substring, stores answer at once, median", "item_normalised_search_ms"
        ),
        Figure("item_search_p99_ms", "ms", "the same, 99th percentile", at_most={"10000": 100}),
        Figure("item_normalised_search_ms", "ms", "the same queries where every item is normalised each time, median"),
        Figure("item_normalised_to_search", "ratio", "the last to the first"),
        Figure(
            "item_search_calls",
            "calls",
            "to the stores for such a search: settings, feed, the best",
            "item_list_calls",
            at_most={"10000": 3},
        ),
        Figure("item_cold_search_calls", "calls", "the same in a process that starts", at_most={"10000": 4}),
        Figure("item_list_calls", "calls", "to the table to read every item"),
        Figure("item_similar_ms", "ms", "the published items close to a proposal, without vectors, median"),
        Figure("item_snapshot_kb", "kB", "the snapshot of the items"),
        Figure("item_load_s", "s", "a fresh process imports the index and loads that snapshot", at_most={"10000": 2}),
        Figure("item_load_resident_mb", "MB", "what that process then holds above a bare interpreter"),
        Figure("item_load_peak_mb", "MB", "the most it held meanwhile, above the same"),
        Figure(
            "items_page_ms",
            "ms",
            "the first 50 published knowledge items of so many, on the local cloud, median",
            "items_page_by_hand_ms",
        ),
        Figure("items_page_calls", "calls", "the same, what it asks of the table", at_most={"10000": 2}),
        Figure("items_inbox_ms", "ms", "the first 50 of the inbox, median", "items_page_by_hand_ms"),
        Figure("items_inbox_calls", "calls", "the same, what it asks of the table", at_most={"10000": 2}),
        Figure("items_due_ms", "ms", "100 items that the sweep has to see to, median"),
        Figure("items_due_calls", "calls", "the same, what it asks of the table", at_most={"10000": 2}),
        Figure("items_page_by_hand_ms", "ms", "a Query for 50 keys and a BatchGetItem of them, made by hand, median"),
    )
}


class Figures:
    """The figures of one run."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def record(self, size: int | str, **values: float) -> None:
        """Each of `values`, named as in FIGURES, was measured at that size: documents, numbers of a vector, or a set.

        Raises KeyError for a name that is not in FIGURES.
        """
        for name, value in values.items():
            self.values[f"{FIGURES[name].name}.{size}"] = value

    def table(self) -> Iterator[str]:
        """Every measured figure with its target and its baseline, in the order of FIGURES."""
        for name, figure in FIGURES.items():
            for size, value in self.by_size(name):
                baseline = self.values.get(f"{figure.baseline}.{size}")
                beside = f"{figure.baseline} {_number(baseline)}" if baseline is not None else ""
                verdict = figure.verdict(size, value)
                key = f"{name}.{size}"
                yield f"{key:40} {_number(value):>10} {figure.unit:6} {verdict:24} {beside}".rstrip()

    def by_size(self, name: str) -> Iterator[tuple[str, float]]:
        """The sizes at which that figure was measured, with their values."""
        for key, value in self.values.items():
            if key.startswith(f"{name}."):
                yield key.removeprefix(f"{name}."), value

    def write(self, path: Path) -> Path | None:
        """The figures are in `path` as one JSON object; a plot is beside it where something was measured at two sizes.

        Returns the plot's path, or None.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.values, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return self._plot(path.with_suffix(".png"))

    def _plot(self, path: Path) -> Path | None:
        """How cost grows with the number of documents: matching, changing, loading, memory."""
        panels = {
            "one query, µs": ["match_p99_us", "match_mean_us", "automaton_mean_us", "plain_scan_mean_us"],
            "a part of a keyword, µs": ["partial_p99_us", "partial_mean_us", "partial_scan_mean_us"],
            "a change, ms": ["change_ms", "build_ms", "dump_ms"],
            "loading, s": ["load_s", "rebuild_s"],
            "memory, MB": ["load_resident_mb", "load_peak_mb", "rebuild_resident_mb"],
        }
        if not any(len(list(self.by_size(name))) > 1 for names in panels.values() for name in names):
            return None
        from matplotlib.figure import Figure as Drawing

        drawing = Drawing(figsize=(16, 9), layout="constrained")
        for axes, (title, names) in zip(drawing.subplots(2, 3).flat, panels.items(), strict=False):
            for name, points in _lines(self, names):
                axes.loglog(*zip(*points, strict=True), marker="o", label=name)
            axes.set_title(title)
            axes.set_xlabel("documents")
            axes.grid(alpha=0.3)
            if axes.has_data():
                axes.legend(frameon=False)
        drawing.axes[-1].set_axis_off()
        drawing.savefig(path, dpi=120)
        return path


def _lines(figures: Figures, names: Iterable[str]) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    for name in names:
        points = sorted((float(size), value) for size, value in figures.by_size(name))
        if points:
            yield name, points


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
