"""The routes by which agents find items: search, and the context before a prompt."""

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response

from knowledge.domain.item import ItemStatus, KnowledgeKind
from knowledge.entrypoints.http import RequestModel, json_body, json_response, principal_of
from knowledge.entrypoints.item_json import item_json
from knowledge.entrypoints.knowledge_services import KnowledgeServices
from knowledge.entrypoints.query_parameters import integer, one_of, query_parameters
from knowledge.services.context import DEFAULT_TOKEN_BUDGET, Context, Message
from knowledge.services.item_search import DEFAULT_LIMIT, ItemSearchResult


class MessageBody(RequestModel):
    """One message of a conversation."""

    role: str
    content: str


class ContextBody(RequestModel):
    """The body of `POST /context`."""

    query: str | None = None
    messages: list[MessageBody] | None = None
    token_budget: int = DEFAULT_TOKEN_BUDGET
    record_reuse: bool = False


def register(app: APIGatewayRestResolver, services: Callable[[], KnowledgeServices]) -> None:
    """Adds the routes."""

    @app.get("/items/search")
    def search_items() -> Response[str]:
        principal = principal_of(app.current_event)
        parameters = query_parameters(app.current_event, ("query", "kind", "status", "limit"))
        result = services().search.knowledge_search(
            principal,
            parameters.get("query", ""),
            kind=one_of(parameters, "kind", KnowledgeKind),
            status=one_of(parameters, "status", ItemStatus),
            limit=integer(parameters, "limit", DEFAULT_LIMIT),
        )
        hits = [
            {**item_json(hit.item, services().base), "signals": [one.value for one in hit.signals]}
            for hit in result.hits
        ]
        return json_response(200, {"items": hits, **_searched_json(result)})

    @app.post("/context")
    def post_context() -> Response[str]:
        principal, body = principal_of(app.current_event), json_body(app.current_event, ContextBody)
        messages = body.messages
        context = services().context.context(
            principal,
            query=body.query,
            messages=None if messages is None else [Message(one.role, one.content) for one in messages],
            token_budget=body.token_budget,
            record_reuse=body.record_reuse,
        )
        return json_response(200, _context_json(context))


def _context_json(context: Context) -> dict[str, Any]:
    return {
        "text": context.text,
        "token_count": context.token_count,
        "sources": [
            {"id": source.item_id, "title": source.title, "file_path": source.file_path} for source in context.sources
        ],
        **_searched_json(context.found),
    }


def _searched_json(result: ItemSearchResult | None) -> dict[str, Any]:
    """By what it was searched; by nothing when it was not."""
    return {
        "signals": [one.value for one in result.signals] if result else [],
        "fallback": result.fallback.value if result and result.fallback else None,
    }
