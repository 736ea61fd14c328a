"""The routes by which items move through their life, one at a time or many, and are embedded again."""

import logging
from collections.abc import Callable
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response
from pydantic import Field

from knowledge.domain.document import KnowledgeBasePath
from knowledge.domain.item import ItemId, ItemStatus
from knowledge.entrypoints.http import (
    RequestModel,
    error_json,
    json_body,
    json_response,
    optional_json_body,
    principal_of,
)
from knowledge.entrypoints.item_json import item_json
from knowledge.entrypoints.knowledge_services import KnowledgeServices
from knowledge.services.item_decisions import Decided, Decision

_logger = logging.getLogger(__name__)

Status = Annotated[ItemStatus, Field(strict=False)]  # as Kind in items_http


class StatusBody(RequestModel):
    """The body of `POST /items/{item_id}/status`."""

    status: Status
    expected_version: int
    note: str | None = None
    supersedes: list[str] = Field(default_factory=list)


class DecisionBody(StatusBody):
    """One of the decisions in `POST /items/inbox/decisions`."""

    id: str

    def decision(self) -> Decision:
        """Raises InvalidInput, naming the field."""
        superseded = tuple(map(ItemId, self.supersedes))
        return Decision(ItemId(self.id), self.status, self.expected_version, self.note, superseded)


class DecisionsBody(RequestModel):
    """The body of `POST /items/inbox/decisions`."""

    decisions: list[DecisionBody]


class MoveBody(RequestModel):
    """The body of archive and restore."""

    expected_version: int
    note: str | None = None


class RetryBody(RequestModel):
    """The body of `POST /items/{item_id}/embedding/retry`; there may be none."""

    expected_version: int | None = None


def register(app: APIGatewayRestResolver, services: Callable[[], KnowledgeServices]) -> None:
    """Adds the routes."""

    @app.post("/items/<item_id>/status")
    def post_status(item_id: str) -> Response[str]:
        principal, body = principal_of(app.current_event), json_body(app.current_event, StatusBody)
        item = services().decisions.knowledge_update_status(
            principal,
            ItemId(item_id),
            body.status,
            expected_version=body.expected_version,
            note=body.note,
            supersedes=tuple(map(ItemId, body.supersedes)),
        )
        return json_response(200, item_json(item, services().base))

    @app.post("/items/<item_id>/archive")
    def post_archive(item_id: str) -> Response[str]:
        principal, body = principal_of(app.current_event), json_body(app.current_event, MoveBody)
        item = services().decisions.knowledge_archive(
            principal, ItemId(item_id), expected_version=body.expected_version, note=body.note
        )
        return json_response(200, item_json(item, services().base))

    @app.post("/items/<item_id>/restore")
    def post_restore(item_id: str) -> Response[str]:
        principal, body = principal_of(app.current_event), json_body(app.current_event, MoveBody)
        item = services().decisions.restore(
            principal, ItemId(item_id), expected_version=body.expected_version, note=body.note
        )
        return json_response(200, item_json(item, services().base))

    @app.post("/items/<item_id>/embedding/retry")
    def post_retry(item_id: str) -> Response[str]:
        principal, body = principal_of(app.current_event), optional_json_body(app.current_event, RetryBody)
        item = services().decisions.retry_embedding(principal, ItemId(item_id), expected_version=body.expected_version)
        return json_response(200, item_json(item, services().base))

    @app.post("/items/inbox/decisions")
    def post_decisions() -> Response[str]:
        principal, body = principal_of(app.current_event), json_body(app.current_event, DecisionsBody)
        decided = services().decisions.decide(principal, [one.decision() for one in body.decisions])
        return json_response(200, {"items": [_decided_json(one, services().base) for one in decided]})


def _decided_json(decided: Decided, base: KnowledgeBasePath) -> dict[str, Any]:
    """The item as it is now, or the error that the decision would have had by itself."""
    return {
        "id": decided.item_id,
        "item": decided.item and item_json(decided.item, base),
        "error": decided.error and error_json(decided.error)["error"],
    }
