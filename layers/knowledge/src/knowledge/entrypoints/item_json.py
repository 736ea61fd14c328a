"""Knowledge items in the API's JSON."""

from typing import Any

from knowledge.domain.document import KnowledgeBasePath
from knowledge.domain.item import Embedding, Item
from knowledge.domain.timeline import Event
from knowledge.ports import ItemPage
from knowledge.services.items import Reviewed
from knowledge.services.similar_items import Similar


def item_json(item: Item, base: KnowledgeBasePath) -> dict[str, Any]:
    """All that is known of one item; times are ISO 8601 in UTC."""
    draft = item.draft
    return {
        "id": item.item_id,
        "kind": draft.kind.value,
        "title": draft.title,
        "content": draft.content,
        "tags": list(draft.tags),
        "status": item.status.value,
        "confidence": draft.confidence,
        "reuse_count": item.reuse_count,
        "source_ref": draft.source_ref,
        "created_by": item.created_by,
        "created_at": item.created_at.isoformat(),
        "updated_by": item.updated_by,
        "updated_at": item.updated_at.isoformat(),
        "version": item.version,
        "embedding": item.embedding and _embedding_json(item.embedding),
        "file_path": item.file_path(base) if item.is_published else None,
    }


def reviewed_json(reviewed: Reviewed, base: KnowledgeBasePath) -> dict[str, Any]:
    """An item, and in `similar` the published ones that are close to it, the closest first."""
    similar = [_similar_json(one, base) for one in reviewed.similar]
    return {**item_json(reviewed.item, base), "similar": similar}


def page_json(page: ItemPage, base: KnowledgeBasePath) -> dict[str, Any]:
    """One page of a list of items."""
    return {"items": [item_json(item, base) for item in page.items], "next_cursor": page.next_cursor}


def event_json(event: Event) -> dict[str, Any]:
    """One entry of a timeline."""
    return {
        "type": event.type.value,
        "actor": event.actor,
        "at": event.at.isoformat(),
        "version": event.version,
        "details": dict(event.details),
    }


def _similar_json(similar: Similar, base: KnowledgeBasePath) -> dict[str, Any]:
    return {
        "item": item_json(similar.item, base),
        "similarity": round(similar.similarity, 4),
        "measure": similar.measure.value,
        "diff": similar.diff,
    }


def _embedding_json(embedding: Embedding) -> dict[str, Any]:
    return {
        "state": embedding.state.value,
        "reason": embedding.reason,
        "attempts": embedding.attempts,
        "next_try_at": embedding.next_try_at and embedding.next_try_at.isoformat(),
    }
