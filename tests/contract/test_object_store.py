"""What every ObjectStore does."""

import unicodedata

import pytest

from knowledge.ports import ObjectStore

ODD_KEYS = [
    "kb/How to deploy (v2).md",
    "kb/a+b c%20d#e?f&g=h.md",
    "kb/文档/部署 指南.md",
    unicodedata.normalize("NFD", "kb/café-가.md"),
    unicodedata.normalize("NFC", "kb/café-가.md"),
    "kb/'quotes' \"double\" <tag>.md",
    "kb/a//b.md",
    "kb/" + "x" * 1000 + ".md",
]


def put(objects: ObjectStore, key: str, body: bytes = b"body") -> str:
    return objects.put(key, body, content_type="text/markdown")


class TestObjectStore:
    def test_what_was_put_is_read_byte_for_byte(self, objects: ObjectStore) -> None:
        body = b"\xef\xbb\xbf---\r\ntitle: x\r\n---\r\n\x00\xff"
        put(objects, "kb/a.md", body)
        stored = objects.read("kb/a.md", max_bytes=1000)
        assert stored is not None
        assert (stored.body, stored.info.size_bytes, stored.truncated) == (body, len(body), False)
        assert stored.info == objects.stat("kb/a.md")

    def test_a_missing_object_is_none(self, objects: ObjectStore) -> None:
        assert objects.read("kb/none.md", max_bytes=10) is None
        assert objects.stat("kb/none.md") is None

    @pytest.mark.parametrize(
        ("max_bytes", "body"), [(1, b"0"), (9, b"012345678"), (10, b"0123456789"), (99, b"0123456789")]
    )
    def test_a_ranged_read_gives_the_beginning_and_the_full_size(
        self, objects: ObjectStore, max_bytes: int, body: bytes
    ) -> None:
        put(objects, "kb/a.md", b"0123456789")
        stored = objects.read("kb/a.md", max_bytes=max_bytes)
        assert stored is not None
        assert (stored.body, stored.info.size_bytes, stored.truncated) == (body, 10, len(body) < 10)

    def test_an_empty_object_is_read(self, objects: ObjectStore) -> None:
        put(objects, "kb/empty.md", b"")
        stored = objects.read("kb/empty.md", max_bytes=10)
        assert stored is not None
        assert (stored.body, stored.info.size_bytes, stored.truncated) == (b"", 0, False)
        assert stored.info == objects.stat("kb/empty.md")

    @pytest.mark.parametrize("key", ODD_KEYS)
    def test_keys_are_kept_verbatim(self, objects: ObjectStore, key: str) -> None:
        put(objects, key, key.encode())
        stored = objects.read(key, max_bytes=2000)
        assert stored is not None
        assert stored.body == key.encode()
        assert [info.key for info in objects.list("kb/")] == [key]
        objects.delete(key)
        assert objects.stat(key) is None

    def test_two_compositions_of_a_name_are_two_objects(self, objects: ObjectStore) -> None:
        put(objects, "kb/\u00e9.md", b"composed")
        put(objects, "kb/e\u0301.md", b"decomposed")
        assert [info.size_bytes for info in objects.list("kb/")] == [10, 8]

    def test_the_listing_is_in_order_of_utf8_bytes_and_only_under_the_prefix(self, objects: ObjectStore) -> None:
        names = ["b", "B", "a/z", "a b", "a-b", "é", "中", "\uff21", "\U0001f600", "a"]
        for name in [*names, "../kc/other"]:
            put(objects, f"kb/{name}")
        put(objects, "kc/other.md")
        assert [info.key for info in objects.list("kb/")] == sorted(
            (f"kb/{name}" for name in [*names, "../kc/other"]), key=str.encode
        )

    def test_a_listing_over_several_pages_is_whole_and_in_order(self, objects: ObjectStore) -> None:
        keys = [f"kb/{number:04}.md" for number in range(1005)]
        for key in reversed(keys):
            put(objects, key)
        assert [info.key for info in objects.list("kb/")] == keys
        assert [info.key for info in objects.list("kb/", after="kb/0001.md")] == keys[2:]

    def test_a_listing_can_begin_after_any_key(self, objects: ObjectStore) -> None:
        keys = sorted(
            (f"kb/{name}.md" for name in ["B", "a", "a b", "é", "中", "\uff21", "\U0001f600"]), key=str.encode
        )
        for key in keys:
            put(objects, key)
        for place, key in enumerate(keys):
            assert [info.key for info in objects.list("kb/", after=key)] == keys[place + 1 :]
            assert [info.key for info in objects.list("kb/", after=key[:-1])] == keys[place:]
        assert [info.key for info in objects.list("kb/", after="kb")] == keys

    def test_an_empty_prefix_lists_nothing(self, objects: ObjectStore) -> None:
        assert list(objects.list("kb/")) == []

    def test_the_etag_changes_with_the_content_only_and_the_version_with_every_put(self, objects: ObjectStore) -> None:
        put(objects, "kb/a.md", b"one")
        first = objects.stat("kb/a.md")
        put(objects, "kb/a.md", b"two")
        second = objects.stat("kb/a.md")
        put(objects, "kb/a.md", b"one")
        third = objects.stat("kb/a.md")
        assert first is not None
        assert second is not None
        assert third is not None
        assert first.etag == third.etag != second.etag
        assert len({first.version_id, second.version_id, third.version_id}) == 3
        read = objects.read("kb/a.md", max_bytes=10)
        assert read is not None
        assert read.info == third
        assert '"' not in first.etag

    def test_removing_the_newest_version_makes_the_one_before_current(self, objects: ObjectStore) -> None:
        put(objects, "kb/a.md", b"one")
        version = put(objects, "kb/a.md", b"two")
        objects.delete_version("kb/a.md", version)
        stored = objects.read("kb/a.md", max_bytes=10)
        assert stored is not None
        assert stored.body == b"one"

    def test_removing_the_only_version_leaves_nothing(self, objects: ObjectStore) -> None:
        version = put(objects, "kb/a.md")
        objects.delete_version("kb/a.md", version)
        assert objects.stat("kb/a.md") is None
        assert list(objects.list("kb/")) == []

    def test_removing_an_older_version_changes_nothing_current(self, objects: ObjectStore) -> None:
        version = put(objects, "kb/a.md", b"one")
        put(objects, "kb/a.md", b"two")
        objects.delete_version("kb/a.md", version)
        stored = objects.read("kb/a.md", max_bytes=10)
        assert stored is not None
        assert stored.body == b"two"

    def test_deleting_hides_the_object_and_a_new_put_shows_it_again(self, objects: ObjectStore) -> None:
        put(objects, "kb/a.md", b"one")
        objects.delete("kb/a.md")
        assert objects.read("kb/a.md", max_bytes=10) is None
        assert list(objects.list("")) == []
        version = put(objects, "kb/a.md", b"two")
        assert objects.stat("kb/a.md") is not None
        objects.delete_version("kb/a.md", version)
        assert objects.stat("kb/a.md") is None

    def test_deleting_what_is_not_there_is_no_error(self, objects: ObjectStore) -> None:
        objects.delete("kb/none.md")
        assert objects.stat("kb/none.md") is None

    def test_a_download_url_names_the_key(self, objects: ObjectStore) -> None:
        url = objects.download_url("kb/部署 a+b.md", expires_s=60)
        assert "kb/%E9%83%A8%E7%BD%B2%20a%2Bb.md" in url
