import io
import logging
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.response import StreamingBody
from moto import mock_aws
from urllib3 import HTTPConnectionPool
from urllib3.exceptions import ProtocolError
from urllib3.exceptions import ReadTimeoutError as NetworkTimeoutError

from knowledge.adapters.aws_clients import s3_client_config
from knowledge.adapters.s3 import S3ObjectStore
from knowledge.errors import DependencyUnavailable
from tests.unit.adapters.aws import ScriptedClient, refused

BUCKET = "bucket"
KEY = "kb/部署 a+b.md"
TIMEOUT = ReadTimeoutError(endpoint_url="https://s3.example")


class FaultyClient:
    """A client of moto whose next `put_object` fails as told, before or after it took effect."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.before: Exception | None = None
        self.after: Exception | None = None
        self.meanwhile: bytes | None = None
        self.retried_with_effect = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def put_object(self, **parameters: Any) -> Any:
        if self.before is not None:
            raise self.before
        if self.retried_with_effect:
            self._client.put_object(**parameters)
        answer = self._client.put_object(**parameters)
        if self.meanwhile is not None:
            self._client.put_object(Bucket=BUCKET, Key=KEY, Body=self.meanwhile)
        if self.after is not None:
            raise self.after
        answer["ResponseMetadata"]["RetryAttempts"] = int(self.retried_with_effect)
        return answer


@pytest.fixture
def client() -> Iterator[FaultyClient]:
    with mock_aws():
        real = boto3.client("s3", region_name="us-east-1", config=s3_client_config())
        real.create_bucket(Bucket=BUCKET)
        real.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        yield FaultyClient(real)


def bodies(client: FaultyClient) -> list[bytes]:
    """Bodies of all versions of the key, newest first."""
    versions = client.list_object_versions(Bucket=BUCKET, Prefix=KEY).get("Versions", [])
    return [
        client.get_object(Bucket=BUCKET, Key=KEY, VersionId=version["VersionId"])["Body"].read()
        for version in versions
        if version["Key"] == KEY
    ]


def put(client: Any, body: bytes) -> str:
    return S3ObjectStore(client, BUCKET).put(KEY, body, content_type="text/markdown")


@pytest.mark.parametrize("fault", [TIMEOUT, refused("InternalError", 500), refused("SlowDown", 503, retries=2)])
def test_a_put_that_failed_after_it_took_effect_leaves_the_previous_version(
    client: FaultyClient, fault: Exception
) -> None:
    put(client, b"previous")
    client.after = fault
    with pytest.raises(DependencyUnavailable):
        put(client, b"failed!!")
    assert bodies(client) == [b"previous"]


def test_a_put_that_failed_before_it_took_effect_leaves_the_previous_version(client: FaultyClient) -> None:
    put(client, b"previous")
    client.before = TIMEOUT
    with pytest.raises(DependencyUnavailable):
        put(client, b"failed!!")
    assert bodies(client) == [b"previous"]


def test_a_failed_put_leaves_alone_what_somebody_else_wrote_on_top(client: FaultyClient) -> None:
    client.after, client.meanwhile = TIMEOUT, b"theirs!!"
    with pytest.raises(DependencyUnavailable):
        put(client, b"failed!!")
    assert bodies(client) == [b"theirs!!"]


def test_a_put_that_the_sdk_had_to_repeat_leaves_one_version(client: FaultyClient) -> None:
    put(client, b"previous")
    client.retried_with_effect = True
    version = put(client, b"repeated")
    assert bodies(client) == [b"repeated", b"previous"]
    S3ObjectStore(client, BUCKET).delete_version(KEY, version)  # type: ignore[arg-type]
    assert bodies(client) == [b"previous"]


def test_other_keys_that_begin_alike_are_left_alone(client: FaultyClient) -> None:
    client.put_object(Bucket=BUCKET, Key=KEY + ".md", Body=b"failed!!")
    client.after = TIMEOUT
    with pytest.raises(DependencyUnavailable):
        put(client, b"failed!!")
    assert client.get_object(Bucket=BUCKET, Key=KEY + ".md")["Body"].read() == b"failed!!"


def test_a_version_that_cannot_be_looked_for_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    client = ScriptedClient(put_object=[TIMEOUT], list_object_versions=[refused("AccessDenied", 403)])
    with pytest.raises(DependencyUnavailable), caplog.at_level(logging.WARNING):
        put(client, b"failed!!")
    assert [record.message for record in caplog.records] == ["object_version_left_behind"]
    assert caplog.records[0].__dict__["key"] == KEY


def test_a_refused_put_makes_no_other_call() -> None:
    client = ScriptedClient(put_object=[refused("AccessDenied", 403)])
    with pytest.raises(DependencyUnavailable):
        put(client, b"failed!!")


def test_the_id_in_a_bucket_without_versions_is_the_one_s3_knows() -> None:
    client = ScriptedClient(put_object=[{"ResponseMetadata": {"RetryAttempts": 0}}])
    assert put(client, b"body") == "null"


def test_content_type_and_upload_id_are_stored(client: FaultyClient) -> None:
    put(client, b"body")
    head = client.head_object(Bucket=BUCKET, Key=KEY)
    assert head["ContentType"] == "text/markdown"
    assert len(head["Metadata"]["upload-id"]) == 32


class BrokenStream(io.BytesIO):
    """What the network library gives the SDK, when the connection breaks while the body arrives."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def read(self, size: int | None = -1, /) -> bytes:
        raise self._error


@pytest.mark.parametrize("error", [ProtocolError("cut"), NetworkTimeoutError(HTTPConnectionPool("s3"), "", "late")])
def test_a_read_that_breaks_off_is_an_unavailable_dependency(error: Exception) -> None:
    body = StreamingBody(BrokenStream(error), 10)
    answer = {"Body": body, "ETag": '"e"', "ContentLength": 10, "ContentRange": "bytes 0-9/10"}
    store = S3ObjectStore(ScriptedClient(get_object=[answer]), BUCKET)  # type: ignore[arg-type]
    with pytest.raises(DependencyUnavailable):
        store.read(KEY, max_bytes=10)


def test_an_object_written_between_both_calls_for_an_empty_one_is_read() -> None:
    answer = {"Body": io.BytesIO(b"0123456789"), "ETag": '"e"', "ContentLength": 10}
    client = ScriptedClient(get_object=[refused("InvalidRange", 416), answer])
    stored = S3ObjectStore(client, BUCKET).read(KEY, max_bytes=4)  # type: ignore[arg-type]
    assert stored is not None
    assert (stored.body, stored.info.size_bytes, stored.truncated) == (b"0123", 10, True)


@pytest.mark.parametrize("code", ["403", "NoSuchBucket", "500"])
def test_only_absence_is_none(code: str) -> None:
    client = ScriptedClient(get_object=[refused(code)], head_object=[refused(code)])
    store = S3ObjectStore(client, BUCKET)  # type: ignore[arg-type]
    with pytest.raises(DependencyUnavailable):
        store.read(KEY, max_bytes=4)
    with pytest.raises(DependencyUnavailable):
        store.stat(KEY)


def test_a_download_url_is_signed_and_makes_no_call(client: FaultyClient) -> None:
    url = S3ObjectStore(client, BUCKET).download_url(KEY, expires_s=60)  # type: ignore[arg-type]
    assert "X-Amz-Signature=" in url
    assert "X-Amz-Expires=60" in url
