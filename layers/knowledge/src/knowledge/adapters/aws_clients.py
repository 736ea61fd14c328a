"""How every AWS client of this product behaves on the network. Makes no client and knows no endpoint."""

from botocore.config import Config

# The defaults of botocore are 60 s each, longer than any caller of ours waits. Inside a region a connection takes
# milliseconds; a read of 5 s still lets the largest document (4 MiB) through at 1 MB/s.
# Source: botocore.config.Config, `connect_timeout` and `read_timeout`; own choice of the values.
_CONNECT_TIMEOUT_S = 2
_READ_TIMEOUT_S = 5
# Source: boto3 guide "Retries": `standard` mode retries timeouts, 5xx and throttling with jittered backoff, 3 attempts.
_MAX_ATTEMPTS = 3
# 16 parallel reads of vectors or documents beside those of other threads. Source: botocore's default of 10 makes
# connections beyond it be closed after one use.
_MAX_POOL_CONNECTIONS = 32


def aws_client_config() -> Config:
    """Short timeouts, few retries, enough connections: for every client but that of S3."""
    return Config(
        connect_timeout=_CONNECT_TIMEOUT_S,
        read_timeout=_READ_TIMEOUT_S,
        retries={"mode": "standard", "total_max_attempts": _MAX_ATTEMPTS},
        max_pool_connections=_MAX_POOL_CONNECTIONS,
        tcp_keepalive=True,
    )


def s3_client_config() -> Config:
    """`aws_client_config`, and URLs signed with version 4, the only one every region and every encrypted bucket takes.

    Source: Amazon S3 user guide, "Authenticating requests (AWS Signature Version 4)".
    """
    return aws_client_config().merge(Config(signature_version="s3v4"))
