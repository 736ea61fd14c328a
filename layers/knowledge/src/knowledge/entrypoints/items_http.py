"""The function `knowledge`: items, their decisions, search, context and the settings. Here: reading and proposing."""

from collections.abc import Callable
from typing import Annotated

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response
from pydantic import Field

from knowledge.domain.item import Draft, ItemId, ItemStatus, KnowledgeKind, clean_tags
from knowledge.entrypoints import agents_http, decisions_http, settings_http
from knowledge.entrypoints.http import (
    Handler,
    RequestModel,
    build_http_handler,
    json_body,
    json_response,
    optional_json_body,
    principal_of,
)
from knowledge.entrypoints.item_json import event_json, item_json, page_json, reviewed_json
from knowledge.entrypoints.knowledge_services import KnowledgeServices
from knowledge.entrypoints.query_parameters import integer, one_of, query_parameters

Kind = Annotated[KnowledgeKind, Field(strict=False)]  # JSON has no enums: its text is read as one


class CreateBody(RequestModel):
    """The body of `POST /items`."""

    kind: Kind
    title: str
    content: str
    tags: list[str] = Field(default_factory=list)
    confidence: float = 0.5
    source_ref: str = "manual"

    def draft(self) -> Draft:
        """Raises InvalidInput, naming the field."""
        return Draft(**{**self.model_dump(), "tags": clean_tags(self.tags)})


class UpdateBody(RequestModel):
    """The body of `PATCH /items/{item_id}`: what is not in it stays as it is."""

    expected_version: int
    kind: Kind = KnowledgeKind.PITFALL
    title: str = ""
    content: str = ""
    tags: list[str] = Field(default_factory=list)
    confidence: float = 0.5
    source_ref: str = ""

    def changes(self) -> dict[str, object]:
        """The fields that are in it."""
        given = self.model_dump(exclude_unset=True, exclude={"expected_version"})
        return {**given, "tags": clean_tags(self.tags)} if "tags" in given else given


class ReuseBody(RequestModel):
    """The body of `POST /items/{item_id}/reuse`; there may be none."""

    expected_version: int | None = None


def build_handler(build: Callable[[], KnowledgeServices], allowed_origin: Callable[[], str]) -> Handler:
    """The knowledge function's handler."""
    return build_http_handler(_register, build, allowed_origin)


def _register(app: APIGatewayRestResolver, services: Callable[[], KnowledgeServices]) -> None:
    for register in (_register_lists, _register_items, decisions_http.register, agents_http.register):
        register(app, services)
    settings_http.register(app, services)


def _register_lists(app: APIGatewayRestResolver, services: Callable[[], KnowledgeServices]) -> None:
    @app.get("/items")
    def list_items() -> Response[str]:
        principal = principal_of(app.current_event)
        parameters = query_parameters(app.current_event, ("status", "kind", "cursor", "limit"))
        page = services().items.knowledge_list(
            principal,
            status=one_of(parameters, "status", ItemStatus),
            kind=one_of(parameters, "kind", KnowledgeKind),
            cursor=parameters.get("cursor"),
            limit=integer(parameters, "limit", 50),
        )
        return json_response(200, page_json(page, services().base))

    @app.get("/items/inbox")
    def get_inbox() -> Response[str]:
        principal = principal_of(app.current_event)
        parameters = query_parameters(app.current_event, ("kind", "cursor", "limit"))
        page = services().items.knowledge_list_candidates(
            principal,
            kind=one_of(parameters, "kind", KnowledgeKind),
            cursor=parameters.get("cursor"),
            limit=integer(parameters, "limit", 50),
        )
        return json_response(200, page_json(page, services().base))

    @app.get("/items/<item_id>/timeline")
    def get_timeline(item_id: str) -> Response[str]:
        principal = principal_of(app.current_event)
        parameters = query_parameters(app.current_event, ("cursor", "limit"))
        page = services().items.timeline(
            principal,
            ItemId(item_id),
            cursor=parameters.get("cursor"),
            limit=integer(parameters, "limit", 50),
        )
        return json_response(200, {"items": [event_json(one) for one in page.events], "next_cursor": page.next_cursor})


def _register_items(app: APIGatewayRestResolver, services: Callable[[], KnowledgeServices]) -> None:
    @app.post("/items")
    def post_item() -> Response[str]:
        principal, body = principal_of(app.current_event), json_body(app.current_event, CreateBody)
        reviewed = services().items.knowledge_create(principal, body.draft())
        return json_response(201, reviewed_json(reviewed, services().base))

    @app.get("/items/<item_id>")
    def get_item(item_id: str) -> Response[str]:
        principal = principal_of(app.current_event)
        query_parameters(app.current_event, ())
        reviewed = services().items.knowledge_get(principal, ItemId(item_id))
        return json_response(200, reviewed_json(reviewed, services().base))

    @app.patch("/items/<item_id>")
    def patch_item(item_id: str) -> Response[str]:
        principal, body = principal_of(app.current_event), json_body(app.current_event, UpdateBody)
        item = services().items.knowledge_update(
            principal, ItemId(item_id), body.changes(), expected_version=body.expected_version
        )
        return json_response(200, item_json(item, services().base))

    @app.post("/items/<item_id>/reuse")
    def post_reuse(item_id: str) -> Response[str]:
        principal, body = principal_of(app.current_event), optional_json_body(app.current_event, ReuseBody)
        item = services().items.knowledge_record_reuse(
            principal, ItemId(item_id), expected_version=body.expected_version
        )
        return json_response(200, item_json(item, services().base))
