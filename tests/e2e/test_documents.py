"""Documents over the API and through the bucket."""

import json
import threading
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.conftest import Stack, eventually

pytestmark = pytest.mark.e2e
CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "frontmatter.jsonl").read_text(encoding="utf-8").splitlines()
]
NAMES = ["How to deploy (v2).md", "部署 指南.md", "a+b.md", "100%25.md", "x#1&y=2.md", "e\u0301.md"]


def unique() -> str:
    """A keyword nobody else uses."""
    return f"E2E-{uuid.uuid4().hex[:12].upper()}"


def with_keyword(keyword: str, body: str = "Some text.") -> bytes:
    return f"---\ntitle: A title\nkeywords: [{keyword}]\n---\n{body}\n".encode()


def test_an_upload_is_found_by_the_very_next_lookup_and_a_deleted_document_by_neither_tier(stack: Stack) -> None:
    for _ in range(5):
        keyword = unique()
        sentence = f"The purple elevator {keyword[4:].lower()} must be greased before the parade."
        document = stack.upload("found.md", with_keyword(keyword, sentence))
        assert document["status"] == "INDEXED"
        body = stack.lookup(keyword)
        assert body["primary"]["source"] == document["file_path"]
        assert body["primary"]["confidence"] == "high"
        assert stack.lookup("greasing the purple elevator before the parade")["supplement"] is not None
        assert stack.api.delete(f"/documents/{document['doc_id']}").status_code == 200
        assert stack.lookup(keyword)["found"] is False
        assert stack.lookup("greasing the purple elevator before the parade")["found"] is False
        assert stack.api.get(f"/documents/{document['doc_id']}").status_code == 404


def test_every_instance_sees_an_upload_at_once(stack: Stack) -> None:
    keyword = unique()
    document = stack.upload("seen.md", with_keyword(keyword))
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(stack.lookup(keyword))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer["primary"]["source"] for answer in answers] == [document["file_path"]] * 8


@pytest.mark.parametrize("name", NAMES)
def test_names_as_people_have_them_work_for_put_and_by_id(stack: Stack, name: str) -> None:
    content = b"\xef\xbb\xbf" + with_keyword(unique(), "第一行\r\nsecond line\t\u200b")
    answer = stack.api.put(
        f"/documents/{quote('运维 e2e', safe='')}/{quote(name, safe='')}",
        content=content,
        headers={"Content-Type": "text/markdown"},
    )
    assert answer.status_code in (200, 201), answer.text
    document = answer.json()
    stack.uploaded.add(document["doc_id"])
    assert document["file_path"] == f"knowledge_base/运维 e2e/{name}"
    assert stack.s3.get_object(Bucket=stack.bucket, Key=document["file_path"])["Body"].read() == content
    assert stack.api.get(f"/documents/{document['doc_id']}").json()["file_path"] == document["file_path"]
    assert stack.api.get(f"/documents/{document['doc_id']}/content").content == content
    assert stack.api.delete(f"/documents/{document['doc_id']}").status_code == 200


@pytest.mark.parametrize("name", NAMES)
def test_a_dropped_file_is_found_and_one_taken_away_is_not_B01(stack: Stack, name: str) -> None:
    keyword, key = unique(), f"knowledge_base/dropped/文档/{name}"
    stack.drop(key, with_keyword(keyword))
    eventually(lambda: stack.lookup(keyword)["found"])
    assert eventually(lambda: stack.document_at(key))["status"] == "INDEXED"
    stack.s3.delete_object(Bucket=stack.bucket, Key=key)
    eventually(lambda: not stack.lookup(keyword)["found"])
    eventually(lambda: stack.document_at(key) is None)


