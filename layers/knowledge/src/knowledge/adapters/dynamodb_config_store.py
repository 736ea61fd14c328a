"""The settings in DynamoDB: the version in force, and every version there was."""

from datetime import datetime
from typing import TYPE_CHECKING

from knowledge.adapters.dynamodb_calls import TableUser, get_item
from knowledge.adapters.dynamodb_item_shapes import config_from_table, config_to_table
from knowledge.adapters.dynamodb_items import SETTINGS_PK, attributes
from knowledge.adapters.dynamodb_transactions import transact
from knowledge.domain.knowledge_config import KnowledgeConfig, VersionedConfig
from knowledge.errors import VersionConflict

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import PutTypeDef

_CURRENT = "CURRENT"


class DynamoConfigStore(TableUser):
    """ConfigStore over the table; thread-safe as the client is."""

    def read(self) -> VersionedConfig:
        """See ConfigStore; one GetItem. Raises CorruptState."""
        stored = get_item(self._client, self._table_name, attributes({"pk": SETTINGS_PK, "sk": _CURRENT}))
        return VersionedConfig(KnowledgeConfig()) if stored is None else config_from_table(stored)

    def write(self, config: KnowledgeConfig, *, expected_version: int, actor: str, at: datetime) -> VersionedConfig:
        """See ConfigStore; one transaction: the version in force, and the same under its number."""
        after = VersionedConfig(config, expected_version + 1)
        current: PutTypeDef = {
            "TableName": self._table_name,
            "Item": config_to_table(after, sk=_CURRENT, actor=actor, at=at),
            "ConditionExpression": "attribute_not_exists(pk)",
        }
        if expected_version:
            current["ConditionExpression"] = "#version = :expected"
            current["ExpressionAttributeNames"] = {"#version": "version"}
            current["ExpressionAttributeValues"] = attributes({":expected": expected_version})
        numbered = config_to_table(after, sk=f"VERSION#{after.version:012d}", actor=actor, at=at)
        done = transact(
            self._client,
            self._table_name,
            [{"Put": current}, {"Put": {"TableName": self._table_name, "Item": numbered}}],
            mark=numbered,
            tries=self._tries(),
        )
        if not done:
            raise VersionConflict("the settings")
        return after
