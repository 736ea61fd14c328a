"""What S3 itself makes of a change in the bucket."""

from typing import Any

import pytest

from tests.e2e.conftest import Stack, eventually
from tests.e2e.test_documents import unique, with_keyword

pytestmark = pytest.mark.e2e


def test_a_multipart_upload_is_found(stack: Stack) -> None:
    keyword, key = unique(), "knowledge_base/dropped/in parts.md"
    where: dict[str, Any] = {"Bucket": stack.bucket, "Key": key}
    upload_id = stack.s3.create_multipart_upload(**where)["UploadId"]
    stack.dropped.add(key)
    part = stack.s3.upload_part(**where, UploadId=upload_id, PartNumber=1, Body=with_keyword(keyword))
    parts = [{"PartNumber": 1, "ETag": part["ETag"]}]
    stack.s3.complete_multipart_upload(**where, UploadId=upload_id, MultipartUpload={"Parts": parts})  # type: ignore[typeddict-item]
    eventually(lambda: stack.lookup(keyword)["found"])
    stack.s3.put_object(**where, Body=with_keyword(other := unique()))
    eventually(lambda: stack.lookup(other)["found"])
    assert stack.lookup(keyword)["found"] is False


def test_a_delete_marker_removes_a_document_and_the_loss_of_an_old_version_does_not_B10(stack: Stack) -> None:
    key, keywords = "knowledge_base/dropped/marked.md", [unique(), unique()]
    versions = []
    for keyword in keywords:
        versions.append(stack.s3.put_object(Bucket=stack.bucket, Key=key, Body=with_keyword(keyword))["VersionId"])
        stack.dropped.add(key)
        eventually(lambda keyword=keyword: stack.lookup(keyword)["found"])  # type: ignore[misc]
    stack.s3.delete_object(Bucket=stack.bucket, Key=key, VersionId=versions[0])
    marker = stack.s3.delete_object(Bucket=stack.bucket, Key=key)["VersionId"]
    eventually(lambda: not stack.lookup(keywords[1])["found"])
    stack.s3.delete_object(Bucket=stack.bucket, Key=key, VersionId=marker)
    # Amazon's S3 sends no event for this one; the upload of another version then is one.
    stack.s3.copy_object(Bucket=stack.bucket, Key=key, CopySource={"Bucket": stack.bucket, "Key": key})
    eventually(lambda: stack.lookup(keywords[1])["found"])
    assert stack.lookup(keywords[0])["found"] is False


def test_a_batch_deletion_is_followed_for_every_key(stack: Stack) -> None:
    keyword = unique()
    keys = [f"knowledge_base/dropped/batch/{number}.md" for number in range(3)]
    for key in keys:
        stack.drop(key, with_keyword(keyword))
    eventually(lambda: all(stack.document_at(key) for key in keys))
    stack.s3.delete_objects(Bucket=stack.bucket, Delete={"Objects": [{"Key": key} for key in keys]})
    eventually(lambda: not any(stack.document_at(key) for key in keys))
    assert stack.lookup(keyword)["found"] is False
