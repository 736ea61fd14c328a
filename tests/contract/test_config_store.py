"""What every ConfigStore does."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from knowledge.adapters.dynamodb_config_store import DynamoConfigStore
from knowledge.domain.knowledge_config import KnowledgeConfig, TriggerMode, VersionedConfig
from knowledge.errors import VersionConflict
from knowledge.ports import ConfigStore
from tests.contract.item_builders import T0, later

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

OTHER = KnowledgeConfig(
    auto_extract=False,
    trigger_mode=TriggerMode.MANUAL_ONLY,
    min_messages=1000,
    auto_inject=False,
    vector_enabled=False,
)


def test_settings_that_nobody_changed_are_the_defaults_K7(configs: ConfigStore) -> None:
    assert configs.read() == VersionedConfig(KnowledgeConfig(), 0)


def test_each_change_is_the_next_version_and_in_force_at_once_K7(configs: ConfigStore) -> None:
    assert configs.write(OTHER, expected_version=0, actor="ann", at=T0) == VersionedConfig(OTHER, 1)
    assert configs.read() == VersionedConfig(OTHER, 1)
    again = replace(OTHER, min_messages=1)
    assert configs.write(again, expected_version=1, actor="bob", at=T0) == VersionedConfig(again, 2)
    assert configs.read() == VersionedConfig(again, 2)


def test_a_change_of_an_outdated_version_conflicts_and_changes_nothing_K7(configs: ConfigStore) -> None:
    for wrong in (1, -1):
        with pytest.raises(VersionConflict):
            configs.write(OTHER, expected_version=wrong, actor="ann", at=T0)
    configs.write(OTHER, expected_version=0, actor="ann", at=T0)
    for wrong in (0, 2):
        with pytest.raises(VersionConflict):
            configs.write(KnowledgeConfig(), expected_version=wrong, actor="bob", at=T0)
    assert configs.read() == VersionedConfig(OTHER, 1)


def test_every_version_is_kept_with_who_wrote_it_and_when_K7(dynamodb_client: "DynamoDBClient", table: str) -> None:
    store = DynamoConfigStore(dynamodb_client, table)
    for version, actor in enumerate(("ann", "bob")):
        store.write(replace(OTHER, min_messages=version + 2), expected_version=version, actor=actor, at=later(version))
    answer = dynamodb_client.query(
        TableName=table,
        KeyConditionExpression="pk = :pk AND begins_with(sk, :version)",
        ExpressionAttributeValues={":pk": {"S": "SETTINGS"}, ":version": {"S": "VERSION#"}},
    )
    kept = [(item["actor"]["S"], item["at"]["S"], item["min_messages"]["N"]) for item in answer["Items"]]
    assert kept == [
        ("ann", "2026-04-14T08:30:00.123456+00:00", "2"),
        ("bob", "2026-04-14T08:30:01.123456+00:00", "3"),
    ]
