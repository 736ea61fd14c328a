"""Searching knowledge items: milliseconds, calls, and what their index costs a process that starts."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from random import Random
from statistics import median
from typing import TypeVar

import pytest

from knowledge.adapters.memory_objects import MemoryObjectStore
from knowledge.domain.item import Draft, Item, ItemId, ItemStatus, KnowledgeKind
from knowledge.domain.timeline import created
from knowledge.services.item_index import ItemIndex, searchable
from knowledge.services.item_snapshots import KEY, ItemSnapshots
from tests.bench.figures import Figures
from tests.bench.fresh import cost_of
from tests.bench.measuring import p99, times_us
from tests.services.items_world import ItemsWorld, draft

_T = TypeVar("_T")

pytestmark = pytest.mark.bench

QUERIES = ("the gateway", "item 77", "网关", "重试网关", "no item says so", "e")
# Characters of an item's content: half English, half Chinese, of which each says about three times as much.
ENGLISH_CHARS, CHINESE_CHARS = 1500, 500
WORDS = (
    "the",
    "gateway",
    "retries",
    "a payment",
    "after",
    "timeout",
    "set",
    "key",
    "before",
    "deploy",
    "service",
    "queue",
)
CHARACTERS = "支付网关重试超时服务队列部署之前检查幂等键客户扣款失败日志配置"

LOAD = """
from knowledge.services.item_snapshots import ItemSnapshots, KEY
from knowledge.ports import ObjectInfo, StoredObject
class Objects:
    def read(self, key, *, max_bytes):
        body = open(sys.argv[1], "rb").read()
        return StoredObject(ObjectInfo(key, "etag", len(body)), body)
state = ItemSnapshots(Objects()).read()
told = len(state.items)
"""


def proposal(number: int, random: Random) -> Draft:
    if number % 2:
        content = "".join(random.choices(CHARACTERS, k=CHINESE_CHARS))
    else:
        content = " ".join(random.choices(WORDS, k=ENGLISH_CHARS // 6))
    return draft(f"Item {number}", content, kind=list(KnowledgeKind)[number % 7])


def filled(count: int) -> ItemsWorld:
    """That many published items, a day old, and their snapshot."""
    world, random = ItemsWorld(), Random(7)  # noqa: S311 - the same items in each run
    at = world.now() - timedelta(days=1)
    for number in range(count):
        item_id = ItemId(f"{number:032x}")
        item = Item(item_id, proposal(number, random), ItemStatus.PUBLISHED, "w", at, at, "w", reuse_count=number % 10)
        world.items.create(item, created(item))
    world.configure(vector_enabled=False)
    index, _ = world.item_instance()
    index.save()
    return world


def times_ms(work: Callable[[_T], object], items: Iterable[_T]) -> list[float]:
    return [microseconds / 1000 for microseconds in times_us(work, items)]


def calls_of(world: ItemsWorld, work: Callable[[], object]) -> int:
    world.reset_counts()
    work()
    return sum(port.calls.total() for port in (world.items, world.configs, world.objects))


@pytest.mark.parametrize("count", [1_000, 10_000])
def test_searching_items(count: int, figures: Figures, tmp_path: Path) -> None:
    world = filled(count)
    cold_calls = calls_of(world, lambda: world.find("the gateway"))
    warm_calls = calls_of(world, lambda: world.find("the gateway"))
    found = times_ms(lambda query: world.find(query, limit=20), QUERIES * 20)
    every = world.items.read_all([ItemId(f"{number:032x}") for number in range(count)]).values()
    plain = times_ms(lambda query: [item for item in every if query in searchable(item.draft)], QUERIES)

    close = world.similar_items()
    random = Random(8)  # noqa: S311 - the same proposals in each run
    proposals = [proposal(number, random) for number in range(10)]
    similar = times_ms(lambda one: close.closest(one, item_id=None), proposals)

    lists = calls_of(world, lambda: ItemIndex(world.items, ItemSnapshots(MemoryObjectStore())).refresh()) - 1
    stored = world.objects.read(KEY, max_bytes=10**9).body
    (tmp_path / "snapshot").write_bytes(stored)
    load = cost_of(LOAD, str(tmp_path / "snapshot"))
    assert load.told == count
    figures.record(
        count,
        item_search_ms=median(found),
        item_search_p99_ms=p99(found),
        item_normalised_search_ms=median(plain),
        item_normalised_to_search=median(plain) / median(found),
        item_search_calls=warm_calls,
        item_cold_search_calls=cold_calls,
        item_list_calls=lists,
        item_similar_ms=median(similar),
        item_snapshot_kb=len(stored) / 1000,
        item_load_s=load.elapsed_s,
        item_load_resident_mb=load.resident_mb,
        item_load_peak_mb=load.peak_mb,
    )
