"""The settings: who reads and changes them, in versions, and that each of them does something."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest

from knowledge.adapters.memory_items import MemoryConfigStore
from knowledge.domain.access import Principal, Role
from knowledge.domain.knowledge_config import KnowledgeConfig, TriggerMode, VersionedConfig
from knowledge.errors import Conflict, InvalidInput, NotPermitted, Outdated
from knowledge.services.context import Context, KnowledgeContext
from knowledge.services.near_items import Fallback
from knowledge.services.settings import DeployedEmbedder, LiveSettings
from tests.services.items_world import ItemsWorld

ADMIN, REVIEWER = Principal("root", Role.ADMIN), Principal("alice", Role.REVIEWER)
DEPLOYED = DeployedEmbedder("local", "multilingual-e5-small")
QUIET = KnowledgeConfig(auto_extract=False)


@pytest.fixture
def settings() -> LiveSettings:
    return LiveSettings(MemoryConfigStore(), DEPLOYED, now=lambda: datetime(2026, 12, 1, tzinfo=UTC))


def test_before_anybody_saved_any_the_defaults_are_in_force_K7(settings: LiveSettings) -> None:
    assert settings.knowledge_get_config(REVIEWER) == VersionedConfig(KnowledgeConfig(), 0)
    defaults = KnowledgeConfig()
    assert (defaults.auto_extract, defaults.trigger_mode, defaults.min_messages) == (True, TriggerMode.ON_COMPLETE, 4)
    assert defaults.auto_inject is True


def test_what_is_saved_is_in_force_at_once_in_every_instance_K7() -> None:
    store = MemoryConfigStore()
    one, other = (LiveSettings(store, DEPLOYED, now=lambda: datetime.now(UTC)) for _ in range(2))
    assert one.knowledge_save_config(ADMIN, QUIET, expected_version=0) == VersionedConfig(QUIET, 1)
    assert other.knowledge_get_config(REVIEWER) == VersionedConfig(QUIET, 1)


def test_whoever_knew_another_version_is_told_the_one_in_force_and_saves_nothing_K7(settings: LiveSettings) -> None:
    settings.knowledge_save_config(ADMIN, QUIET, expected_version=0)
    with pytest.raises(Outdated, match=r"version 1 .* not 0") as caught:
        settings.knowledge_save_config(ADMIN, replace(QUIET, min_messages=9), expected_version=0)
    assert (caught.value.version, caught.value.status) == (1, None)
    assert settings.knowledge_get_config(REVIEWER) == VersionedConfig(QUIET, 1)


def test_saving_again_what_was_saved_just_so_is_no_second_version(settings: LiveSettings) -> None:
    for _ in range(2):
        assert settings.knowledge_save_config(ADMIN, QUIET, expected_version=0) == VersionedConfig(QUIET, 1)
    with pytest.raises(Outdated):
        settings.knowledge_save_config(ADMIN, QUIET, expected_version=7)


def test_of_many_who_save_at_once_one_wins_and_the_others_are_told(settings: LiveSettings) -> None:
    def save(number: int) -> int:
        try:
            return settings.knowledge_save_config(
                ADMIN, KnowledgeConfig(min_messages=number), expected_version=0
            ).version
        except Outdated as error:
            return -error.version

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(save, range(1, 9))) == [-1] * 7 + [1]


@pytest.mark.parametrize("role", Role)
def test_reviewers_read_the_settings_and_admins_change_them(settings: LiveSettings, role: Role) -> None:
    principal = Principal("somebody", role)
    if role.rank < Role.REVIEWER.rank:
        with pytest.raises(NotPermitted, match="role reviewer is needed"):
            settings.knowledge_get_config(principal)
    else:
        assert settings.knowledge_get_config(principal).version == 0
    if role is Role.ADMIN:
        assert settings.knowledge_save_config(principal, QUIET, expected_version=0).version == 1
    else:
        with pytest.raises(NotPermitted, match="role admin is needed"):
            settings.knowledge_save_config(principal, QUIET, expected_version=0)


@pytest.mark.parametrize("other", [{"provider": "bedrock"}, {"model": "amazon.titan-embed-text-v2:0"}])
def test_another_embedder_is_refused_with_how_it_is_changed_and_nothing_is_saved_K7(
    settings: LiveSettings, other: dict[str, str]
) -> None:
    with pytest.raises(Conflict, match=r"Embedder and EmbeddingModel.*make reindex"):
        settings.knowledge_save_config(ADMIN, QUIET, expected_version=0, **other)
    assert settings.knowledge_get_config(ADMIN).version == 0
    saved = settings.knowledge_save_config(
        ADMIN, QUIET, expected_version=0, provider=DEPLOYED.provider, model=DEPLOYED.model
    )
    assert saved.version == 1


@pytest.mark.parametrize("count", [-1, 0, 1001])
def test_a_number_out_of_bounds_is_refused_by_name_K7(count: int) -> None:
    with pytest.raises(InvalidInput, match="min_messages") as caught:
        KnowledgeConfig(min_messages=count)
    assert caught.value.field == "min_messages"


def extracts(config: KnowledgeConfig, *, messages: int = 4, asked_for: bool = False) -> bool:
    return config.wants_extraction(message_count=messages, asked_for=asked_for)


def without_auto_extract_nothing_is_extracted_by_itself() -> None:
    assert extracts(KnowledgeConfig())
    assert not extracts(KnowledgeConfig(auto_extract=False))
    assert extracts(KnowledgeConfig(auto_extract=False), asked_for=True)


def with_manual_only_a_lesson_has_to_be_asked_for() -> None:
    manual = KnowledgeConfig(trigger_mode=TriggerMode.MANUAL_ONLY)
    assert (extracts(manual), extracts(manual, asked_for=True)) == (False, True)


def a_conversation_of_fewer_messages_teaches_nothing() -> None:
    assert [extracts(KnowledgeConfig(min_messages=3), messages=count) for count in (2, 3, 4)] == [False, True, True]
    assert not extracts(KnowledgeConfig(min_messages=3), messages=2, asked_for=True)


def context_of(world: ItemsWorld) -> Context:
    contexts = KnowledgeContext(world.item_search, world.items, world.configs, world.base)
    return contexts.context(REVIEWER, query="retry")


def without_auto_inject_the_context_is_empty() -> None:
    world = ItemsWorld()
    world.add("Retry the payment", "Retry it with the same key.")
    assert "Retry it with the same key." in context_of(world).text
    world.configure(auto_inject=False)
    assert context_of(world).text == ""


def without_vectors_items_are_found_by_substring_alone() -> None:
    world = ItemsWorld()
    world.add("Retry the payment", "Retry it with the same key.")
    assert world.find("retry").fallback is None
    world.configure(vector_enabled=False)
    assert world.find("retry").fallback is Fallback.VECTORS_OFF


EFFECTS: dict[str, Callable[[], None]] = {
    "auto_extract": without_auto_extract_nothing_is_extracted_by_itself,
    "trigger_mode": with_manual_only_a_lesson_has_to_be_asked_for,
    "min_messages": a_conversation_of_fewer_messages_teaches_nothing,
    "auto_inject": without_auto_inject_the_context_is_empty,
    "vector_enabled": without_vectors_items_are_found_by_substring_alone,
}


@pytest.mark.parametrize("setting", [field.name for field in fields(KnowledgeConfig)])
def test_every_setting_does_something_K7(setting: str) -> None:
    EFFECTS[setting]()
