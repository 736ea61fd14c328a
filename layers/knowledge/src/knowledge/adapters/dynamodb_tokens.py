"""Tokens in DynamoDB: an item for each name, and one for each hash that is good, changed together."""

from collections.abc import Collection, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import AwareDatetime

from knowledge.adapters.dynamodb_calls import TableUser, get_item, query_all
from knowledge.adapters.dynamodb_items import (
    TOKENS_PK,
    Item,
    StoredItem,
    attributes,
    item_of,
    read_item,
    token_key,
    token_name_key,
)
from knowledge.adapters.dynamodb_principals import StoredPrincipal
from knowledge.adapters.dynamodb_transactions import transact
from knowledge.domain.access import ReplacedToken, Role, Token
from knowledge.errors import Conflict

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import DeleteTypeDef, PutTypeDef, TransactWriteItemTypeDef

# Each `put` is of a new token, so its hash tells one state of a name from another.
_SAME = "token_hash = :hash"
_NO_OTHER = "attribute_not_exists(pk)"


class _StoredReplaced(StoredItem):
    token_hash: str
    until: AwareDatetime


class _StoredToken(StoredItem):
    name: str
    role: Role
    token_hash: str
    created_at: AwareDatetime
    expires_at: int | None = None
    replaced: _StoredReplaced | None = None


class DynamoTokenStore(TableUser):
    """TokenStore over the table; times are whole seconds. Thread-safe as the client is."""

    def read(self, key: str) -> Token | None:
        """See TokenStore. Raises CorruptState."""
        item = get_item(self._client, self._table_name, token_name_key(key))
        return None if item is None else _token(item)

    def all(self) -> Iterator[Token]:
        """See TokenStore. Raises CorruptState."""
        return map(_token, query_all(self._client, self._table_name, "pk = :pk", {":pk": TOKENS_PK}))

    def put(self, token: Token, *, instead_of: Token | None) -> None:
        """See TokenStore."""
        item = _item(token)
        row: PutTypeDef = {"TableName": self._table_name, "Item": item, "ConditionExpression": _NO_OTHER}
        ended: Collection[str] = ()
        if instead_of:
            row |= {"ConditionExpression": _SAME, "ExpressionAttributeValues": _hash_of(instead_of)}
            ended = instead_of.good_until().keys() - token.good_until().keys()
        self._write([{"Put": row}, *self._ends(ended), *self._callers(token)], mark=item)

    def remove(self, token: Token) -> None:
        """See TokenStore."""
        row: DeleteTypeDef = {
            "TableName": self._table_name,
            "Key": token_name_key(token.key),
            "ConditionExpression": _SAME,
            "ExpressionAttributeValues": _hash_of(token),
        }
        self._write([{"Delete": row}, *self._ends(token.good_until())])

    def _callers(self, token: Token) -> "list[TransactWriteItemTypeDef]":
        return [
            {"Put": {"TableName": self._table_name, "Item": _caller(token, token_hash, until)}}
            for token_hash, until in token.good_until().items()
        ]

    def _ends(self, token_hashes: Collection[str]) -> "list[TransactWriteItemTypeDef]":
        return [{"Delete": {"TableName": self._table_name, "Key": token_key(one)}} for one in sorted(token_hashes)]

    def _write(self, writes: "list[TransactWriteItemTypeDef]", mark: Item | None = None) -> None:
        """The first of them has a condition; `mark` is what no other writer puts."""
        if not transact(self._client, self._table_name, writes, mark=mark, tries=self._tries()):
            raise Conflict("the token was changed meanwhile")


def _hash_of(token: Token) -> Item:
    return attributes({":hash": token.token_hash})


def _item(token: Token) -> Item:
    stored = _StoredToken(
        name=token.name,
        role=token.role,
        token_hash=token.token_hash,
        created_at=token.created_at,
        expires_at=_seconds(token.expires_at),
        replaced=_StoredReplaced.model_validate(asdict(token.replaced)) if token.replaced else None,
    )
    return {**token_name_key(token.key), **item_of(stored)}


def _token(item: Item) -> Token:
    stored = read_item(_StoredToken, item)
    replaced = None
    if stored.replaced:
        replaced = ReplacedToken(stored.replaced.token_hash, stored.replaced.until.astimezone(UTC))
    expires_at = None if stored.expires_at is None else datetime.fromtimestamp(stored.expires_at, UTC)
    created_at = stored.created_at.astimezone(UTC)
    return Token(stored.name, stored.role, stored.token_hash, created_at, expires_at, replaced)


def _caller(token: Token, token_hash: str, until: datetime | None) -> Item:
    stored = StoredPrincipal(name=token.name, role=token.role, expires_at=_seconds(until))
    return {**token_key(token_hash), **item_of(stored)}


def _seconds(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp())
