"""Knowledge items beside the documents of a World: what the tests of searching them stand on."""

from collections.abc import Sequence
from typing import Any

from knowledge.adapters.memory_items import MemoryConfigStore
from knowledge.domain.access import Principal, Role
from knowledge.domain.item import Draft, Embedding, EmbeddingState, Item, ItemId, ItemStatus, KnowledgeKind, new_item_id
from knowledge.domain.knowledge_config import KnowledgeConfig
from knowledge.domain.timeline import Event, created, edited, status_changed
from knowledge.parsing.item_document import render
from knowledge.services.item_decisions import ItemDecisions
from knowledge.services.item_index import ItemIndex
from knowledge.services.item_search import ItemSearch, ItemSearchResult
from knowledge.services.item_snapshots import ItemSnapshots
from knowledge.services.items import KnowledgeItems
from knowledge.services.near_items import NearItems
from knowledge.services.similar_items import SimilarItems
from tests.services.world import READER, Port, World

WRITER = Principal("proposer", Role.WRITER)
REVIEWER = Principal("curator", Role.REVIEWER)

_WAY_TO = {
    ItemStatus.CANDIDATE: (),
    ItemStatus.PENDING_REVIEW: (ItemStatus.PENDING_REVIEW,),
    ItemStatus.PUBLISHED: (ItemStatus.PENDING_REVIEW, ItemStatus.PUBLISHED),
    ItemStatus.ARCHIVED: (ItemStatus.ARCHIVED,),
}


def draft(title: str = "A lesson", content: str = "What was learnt.", **fields: Any) -> Draft:
    return Draft(fields.pop("kind", KnowledgeKind.PITFALL), title, content, **fields)


class ItemsWorld(World):
    """Items are written to their store as the commands do it, and a published one's document with them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.configs: Any = Port(MemoryConfigStore())
        self.item_index, self.item_search = self.item_instance()
        self.commands = KnowledgeItems(self.items, self.item_documents, self.similar_items(), now=lambda: self.now())
        self.decisions = ItemDecisions(self.items, self.item_documents, now=lambda: self.now())

    def item_instance(self, *, semantic_timeout_s: float = 5.0) -> tuple[ItemIndex, ItemSearch]:
        """A fresh index and search over the same stores, as another process would have them."""
        index = ItemIndex(self.items, ItemSnapshots(self.objects), now=lambda: self.now())
        near = NearItems(self.semantic, self.configs, self.base, timeout_s=semantic_timeout_s)
        return index, ItemSearch(index, self.items, near)

    def similar_items(self) -> SimilarItems:
        near = NearItems(self.semantic, self.configs, self.base, timeout_s=5.0)
        return SimilarItems(self.item_index, self.items, near)

    def add(
        self,
        title: str = "A lesson",
        content: str = "What was learnt.",
        *,
        status: ItemStatus = ItemStatus.PUBLISHED,
        reused: int = 0,
        **fields: Any,
    ) -> Item:
        """A new item of that status; one that was reused so often has no other way than being published."""
        at = self.now()
        item = Item(
            new_item_id(), draft(title, content, **fields), ItemStatus.CANDIDATE, "proposer", at, at, "proposer"
        )
        self.items.create(item, created(item))
        for after in _WAY_TO[status]:
            item = self.move(item, after)
        for _ in range(reused):
            item = self.items.record_reuse(item.item_id, actor="agent", at=self.now())
        return item

    def propose(self, title: str, content: str) -> Item:
        """As `add` for a published item, without a document: for tests without vectors."""
        at = self.now()
        item = Item(new_item_id(), draft(title, content), ItemStatus.PUBLISHED, "proposer", at, at, "proposer")
        self.items.create(item, created(item))
        return item

    def proposed(self, **fields: Any) -> Item:
        """A candidate, by the command."""
        return self.commands.knowledge_create(WRITER, draft(**fields)).item

    def decided(self, item: Item, *statuses: ItemStatus, by: Principal = REVIEWER) -> Item:
        """The item after these decisions, one after the other, by the command."""
        for status in statuses:
            item = self.decisions.knowledge_update_status(by, item.item_id, status, expected_version=item.version)
        return item

    def published(self, **fields: Any) -> Item:
        """A published item, by the commands."""
        return self.decided(self.proposed(**fields), ItemStatus.PENDING_REVIEW, ItemStatus.PUBLISHED)

    def events(self, item: Item) -> list[Event]:
        """The whole timeline."""
        return list(self.items.timeline(item.item_id, cursor=None, limit=100).events)

    def file_of(self, item: Item) -> bytes | None:
        """What the bucket holds in its place."""
        found = self.objects.read(item.file_path(self.base), max_bytes=1_000_000)
        return found and bytes(found.body)

    def assert_agreement(self) -> None:
        """Every item is settled, and file, index and lookups say what it says; titles and tags are unique."""
        published = {
            item.file_path(self.base): item
            for status in ItemStatus
            for item in self.items.list({status}, kind=None, cursor=None, limit=100).items
            if self.is_settled_and_shows(item)
        }
        files = {info.key for info in self.objects.list(self.base.prefix)}
        records = self.registry.list(path_prefix=self.base.prefix, status=None, cursor=None, limit=100).records
        assert files == {record.file_path for record in records} == set(published)
        live = {record.generation for record in records}
        assert {hit.file_path for hit in self.chunks("lesson") if hit.generation in live} == set(published)

    def is_settled_and_shows(self, item: Item) -> bool:
        """True for a published item; asserts that its document says what it says, and that no other has any."""
        assert item.is_settled
        assert self.file_of(item) == (render(item.draft) if item.is_published else None)
        assert item.embedding == (Embedding(EmbeddingState.READY) if item.is_published else None)
        for tag in item.draft.tags:
            primary = self.ask(tag).primary
            assert (primary.source if primary else None) == (item.file_path(self.base) if item.is_published else None)
        return item.is_published

    def move(self, item: Item, status: ItemStatus) -> Item:
        after = item.next(by="curator", at=self.now(), status=status)
        self.items.write(item, after, status_changed(item, after))
        return self._settled(item, after)

    def edit(self, item: Item, **fields: Any) -> Item:
        after = item.next(by="curator", at=self.now(), draft=draft(**fields))
        self.items.write(item, after, edited(item, after))
        return self._settled(item, after)

    def _settled(self, before: Item, after: Item) -> Item:
        path = after.file_path(self.base)
        if after.is_published:
            self.drop(path, f"---\ntitle: {after.draft.title}\n---\n\n{after.draft.content}\n")
        elif before.is_published:
            self.objects.delete(path)
        self.converger.converge(path)
        stored = self.items.read(after.item_id)
        embedding = Embedding(EmbeddingState.READY) if after.is_published else None
        settled = Item(
            **{name: getattr(stored, name) for name in Item.__slots__}
            | {"settled_version": after.version, "embedding": embedding}
        )
        self.items.settle(stored, settled, None)
        return settled

    def configure(self, **settings: Any) -> None:
        version = self.configs.read().version
        config = KnowledgeConfig(**settings)
        self.configs.write(config, expected_version=version, actor="admin", at=self.now())

    def find(self, query: str, principal: Principal = READER, **options: Any) -> ItemSearchResult:
        return self.item_search.knowledge_search(principal, query, **options)

    def reset_counts(self) -> None:
        super().reset_counts()
        self.items.calls.clear()
        self.configs.calls.clear()


def ids(result: ItemSearchResult) -> list[ItemId]:
    return [hit.item.item_id for hit in result.hits]


def ids_of(*items: Item) -> Sequence[ItemId]:
    return [item.item_id for item in items]
