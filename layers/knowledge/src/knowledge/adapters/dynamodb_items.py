"""How the DynamoDB table is laid out, and the notation between Python values and its attributes.

One table, keys `pk` and `sk`:

    DOC#<doc_id>      META                      a document's record; in the indexes `listing` and `by_status`
    DOC#<doc_id>      DISCARDED#<generation>    vectors that were replaced and not yet removed
    DOC#<doc_id>      DELETED                   the revision that was deleted last
    CATALOG           HEAD                      number of the newest log item, and where the snapshots are
    CATALOG           LOG#<12 digits>           changes to the exact tier that were committed together
    TOKEN#<sha256>    TOKEN                     a caller, by the hash of a token that is good
    TOKENS            <name>                    what is known of a name's token
    ITEM#<id>         META                      a knowledge item
    ITEM#<id>         EVENT#<time>#...          an entry of its timeline
    ITEMS#<status>[#<kind>]  <rank>             a row that lists an item; highest confidence first, then the newest
    ITEMS#inbox[#<kind>]     <rank>             the same, of candidates and what is in review together
    ITEMS#due                <time>#<id>        when the sweep has to see to an item
    ITEMS#without_embedding  <id>               a published item that cannot be found by meaning yet
    ITEMS#feed               <time>#...#<id>    something happened to an item; removed after a week
    SETTINGS          CURRENT                   the settings in force
    SETTINGS          VERSION#<12 digits>       the same under its number, and every one before it

Knows no client, makes no call, and does not know what the items mean.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from pydantic import BaseModel, ConfigDict, ValidationError

from knowledge.domain.document import DocId, DocumentStatus, Generation
from knowledge.errors import CorruptState

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

Item = Mapping[str, "AttributeValueTypeDef"]

# Source: Amazon DynamoDB developer guide, "Quotas": an item is at most 400 KB, names and values together, and the items
# of a transaction 4 MB.
MAX_ITEM_BYTES = 400 * 1024
MAX_TRANSACTION_BYTES = 4 * 1024 * 1024

META = "META"
DELETED = "DELETED"
DISCARDED = "DISCARDED#"
LISTING_PK = "DOCUMENTS"
CATALOG_PK = "CATALOG"
TOKENS_PK = "TOKENS"
SETTINGS_PK = "SETTINGS"
LOG = "LOG#"
# Greater than every log key: `~` comes after the digits in UTF-8.
LOG_END = f"{LOG}~"

_serializer = TypeSerializer()
_deserializer = TypeDeserializer()


class StoredItem(BaseModel):
    """Base of the shapes of stored items; attributes of a later version of this product are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


_Stored = TypeVar("_Stored", bound=StoredItem)


def document_pk(doc_id: DocId) -> str:
    """Partition of everything that belongs to one document."""
    return f"DOC#{doc_id}"


def status_pk(status: DocumentStatus) -> str:
    """Partition of the index `by_status`."""
    return f"STATUS#{status}"


def log_sk(version: int) -> str:
    """Sort key of a log item; the digits make text order the order of numbers."""
    return f"{LOG}{version:012d}"


def attributes(values: Mapping[str, object]) -> "dict[str, AttributeValueTypeDef]":
    """`values` in DynamoDB's notation."""
    return {name: _serializer.serialize(value) for name, value in values.items()}


def document_key(doc_id: DocId) -> "dict[str, AttributeValueTypeDef]":
    """Key of a document's record."""
    return attributes({"pk": document_pk(doc_id), "sk": META})


def deleted_key(doc_id: DocId) -> "dict[str, AttributeValueTypeDef]":
    """Key of a document's last deletion."""
    return attributes({"pk": document_pk(doc_id), "sk": DELETED})


def head_key() -> Item:
    """Key of the number of the newest log entry."""
    return attributes({"pk": CATALOG_PK, "sk": "HEAD"})


def discarded_key(doc_id: DocId, generation: Generation) -> Item:
    """Key, and whole item, of a generation that waits to be removed."""
    return attributes({"pk": document_pk(doc_id), "sk": f"{DISCARDED}{generation}"})


def token_key(token_hash: str) -> Item:
    """Key of one caller."""
    return attributes({"pk": f"TOKEN#{token_hash}", "sk": "TOKEN"})


def token_name_key(key: str) -> Item:
    """Key of what is known of a name's token; `key` is its `name_key`."""
    return attributes({"pk": TOKENS_PK, "sk": key})


def item_of(stored: StoredItem) -> Item:
    """`stored` in DynamoDB's notation; what is None is left out."""
    return attributes(stored.model_dump(mode="json", exclude_none=True))


def read_item(shape: type[_Stored], item: Item) -> _Stored:
    """The stored values. Raises CorruptState, naming the key and the attributes that are wrong."""
    try:
        return shape.model_validate({name: _deserializer.deserialize(value) for name, value in item.items()})
    except ValidationError as error:
        fields = ", ".join(sorted({".".join(map(str, problem["loc"])) for problem in error.errors()}))
        raise CorruptState(f"{key_text(item)} cannot be read: {fields}") from error


def key_of(item: Item) -> Item:
    """The part of the item by which it is found."""
    return {part: item[part] for part in ("pk", "sk")}


def sort_key(item: Item) -> str:
    """The item's `sk`."""
    return str(item["sk"].get("S", ""))


def key_text(item: Item) -> str:
    """The item's key, to be shown."""
    return " ".join(str(item.get(part, {}).get("S", "?")) for part in ("pk", "sk"))


def item_size_bytes(value: object) -> int:
    """About what DynamoDB counts: the UTF-8 bytes of all names and texts, and a little for each value."""
    match value:
        case str():
            return len(value.encode("utf-8", "surrogatepass"))
        case Mapping():
            return sum(item_size_bytes(name) + item_size_bytes(part) for name, part in value.items())
        case list() | tuple():
            return sum(item_size_bytes(part) for part in value)
        case _:
            return 1
