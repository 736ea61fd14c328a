"""The one edge where errors of the AWS SDK become ours. Decides by class, code and HTTP status, never by message."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    HTTPClientError,
    ParamValidationError,
    ReadTimeoutError,
)

from knowledge.errors import AccessRefused, DependencyUnavailable, InvalidInput, InvalidPath, KnowledgeError

# Answers below 500 that mean "later". Source: botocore, `retries.standard.ThrottledRetryableChecker`, and the API
# reference of DynamoDB.
_THROTTLED = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottledException",
        "RequestThrottled",
        "TooManyRequestsException",
        "ProvisionedThroughputExceededException",
        "TransactionInProgressException",
        "TransactionConflictException",
        "RequestLimitExceeded",
        "LimitExceededException",
        "SlowDown",
        "PriorRequestNotComplete",
        "EC2ThrottledException",
        "RequestTimeout",
        "429",
    }
)


@contextmanager
def aws_errors(dependency: str) -> Iterator[None]:
    """Whatever the SDK raises inside leaves as one of our errors; the foreign one is its cause and not in its text."""
    try:
        yield
    except ClientError as error:
        raise _from_answer(dependency, error) from error
    except ParamValidationError as error:
        raise InvalidInput(f"{dependency} takes no such value") from error
    except (ConnectTimeoutError, ReadTimeoutError) as error:
        raise DependencyUnavailable(dependency, "did not answer in time") from error
    except HTTPClientError as error:
        raise DependencyUnavailable(dependency, "could not be reached") from error
    except BotoCoreError as error:
        raise DependencyUnavailable(dependency, "could not be asked") from error


def error_code(error: ClientError) -> str:
    """The service's code for what went wrong; for an answer without a body (HEAD) the HTTP status as text."""
    return error.response.get("Error", {}).get("Code", "")


def may_have_taken_effect(error: ClientError | BotoCoreError) -> bool:
    """False only when it is certain that the service did nothing.

    That is a value the SDK did not send, or a first attempt that was answered and refused. After a retry nothing is
    certain: the attempt before may have succeeded without its answer arriving.
    """
    if isinstance(error, ClientError):
        metadata = error.response.get("ResponseMetadata", {})
        return metadata.get("HTTPStatusCode", 500) >= 500 or metadata.get("RetryAttempts", 0) > 0
    return not isinstance(error, ParamValidationError)


def _from_answer(dependency: str, error: ClientError) -> KnowledgeError:
    code = error_code(error)
    if code == "KeyTooLongError":
        return InvalidPath("the key is longer than S3 can take")
    if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500) >= 500:
        return DependencyUnavailable(dependency, "failed")
    if code in _THROTTLED:
        return DependencyUnavailable(dependency, f"is busy ({code})")
    # For a reason that only an operator can remove; the code tells which.
    return AccessRefused(dependency, f"refused the call ({code})")
