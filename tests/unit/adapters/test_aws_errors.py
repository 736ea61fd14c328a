import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)

from knowledge.adapters.aws_errors import aws_errors, may_have_taken_effect
from knowledge.errors import DependencyUnavailable, InvalidInput, InvalidPath
from tests.unit.adapters.aws import refused

URL = "https://secret.example"


@pytest.mark.parametrize(
    "foreign",
    [
        refused("SlowDown", 503),
        refused("InternalError", 500),
        refused("ThrottlingException"),
        refused("AccessDenied", 403),
        refused("ResourceNotFoundException"),
        ClientError({}, "Operation"),
        ReadTimeoutError(endpoint_url=URL),
        ConnectTimeoutError(endpoint_url=URL),
        EndpointConnectionError(endpoint_url=URL),
        ConnectionClosedError(endpoint_url=URL),
        NoCredentialsError(),
    ],
)
def test_a_failing_service_is_an_unavailable_dependency_without_the_foreign_text(foreign: Exception) -> None:
    with pytest.raises(DependencyUnavailable) as caught, aws_errors("S3"):
        raise foreign
    assert caught.value.dependency == "S3"
    assert caught.value.__cause__ is foreign
    assert "secret" not in str(caught.value)


def test_a_key_that_is_too_long_is_the_callers_mistake() -> None:
    with pytest.raises(InvalidPath), aws_errors("S3"):
        raise refused("KeyTooLongError")


def test_a_value_the_sdk_does_not_send_is_the_callers_mistake() -> None:
    with pytest.raises(InvalidInput), aws_errors("S3"):
        raise ParamValidationError(report="a foreign text")


def test_errors_of_our_own_pass_through() -> None:
    with pytest.raises(ZeroDivisionError), aws_errors("S3"):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("error", "doubtful"),
    [
        (refused("AccessDenied", 403), False),
        (refused("AccessDenied", 403, retries=1), True),
        (refused("SlowDown", 503), True),
        (ReadTimeoutError(endpoint_url=URL), True),
        (ConnectionClosedError(endpoint_url=URL), True),
        (ParamValidationError(report=""), False),
    ],
)
def test_only_a_plain_refusal_proves_that_nothing_happened(error: ClientError | BotoCoreError, doubtful: bool) -> None:
    assert may_have_taken_effect(error) is doubtful
