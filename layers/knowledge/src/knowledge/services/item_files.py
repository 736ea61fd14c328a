"""The files of knowledge items in the bucket: whether they say what the items say, and making them do so."""

import hashlib
from collections.abc import Mapping

from knowledge.domain.document import MEDIA_TYPE, KnowledgeBasePath
from knowledge.domain.item import Item, item_named_by
from knowledge.errors import AccessRefused
from knowledge.parsing.item_document import render
from knowledge.ports import ItemStore, ObjectStore


class ItemFiles:
    """Looks at files and writes them. Knows nothing of what is indexed."""

    def __init__(self, store: ItemStore, objects: ObjectStore, base: KnowledgeBasePath) -> None:
        """`store` holds the items whose files are under `base`."""
        self._store = store
        self._objects = objects
        self._base = base

    def make_right(self, path: str, item: Item) -> str | None:
        """The file is what the item says; returns its version, None when there must not be one.

        One read; and a write when something else is there.
        """
        wanted = self._wanted(path, item)
        is_right, version_id = self._look(path, wanted)
        if is_right:
            return version_id
        if wanted is not None:
            return self._objects.put(path, wanted, content_type=MEDIA_TYPE)
        self._objects.delete(path)
        return None

    def wrong(self, listed: Mapping[str, str | None]) -> Mapping[str, Item]:
        """Those of the paths that name an item and whose file is not what that says, with the item.

        `listed` has the ETag of each file as it was listed, None where there was none; a file that it shows to be right
        is not looked at. A call for each hundred items, a read for each file that seems wrong; none for other paths.
        """
        named = {path: item_id for path in listed if (item_id := item_named_by(path, self._base))}
        items = self._store.read_all(set(named.values())) if named else {}
        found = {path: items[item_id] for path, item_id in named.items() if item_id in items}
        return {path: item for path, item in found.items() if self._is_wrong(path, item, listed[path])}

    def version_of(self, path: str) -> str | None:
        """The version of the file that is there; None when there is none, or when that is not told."""
        try:
            info = self._objects.stat(path)
        except AccessRefused:
            return None
        return info.version_id if info else None

    def _is_wrong(self, path: str, item: Item, etag: str | None) -> bool:
        wanted = self._wanted(path, item)
        # Source: Amazon S3 API reference, "Object": the ETag of an object put whole and encrypted by S3 is its MD5.
        if etag == (None if wanted is None else hashlib.md5(wanted, usedforsecurity=False).hexdigest()):
            return False
        return not self._look(path, wanted)[0]

    def _wanted(self, path: str, item: Item) -> bytes | None:
        is_its_place = item.is_published and path == item.file_path(self._base)
        return render(item.draft) if is_its_place else None

    def _look(self, path: str, wanted: bytes | None) -> tuple[bool, str | None]:
        """Whether the file is what is wanted, and the version that is there."""
        try:
            stored = self._objects.read(path, max_bytes=len(wanted or b"") + 1)
        except AccessRefused:  # something is there, and it is not what was written here
            return False, None
        if stored is None:
            return wanted is None, None
        return stored.body == wanted, stored.info.version_id
