"""What a command on one knowledge item asks first: who may be told of it, and for which version it was meant."""

from knowledge.domain.access import Principal
from knowledge.domain.item import Item, ItemId, is_item_id
from knowledge.domain.lifecycle import may_see
from knowledge.errors import NotFound, Outdated
from knowledge.ports import ItemStore


def stored(store: ItemStore, item_id: ItemId) -> Item:
    """The item, whoever asks: `refuse_unless` has to follow. Raises NotFound when there is none."""
    item = store.read(item_id) if is_item_id(item_id) else None
    if item is None:
        raise _not_found()
    return item


def visible(store: ItemStore, item_id: ItemId, principal: Principal) -> Item:
    """The item, if this caller may read it. Raises NotFound otherwise, as if there were none."""
    item = stored(store, item_id)
    refuse_unless(may_see(item, principal))
    return item


def refuse_unless(is_told: bool) -> None:
    """Raises NotFound for a caller who may not know of the item."""
    if not is_told:
        raise _not_found()


def require_version(item: Item, expected: int) -> None:
    """Raises Outdated, which names version and status of the item, when it is not the expected version."""
    if item.version != expected:
        message = f"the item is version {item.version} and {item.status} by now; the command was made for {expected}"
        raise Outdated(message, version=item.version, status=item.status)


def _not_found() -> NotFound:
    return NotFound("no item has this id")
