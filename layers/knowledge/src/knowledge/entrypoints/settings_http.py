"""`GET /settings` and `PUT /settings`."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response
from pydantic import Field

from knowledge.domain.knowledge_config import KnowledgeConfig, TriggerMode, VersionedConfig
from knowledge.entrypoints.http import RequestModel, json_body, json_response, principal_of
from knowledge.entrypoints.knowledge_services import KnowledgeServices
from knowledge.entrypoints.query_parameters import query_parameters
from knowledge.services.settings import DeployedEmbedder


class SettingsBody(RequestModel):
    """The body of `PUT /settings`: all of them, so that nobody resets what was not looked at."""

    expected_version: int
    auto_extract: bool
    trigger_mode: Annotated[TriggerMode, Field(strict=False)]
    min_messages: int
    auto_inject: bool
    vector_enabled: bool
    embedding_provider: str | None = None
    embedding_model: str | None = None

    def config(self) -> KnowledgeConfig:
        """Raises InvalidInput, naming the field."""
        own = {"expected_version", "embedding_provider", "embedding_model"}
        return KnowledgeConfig(**self.model_dump(exclude=own))


def register(app: APIGatewayRestResolver, services: Callable[[], KnowledgeServices]) -> None:
    """Adds the routes."""

    @app.get("/settings")
    def get_settings() -> Response[str]:
        principal = principal_of(app.current_event)
        query_parameters(app.current_event, ())
        settings = services().settings
        return json_response(200, _settings_json(settings.knowledge_get_config(principal), settings.embedder))

    @app.put("/settings")
    def put_settings() -> Response[str]:
        principal, body = principal_of(app.current_event), json_body(app.current_event, SettingsBody)
        settings = services().settings
        saved = settings.knowledge_save_config(
            principal,
            body.config(),
            expected_version=body.expected_version,
            provider=body.embedding_provider,
            model=body.embedding_model,
        )
        return json_response(200, _settings_json(saved, settings.embedder))


def _settings_json(saved: VersionedConfig, embedder: DeployedEmbedder) -> dict[str, Any]:
    return {
        "version": saved.version,
        **asdict(saved.config),
        "embedding_provider": embedder.provider,
        "embedding_model": embedder.model,
    }
