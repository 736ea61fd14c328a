"""How a catalog comes into a new process, and what it costs there; each figure above a bare interpreter's."""

import json
import time
from pathlib import Path

import pytest

from knowledge.retrieval.catalog_index import CatalogIndex
from tests.bench.figures import SIZES, Figures
from tests.bench.fresh import Cost, cost_of
from tests.bench.measuring import documents_of, index_of

pytestmark = pytest.mark.bench

LOAD = """
from knowledge.retrieval.catalog_index import CatalogIndex
index = CatalogIndex.load(open(sys.argv[1], "rb").read())
told = len(index)
"""
# The baseline: what a snapshot of bare entries would need.
REBUILD = """
from knowledge.domain.document import KnowledgeEntry
from knowledge.retrieval.catalog_index import CatalogIndex
import json
rows = json.load(open(sys.argv[1]))
index = CatalogIndex([KnowledgeEntry(path, title, tuple(words), summary) for path, title, words, summary in rows])
del rows
told = len(index)
"""


def loaded(index: CatalogIndex, folder: Path) -> Cost:
    """What the dump of `index` costs a fresh process."""
    path = folder / "catalog"
    path.write_bytes(index.dump())
    cost = cost_of(LOAD, str(path))
    assert cost.told == len(index)
    return cost


@pytest.mark.parametrize("count", SIZES)
def test_loading_against_building(count: int, figures: Figures, tmp_path: Path) -> None:
    index = index_of(count)
    started = time.perf_counter()
    dumped = index.dump()
    dump_ms = (time.perf_counter() - started) * 1000
    load = loaded(index, tmp_path)
    rows = [[entry.file_path, entry.title, entry.keywords, entry.summary] for entry in documents_of(count)]
    (tmp_path / "entries.json").write_text(json.dumps(rows), encoding="utf-8")
    rebuild = cost_of(REBUILD, str(tmp_path / "entries.json"))
    assert rebuild.told == count
    figures.record(
        count,
        dump_ms=dump_ms,
        dump_kb=len(dumped) / 1000,
        load_s=load.elapsed_s,
        load_resident_mb=load.resident_mb,
        load_peak_mb=load.peak_mb,
        rebuild_s=rebuild.elapsed_s,
        rebuild_resident_mb=rebuild.resident_mb,
        rebuild_peak_mb=rebuild.peak_mb,
        rebuild_to_load=rebuild.elapsed_s / load.elapsed_s,
    )
