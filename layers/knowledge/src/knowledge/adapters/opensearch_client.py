"""Makes the client of OpenSearch: signed or not, with short timeouts. Knows no index."""

from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import boto3
import urllib3
from opensearchpy import OpenSearch, Urllib3AWSV4SignerAuth, Urllib3HttpConnection
from opensearchpy.exceptions import SerializationError
from opensearchpy.serializer import JSONSerializer
from pydantic_core import from_json, to_json

from knowledge.adapters.aws_clients import aws_client_config
from knowledge.errors import ConfigError

if TYPE_CHECKING:
    from botocore.credentials import Credentials

Service = Literal["es", "aoss"]


def opensearch_client(
    url: str, *, service: Service | None = None, region: str | None = None, credentials: "Credentials | None" = None
) -> OpenSearch:
    """A client for the one endpoint `url`; makes no call.

    `service` is what requests are signed for: `es` a managed domain, `aoss` Serverless, None a node without access
    control. `credentials` are those of the process unless given. Each request carries the hash of its content in
    x-amz-content-sha256; Serverless refuses requests without it (Source: OpenSearch Service guide, "Signing HTTP
    requests to Amazon OpenSearch Serverless"). Nothing is tried twice here, because only the adapter knows which call
    may be.

    Raises:
        ConfigError: `url` is no http(s) address, or there is nothing to sign with.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{url!r} is no address of OpenSearch: it has to start with https:// or http://")
    limits: Any = aws_client_config()
    return OpenSearch(
        hosts=[
            {
                "host": parts.hostname,
                "port": parts.port or (443 if parts.scheme == "https" else 80),
                "scheme": parts.scheme,
                "url_prefix": parts.path.strip("/"),
            }
        ],
        http_auth=_signer(service, region, credentials) if service else None,
        connection_class=Urllib3HttpConnection,
        timeout=urllib3.Timeout(connect=limits.connect_timeout, read=limits.read_timeout),
        pool_maxsize=limits.max_pool_connections,
        max_retries=0,
        serializer=_Json(),
    )


class _Json(JSONSerializer):
    """JSON by pydantic, much faster than by Python itself: an answer with vectors is some hundred kilobytes."""

    def loads(self, s: str) -> Any:
        """What `s` says. Raises SerializationError when it is no JSON."""
        try:
            return from_json(s, cache_strings="keys")
        except ValueError as error:
            raise SerializationError(s, error) from error

    def dumps(self, data: Any) -> Any:
        """`data` as JSON; text is taken to be JSON already."""
        return data if isinstance(data, str | bytes) else to_json(data).decode()


def _signer(service: Service, region: str | None, credentials: "Credentials | None") -> Urllib3AWSV4SignerAuth:
    found = credentials or boto3.Session().get_credentials()
    if found is None:
        raise ConfigError("there are no AWS credentials to sign requests to OpenSearch with")
    if not region:
        raise ConfigError("the AWS region is needed to sign requests to OpenSearch")
    return Urllib3AWSV4SignerAuth(found, region, service)
