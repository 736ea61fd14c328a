"""Transactions of the table: written together or not at all, told why not, and found out about when no answer came."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from knowledge.adapters.aws_errors import aws_errors, error_code, may_have_taken_effect
from knowledge.adapters.dynamodb_calls import DYNAMODB, get_item
from knowledge.adapters.dynamodb_items import Item, key_of
from knowledge.errors import DependencyUnavailable, InvalidInput

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

CONDITION_FAILED = "ConditionalCheckFailed"
# Codes that say that others were writing too, or too much. Source: DynamoDB API reference, TransactWriteItems,
# "CancellationReasons".
_CONTENTION = frozenset(
    {"None", CONDITION_FAILED, "TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError"}
)
# Source: the same list; the values themselves are refused.
_REFUSED = frozenset({"ValidationError", "ItemCollectionSizeLimitExceeded"})
_REFUSED_TEXT = "what it says cannot be stored"


def write_together(client: "DynamoDBClient", writes: "Sequence[TransactWriteItemTypeDef]") -> Sequence[str] | None:
    """None when all of `writes` are in; when none is, because DynamoDB cancelled them, its code for each of them.

    One call. Raises InvalidInput when DynamoDB refuses the values.
    """
    with aws_errors(DYNAMODB):
        try:
            # The SDK adds a token of its own, so that its repetitions of this call count once.
            client.transact_write_items(TransactItems=writes)
        except ClientError as error:
            match error_code(error):
                case "TransactionCanceledException":
                    return [reason.get("Code", "None") for reason in error.response.get("CancellationReasons", [])]
                case "ValidationException" | "SerializationException":
                    raise InvalidInput(_REFUSED_TEXT) from error
                case _:
                    raise
    return None


def require_contention(codes: Sequence[str]) -> None:
    """Nothing when the writes of a cancelled transaction are worth another try.

    Raises:
        InvalidInput: DynamoDB refuses the values.
        DependencyUnavailable: for a reason that is not known to pass.
    """
    if _REFUSED.intersection(codes):
        raise InvalidInput(_REFUSED_TEXT)
    if not codes or not _CONTENTION.issuperset(codes):
        raise DependencyUnavailable(DYNAMODB, "the transaction was cancelled")


def was_written(client: "DynamoDBClient", table_name: str, item: Item, error: DependencyUnavailable) -> bool:
    """True when `error` only hid that the transaction took effect in which `item`, like no other one, was put.

    One item is enough to tell: all of them are written, or none. One call, where it is not certain without.
    """
    cause = error.__cause__
    unknown = isinstance(cause, ClientError | BotoCoreError) and may_have_taken_effect(cause)
    return unknown and get_item(client, table_name, key_of(item)) == item


def transact(
    client: "DynamoDBClient",
    table_name: str,
    writes: "Sequence[TransactWriteItemTypeDef]",
    *,
    mark: Item | None,
    tries: Iterator[None],
) -> bool:
    """True when all of `writes` are in; False when the condition of the first does not hold. The others have none.

    `mark` is an item that one of them puts and no other writer does: without one, an error may hide that they are in.

    Raises:
        InvalidInput: DynamoDB refuses the values.
        DependencyUnavailable: also when others write the same items again and again.
    """
    for _ in tries:
        try:
            codes = write_together(client, writes)
        except DependencyUnavailable as error:
            if mark is not None and was_written(client, table_name, mark, error):
                return True
            raise
        if codes is None:
            return True
        if codes[:1] == [CONDITION_FAILED]:
            return False
        require_contention(codes)
    raise too_many_writers()


def too_many_writers() -> DependencyUnavailable:
    """What is raised when the tries are over and others always came first."""
    return DependencyUnavailable(DYNAMODB, "too many writers at the same time")
