"""Every read of documents: lookup, the list, one document, its bytes; and health."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response
from aws_lambda_powertools.metrics import MetricUnit, single_metric

from knowledge.domain.document import MEDIA_TYPE, DocId, DocumentStatus
from knowledge.domain.lookup import LookupAnswer, Tier
from knowledge.entrypoints.document_json import document_json, document_summary_json
from knowledge.entrypoints.http import Handler, RequestModel, build_http_handler, json_body, json_response, principal_of
from knowledge.entrypoints.metrics import NAMESPACE, TIER_FAILED
from knowledge.entrypoints.query_parameters import flag, integer, one_of, query_parameters
from knowledge.services.document_reader import DocumentReader
from knowledge.services.lookup import Lookup


@dataclass(frozen=True, slots=True)
class ReadServices:
    """What the reading function needs."""

    lookup: Lookup
    documents: DocumentReader


class LookupBody(RequestModel):
    """The body of `POST /lookup`."""

    query: str
    section_title: str | None = None
    include_sections: bool = False
    explain: bool = False


def build_handler(build: Callable[[], ReadServices], allowed_origin: Callable[[], str]) -> Handler:
    """The reading function's handler."""
    return build_http_handler(_register, build, allowed_origin)


def _register(app: APIGatewayRestResolver, services: Callable[[], ReadServices]) -> None:
    @app.get("/health")
    def get_health() -> Response[str]:
        return json_response(200, {"status": "ok"})

    @app.post("/lookup")
    def post_lookup() -> Response[str]:
        principal = principal_of(app.current_event)
        body = json_body(app.current_event, LookupBody)
        answer = services().lookup.lookup_knowledge(principal, **body.model_dump())
        _count_failures(answer)
        return json_response(200, lookup_json(answer))

    @app.get("/lookup")
    def get_lookup() -> Response[str]:
        principal, parameters = (
            principal_of(app.current_event),
            query_parameters(app.current_event, LookupBody.model_fields),
        )
        answer = services().lookup.lookup_knowledge(
            principal,
            parameters.get("query", ""),
            parameters.get("section_title"),
            include_sections=flag(parameters, "include_sections"),
            explain=flag(parameters, "explain"),
        )
        _count_failures(answer)
        return json_response(200, lookup_json(answer))

    @app.get("/documents")
    def list_documents() -> Response[str]:
        principal = principal_of(app.current_event)
        parameters = query_parameters(app.current_event, ("category", "status", "cursor", "limit"))
        page = services().documents.list_documents(
            principal,
            category=parameters.get("category"),
            status=one_of(parameters, "status", DocumentStatus),
            cursor=parameters.get("cursor"),
            limit=integer(parameters, "limit", 50),
        )
        documents = [document_summary_json(record) for record in page.records]
        return json_response(200, {"documents": documents, "next_cursor": page.next_cursor})

    @app.get("/documents/<doc_id>")
    def get_document(doc_id: str) -> Response[str]:
        record = services().documents.get_document(principal_of(app.current_event), DocId(doc_id))
        return json_response(200, document_json(record))

    @app.get("/documents/<doc_id>/content")
    def get_content(doc_id: str) -> Response[str]:
        content = services().documents.get_content(principal_of(app.current_event), DocId(doc_id))
        if content.text is None:
            return Response(303, body="", headers={"Location": content.download_url or ""})
        return Response(200, MEDIA_TYPE, content.text)


def lookup_json(answer: LookupAnswer) -> dict[str, Any]:
    """The answer with the keys of the lookup contract; what was asked for on top adds keys and changes none."""
    primary, supplement = answer.primary, answer.supplement
    body: dict[str, Any] = {
        "found": answer.found,
        "primary": primary
        and {
            "content": primary.content,
            "source": primary.source,
            "matchType": Tier.EXACT.value,
            "confidence": primary.confidence.value,
            "availableSections": primary.available_sections and list(primary.available_sections),
        },
        "supplement": supplement
        and {"content": supplement.content, "source": supplement.source, "matchType": Tier.SEMANTIC.value},
    }
    if answer.degraded:
        body["degraded"] = [tier.value for tier in answer.degraded]
    if answer.section_title is not None:
        body["section_title"] = answer.section_title
    if answer.explanation is not None:
        body["explain"] = answer.explanation
    return body


def _count_failures(answer: LookupAnswer) -> None:
    """A metric for each failure, as a line of the log that CloudWatch counts; the line has the reason in words."""
    for failure in answer.failures:
        with single_metric(name=TIER_FAILED, unit=MetricUnit.Count, value=1, namespace=NAMESPACE) as metric:
            metric.add_dimension("tier", failure.tier.value)
            metric.add_dimension("cause", failure.cause)
            metric.add_metadata("reason", failure.reason)
