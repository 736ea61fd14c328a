"""Objects in a versioned S3 bucket. Knows nothing of documents and of what keys mean."""

import logging
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from knowledge.adapters.aws_errors import aws_errors, error_code, may_have_taken_effect
from knowledge.ports import ObjectInfo, StoredObject

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import GetObjectOutputTypeDef, ListObjectsV2RequestPaginateTypeDef

_logger = logging.getLogger(__name__)

_S3 = "S3"
# Metadata that tells a version of ours from one that somebody else wrote at the same time.
_UPLOAD_ID = "upload-id"
# How many of a key's newest versions are looked at for one of ours. Source: own choice; a call makes at most three
# (one per attempt of the SDK), the others are what concurrent writers may have put on top meanwhile.
_VERSIONS_EXAMINED = 20


class S3ObjectStore:
    """ObjectStore over one bucket; thread-safe as the client is. Each method makes one call where nothing is said."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        """`client` is best made with `s3_client_config`; `bucket` must be versioned."""
        self._client = client
        self._bucket = bucket

    def put(self, key: str, body: bytes, *, content_type: str) -> str:
        """See ObjectStore.

        When it is not certain that nothing was stored, or when the SDK had to try again, versions of this call other
        than the one returned are looked for and removed: a listing, a HEAD for each candidate, a delete for each find.
        What S3 does after that look stays; such a version is found by its event.
        """
        upload_id = uuid4().hex
        with aws_errors(_S3):
            try:
                answer = self._client.put_object(
                    Bucket=self._bucket,
                    Key=key,
                    Body=body,
                    ContentType=content_type,
                    Metadata={_UPLOAD_ID: upload_id},
                )
            except (ClientError, BotoCoreError) as error:
                if may_have_taken_effect(error):
                    self._remove_versions(key, upload_id, len(body), keep=None)
                raise
        # Source: Amazon S3 user guide: an object of a bucket without versions has the version id `null`.
        version_id = answer.get("VersionId", "null")
        if answer["ResponseMetadata"]["RetryAttempts"]:
            self._remove_versions(key, upload_id, len(body), keep=version_id)
        return version_id

    def read(self, key: str, *, max_bytes: int) -> StoredObject | None:
        """See ObjectStore; an empty object takes a second call, because it has no range."""
        with aws_errors(_S3):
            try:
                answer = self._get(key, max_bytes)
            except ClientError as error:
                if error_code(error) != "NoSuchKey":
                    raise
                return None
            # Not `with answer["Body"]`: that is the stream without the SDK's mapping of its errors.
            with closing(answer["Body"]) as stream:
                body = stream.read(max_bytes) if max_bytes > 0 else b""
        # `bytes 0-99/1234`; absent when the whole object was sent.
        total = answer.get("ContentRange", "").rpartition("/")[2]
        size_bytes = int(total) if total else answer["ContentLength"]
        return StoredObject(ObjectInfo(key, _bare(answer["ETag"]), size_bytes, answer.get("VersionId")), body)

    def stat(self, key: str) -> ObjectInfo | None:
        """See ObjectStore."""
        with aws_errors(_S3):
            try:
                answer = self._client.head_object(Bucket=self._bucket, Key=key)
            except ClientError as error:
                if error_code(error) not in ("404", "NoSuchKey"):
                    raise
                return None
        return ObjectInfo(key, _bare(answer["ETag"]), answer["ContentLength"], answer.get("VersionId"))

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        """See ObjectStore; calls are made while the iterator is used."""
        wanted: ListObjectsV2RequestPaginateTypeDef = {"Bucket": self._bucket, "Prefix": prefix}
        if after:
            wanted["StartAfter"] = after
        pages = iter(self._client.get_paginator("list_objects_v2").paginate(**wanted))
        while True:
            with aws_errors(_S3):
                page = next(pages, None)
            if page is None:
                return
            for item in page.get("Contents", ()):
                yield ObjectInfo(item["Key"], _bare(item["ETag"]), item["Size"])

    def delete(self, key: str) -> None:
        """See ObjectStore; writes a delete marker."""
        with aws_errors(_S3):
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def delete_version(self, key: str, version_id: str) -> None:
        """See ObjectStore; the id of a delete marker brings back what it hides."""
        with aws_errors(_S3):
            self._client.delete_object(Bucket=self._bucket, Key=key, VersionId=version_id)

    def download_url(self, key: str, *, expires_s: int) -> str:
        """See ObjectStore; valid no longer than the credentials of the client are."""
        with aws_errors(_S3):
            return self._client.generate_presigned_url(
                "get_object", Params={"Bucket": self._bucket, "Key": key}, ExpiresIn=expires_s
            )

    def _get(self, key: str, max_bytes: int) -> "GetObjectOutputTypeDef":
        try:
            return self._client.get_object(Bucket=self._bucket, Key=key, Range=f"bytes=0-{max(max_bytes, 1) - 1}")
        except ClientError as error:
            if error_code(error) != "InvalidRange":
                raise
            return self._client.get_object(Bucket=self._bucket, Key=key)

    def _remove_versions(self, key: str, upload_id: str, size_bytes: int, *, keep: str | None) -> None:
        try:
            answer = self._client.list_object_versions(Bucket=self._bucket, Prefix=key, MaxKeys=_VERSIONS_EXAMINED)
            for version in answer.get("Versions", ()):
                version_id = version["VersionId"]
                if version["Key"] != key or version["Size"] != size_bytes or version_id == keep:
                    continue
                head = self._client.head_object(Bucket=self._bucket, Key=key, VersionId=version_id)
                if head["Metadata"].get(_UPLOAD_ID) == upload_id:
                    self._client.delete_object(Bucket=self._bucket, Key=key, VersionId=version_id)
        except (ClientError, BotoCoreError):
            # The caller learns of the failure that led here; this line is for whoever wonders about a stray version.
            _logger.warning("object_version_left_behind", extra={"key": key, "upload_id": upload_id})


def _bare(etag: str) -> str:
    return etag.strip('"')
