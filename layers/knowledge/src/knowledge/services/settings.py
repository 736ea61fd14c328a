"""The settings that people change while everything runs: read by reviewers, changed by admins. Source: K7."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from knowledge.domain.access import Principal, Role
from knowledge.domain.knowledge_config import KnowledgeConfig, VersionedConfig
from knowledge.errors import Conflict, Outdated, VersionConflict
from knowledge.ports import ConfigStore

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeployedEmbedder:
    """What the functions embed with; it is changed by deploying, never by a setting (ADR 14)."""

    provider: str
    """`local`, `bedrock` or `openai`."""
    model: str


class LiveSettings:
    """Whatever is saved here counts from the next call of any function on."""

    def __init__(
        self,
        store: ConfigStore,
        deployed: DeployedEmbedder,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`now` gives an aware UTC time."""
        self._store = store
        self._deployed = deployed
        self._now = now

    @property
    def embedder(self) -> DeployedEmbedder:
        """What is shown beside the settings."""
        return self._deployed

    def knowledge_get_config(self, principal: Principal) -> VersionedConfig:
        """The settings in force: one call. Raises NotPermitted for whoever is not a reviewer."""
        principal.require(Role.REVIEWER, "read the settings")
        return self._store.read()

    def knowledge_save_config(
        self,
        principal: Principal,
        config: KnowledgeConfig,
        *,
        expected_version: int,
        provider: str | None = None,
        model: str | None = None,
    ) -> VersionedConfig:
        """`config` is in force, as the version that follows `expected_version`.

        Saving again what was saved just so is answered with what is stored, by whomever it was saved. `provider` and
        `model` can be given, and are then those that are deployed.

        Raises:
            NotPermitted: the caller is no admin.
            Outdated: another version is in force; nothing is saved.
            Conflict: `provider` or `model` are not those that are deployed; says how they are changed.
        """
        principal.require(Role.ADMIN, "change the settings")
        wanted = DeployedEmbedder(provider or self._deployed.provider, model or self._deployed.model)
        if wanted != self._deployed:
            raise Conflict(
                f"the index belongs to the embedder {self._deployed.provider}, model {self._deployed.model}; to change "
                "it, deploy with the parameters Embedder and EmbeddingModel, and build the index: make reindex"
            )
        try:
            saved = self._store.write(config, expected_version=expected_version, actor=principal.name, at=self._now())
        except VersionConflict as error:
            current = self._store.read()
            if current == VersionedConfig(config, expected_version + 1):
                return current
            message = f"version {current.version} of the settings is in force, not {expected_version}"
            raise Outdated(message, version=current.version) from error
        _logger.info("settings_saved", extra={"version": saved.version, "actor": principal.name})
        return saved
