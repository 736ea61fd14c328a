"""Makes a bearer token: prints it once, and puts its hash into the table, which is all that the stack ever knows.

`python -m tools.create_token --table TABLE --name alice`, with the AWS credentials of whoever runs it. `make token`
does it for the local cloud, or for the table of a deployed stack.
"""

import argparse
import hashlib
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import boto3

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef


def new_token() -> str:
    """A token nobody can guess: 256 random bits, fit for an HTTP header."""
    return secrets.token_urlsafe(32)


def register(client: "DynamoDBClient", table: str, token: str, *, name: str, role: str) -> None:
    """The table knows the token by its hash. Registering it again changes nothing."""
    item: dict[str, AttributeValueTypeDef] = {
        "pk": {"S": f"TOKEN#{hashlib.sha256(token.encode()).hexdigest()}"},
        "sk": {"S": "TOKEN"},
        "name": {"S": name},
        "role": {"S": role},
        "created_at": {"S": datetime.now(UTC).isoformat()},
    }
    try:
        client.put_item(TableName=table, Item=item, ConditionExpression="attribute_not_exists(pk)")
    except client.exceptions.ConditionalCheckFailedException:
        return


def main() -> None:
    """Runs from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.create_token", description="Make a bearer token.")
    parser.add_argument("--table", required=True, help="output TableName of the stack")
    parser.add_argument("--name", required=True, help="who will use it; shown wherever an actor is shown")
    parser.add_argument("--role", default="admin", choices=["admin"], help="what it may do (default: %(default)s)")
    options = parser.parse_args()
    if not options.name.strip():
        parser.error("a token needs a name: make token NAME=alice")
    token = new_token()
    register(boto3.client("dynamodb"), options.table, token, name=options.name, role=options.role)
    print(token)


if __name__ == "__main__":
    main()
