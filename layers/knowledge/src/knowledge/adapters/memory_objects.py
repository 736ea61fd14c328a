"""Memory twin of the object store: versions and delete markers in a dict, for tests and for trying the services."""

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Lock
from urllib.parse import quote

from knowledge.ports import ObjectInfo, StoredObject


@dataclass(frozen=True, slots=True)
class _Version:
    """One version of an object; a delete marker has nothing stored."""

    version_id: str
    stored: StoredObject | None


class MemoryObjectStore:
    """ObjectStore over a dict; one lock makes every method atomic. Content types are not kept."""

    def __init__(self) -> None:
        """An empty store."""
        self._lock = Lock()
        self._ids = itertools.count(1)
        self._versions: dict[str, tuple[_Version, ...]] = {}

    def put(self, key: str, body: bytes, *, content_type: str) -> str:
        """See ObjectStore."""
        return self._append(key, bytes(body))

    def read(self, key: str, *, max_bytes: int) -> StoredObject | None:
        """See ObjectStore."""
        stored = self._current(key)
        return None if stored is None else StoredObject(stored.info, stored.body[:max_bytes])

    def stat(self, key: str) -> ObjectInfo | None:
        """See ObjectStore."""
        stored = self._current(key)
        return None if stored is None else stored.info

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        """See ObjectStore; the listing is of the moment of the call."""
        with self._lock:
            latest = [versions[-1].stored for key, versions in self._versions.items() if key.startswith(prefix)]
        # Strings compare by code point, and UTF-8 keeps that order.
        infos = (replace(one.info, version_id=None) for one in latest if one is not None and one.info.key > after)
        return iter(sorted(infos, key=lambda info: info.key))

    def delete(self, key: str) -> None:
        """See ObjectStore; as in S3, a delete marker is written even when there is nothing."""
        self._append(key, None)

    def delete_version(self, key: str, version_id: str) -> None:
        """See ObjectStore."""
        with self._lock:
            left = tuple(item for item in self._versions.get(key, ()) if item.version_id != version_id)
            if left:
                self._versions[key] = left
            else:
                self._versions.pop(key, None)

    def download_url(self, key: str, *, expires_s: int) -> str:
        """See ObjectStore; nothing serves this URL."""
        return f"memory:///{quote(key)}?expires_s={expires_s}"

    def version_ids(self, key: str) -> tuple[str, ...]:
        """Ids of every version and delete marker of `key`, oldest first."""
        with self._lock:
            return tuple(item.version_id for item in self._versions.get(key, ()))

    def _append(self, key: str, body: bytes | None) -> str:
        with self._lock:
            version_id = f"v{next(self._ids)}"
            stored = None if body is None else StoredObject(_info(key, body, version_id), body)
            self._versions[key] = (*self._versions.get(key, ()), _Version(version_id, stored))
            return version_id

    def _current(self, key: str) -> StoredObject | None:
        with self._lock:
            versions = self._versions.get(key, ())
            return versions[-1].stored if versions else None


def _info(key: str, body: bytes, version_id: str) -> ObjectInfo:
    etag = hashlib.md5(body, usedforsecurity=False).hexdigest()
    return ObjectInfo(key, etag, len(body), version_id)