def test_a_renamed_file_is_found_under_its_new_name_only(stack: Stack) -> None:
    keyword = unique()
    old, new = "knowledge_base/dropped/old.md", "knowledge_base/dropped/new.md"
    stack.drop(old, with_keyword(keyword))
    eventually(lambda: stack.document_at(old))
    stack.s3.copy_object(Bucket=stack.bucket, Key=new, CopySource={"Bucket": stack.bucket, "Key": old})
    stack.dropped.add(new)
    stack.s3.delete_object(Bucket=stack.bucket, Key=old)
    eventually(lambda: stack.document_at(new) and not stack.document_at(old))
    body = stack.lookup(keyword)
    assert (body["primary"]["source"], body["primary"]["confidence"]) == (new, "high")


def test_replacing_and_restoring_a_version_is_followed_B10(stack: Stack) -> None:
    first, second, key = unique(), unique(), "knowledge_base/dropped/versions.md"
    stack.drop(key, with_keyword(first))
    eventually(lambda: stack.lookup(first)["found"])
    newer = stack.s3.put_object(Bucket=stack.bucket, Key=key, Body=with_keyword(second))
    eventually(lambda: stack.lookup(second)["found"])
    assert stack.lookup(first)["found"] is False
    stack.s3.delete_object(Bucket=stack.bucket, Key=key, VersionId=newer["VersionId"])
    eventually(lambda: stack.lookup(first)["found"])
    assert stack.lookup(second)["found"] is False


def test_folder_markers_and_other_types_are_ignored_B06(stack: Stack) -> None:
    for key in ("knowledge_base/dropped/folder/", "knowledge_base/dropped/photo.png"):
        stack.drop(key, b"")
    keyword, key = unique(), "knowledge_base/dropped/after.md"
    stack.drop(key, with_keyword(keyword))
    eventually(lambda: stack.lookup(keyword)["found"])
    assert stack.document_at("knowledge_base/dropped/folder/") is None
    assert stack.document_at("knowledge_base/dropped/photo.png") is None


def test_a_dropped_file_that_cannot_be_read_is_listed_as_failed_with_the_reason(stack: Stack) -> None:
    key = "knowledge_base/dropped/latin1.md"
    stack.drop(key, b"caf\xe9")
    document = eventually(lambda: stack.document_at(key))
    assert document["status"] == "FAILED"
    assert "UTF-8" in document["reason"]
    stack.s3.delete_object(Bucket=stack.bucket, Key=key)
    eventually(lambda: stack.document_at(key) is None)


def test_an_empty_file_is_listed_with_a_warning_B06(stack: Stack) -> None:
    key = "knowledge_base/dropped/empty.md"
    stack.drop(key, b"")
    assert "empty document" in eventually(lambda: stack.document_at(key))["warnings"][0]


def check_case(case: dict[str, Any], document: dict[str, Any]) -> None:
    expected = case["expected"]
    assert document["status"] == "INDEXED", case["id"]
    assert (document["metadata"] is not None) is expected["frontmatter"], case["id"]
    if expected.get("title"):
        assert document["title"] == expected["title"], case["id"]
    if "warning_mentions" in expected:
        assert any(expected["warning_mentions"] in warning for warning in document["warnings"]), case["id"]


def test_files_as_people_really_have_them_are_taken_by_upload_and_by_drop_byte_for_byte(stack: Stack) -> None:
    for case in CASES:
        stack.drop(f"knowledge_base/cases-dropped/{case['id']}.md", case["input"].encode())
    for case in CASES:
        document = stack.upload(f"{case['id']}.md", case["input"].encode(), category="cases-uploaded")
        check_case(case, document)
        assert stack.api.get(f"/documents/{document['doc_id']}/content").content == case["input"].encode()
    for case in CASES:
        key = f"knowledge_base/cases-dropped/{case['id']}.md"
        found = eventually(lambda key=key: stack.document_at(key))  # type: ignore[misc]
        check_case(case, stack.api.get(f"/documents/{found['doc_id']}").json())
        assert stack.s3.get_object(Bucket=stack.bucket, Key=key)["Body"].read() == case["input"].encode()
