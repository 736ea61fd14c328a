"""The HTTP entry points over services in memory."""

import base64
import json
from dataclasses import dataclass
from typing import Any

import pytest

from knowledge import errors
from knowledge.domain.document import doc_id_for
from knowledge.entrypoints import delete_http, read_http, upload_http
from knowledge.entrypoints.http import STATUS_BY_ERROR, status_for
from tests.entrypoints.events import Context, api_event, everybody, form_event, json_event
from tests.services.world import World, markdown

KEY = "knowledge_base/api/errors.md"
SOME_ID = doc_id_for("knowledge_base/some.md")


@dataclass
class Api:
    """The three HTTP functions over one world."""

    world: World

    def __post_init__(self) -> None:
        services = read_http.ReadServices(self.world.lookup, self.world.reader)
        self.read = read_http.build_handler(lambda: services, everybody)
        self.upload = upload_http.build_handler(lambda: self.world.documents, everybody)
        self.delete = delete_http.build_handler(lambda: self.world.documents, everybody)

    def call(self, event: dict[str, Any]) -> tuple[int, Any]:
        """Status and body, JSON decoded."""
        is_upload = event["path"].startswith("/documents") and event["httpMethod"] in ("POST", "PUT")
        handler = self.upload if is_upload else self.delete if event["httpMethod"] == "DELETE" else self.read
        answer = handler(event, Context())
        assert answer["multiValueHeaders"]["Access-Control-Allow-Origin"] == ["*"]
        body = answer["body"]
        return answer["statusCode"], json.loads(body) if body and body.startswith(("{", "[")) else body


@pytest.fixture
def api() -> Api:
    return Api(World())


def lookup(api: Api, query: str, **options: Any) -> Any:
    status, body = api.call(json_event("POST", "/lookup", {"query": query, **options}))
    assert status == 200
    return body


def test_a_form_uploads_a_document_D5(api: Api) -> None:
    content = markdown("ERR_77").encode()
    status, body = api.call(form_event({"category": "api"}, ("errors.md", content)))
    assert status == 201
    assert body["file_path"] == KEY
    assert body["status"] == "INDEXED"
    assert body["metadata"] == {"title": "A title", "keywords": ["ERR_77"]}
    assert body["warnings"] == []
    assert body["doc_id"]
    assert api.world.objects.read(KEY, max_bytes=10_000).body == content


@pytest.mark.parametrize("name", ["支付 指南.md", "a+b.md", "100%.md", "x#1.md", "e\u0301.md", "it's.md"])
def test_file_names_as_people_have_them_arrive_verbatim(api: Api, name: str) -> None:
    status, body = api.call(form_event({"category": "运维"}, (name, b"text")))
    assert (status, body["file_path"]) == (201, f"knowledge_base/运维/{name}")
    doc_id = body["doc_id"]
    status, body = api.call(api_event("GET", f"/documents/{doc_id}"))
    assert (status, body["file_path"]) == (200, f"knowledge_base/运维/{name}")
    status, body = api.call(api_event("DELETE", f"/documents/{doc_id}"))
    assert status == 200
    assert body == {"doc_id": doc_id, "file_path": f"knowledge_base/运维/{name}", "deleted": True}


@pytest.mark.parametrize("name", ["100%25.md", "a b.md", "部署.md", "a+b.md", "x#1?.md", 'q"uote.md'])
def test_put_takes_the_raw_file_under_the_decoded_name_D5(api: Api, name: str) -> None:
    event = api_event(
        "PUT",
        f"/documents/ops/{name}",
        body=b"\xef\xbb\xbf# Text\r\n",
        content_type="text/markdown; charset=utf-8",
        path_parameters={"category": "ops", "file_name": name},
    )
    status, body = api.call(event)
    assert (status, body["file_path"]) == (201, f"knowledge_base/ops/{name}")
    assert api.world.objects.read(body["file_path"], max_bytes=100).body == b"\xef\xbb\xbf# Text\r\n"
    assert api.call(event)[0] == 200, "the second time it replaces"


def test_json_uploads_a_document_D5(api: Api) -> None:
    value = {"category": "api", "file_name": "errors.md", "content": markdown("ERR_77")}
    assert api.call(json_event("POST", "/documents", value))[0] == 201


def test_an_upload_whose_embedding_is_not_finished_is_accepted(api: Api) -> None:
    api.world.embedder.broken.add("embed_passages")
    status, body = api.call(form_event({"category": "api"}, ("errors.md", markdown("ERR_77").encode())))
    assert (status, body["status"]) == (202, "PENDING")


def test_the_four_answers_have_exactly_the_given_keys_D14(api: Api) -> None:
    api.call(form_event({"category": "api"}, ("a.md", markdown("ERR_77", body="Restart the ledger worker.").encode())))
    text = (api.world.objects.read("knowledge_base/api/a.md", max_bytes=10_000).body).decode()
    primary = {
        "content": text,
        "source": "knowledge_base/api/a.md",
        "matchType": "exact_L0",
        "confidence": "high",
        "availableSections": None,
    }
    assert lookup(api, "ERR_77?") == {"found": True, "primary": primary, "supplement": None}
    supplement = {
        "content": "A title\n\nRestart the ledger worker.",
        "source": "knowledge_base/api/a.md",
        "matchType": "semantic_L1",
    }
    assert lookup(api, "restart the ledger worker") == {"found": True, "primary": None, "supplement": supplement}
    assert lookup(api, "khgcvyuui") == {"found": False, "primary": None, "supplement": None}
    api.call(form_event({"category": "api"}, ("b.md", markdown("ERR_77", body="Other.").encode())))
    body = lookup(api, "ERR_77 restart the ledger worker")
    assert body == {"found": True, "primary": {**primary, "confidence": "low"}, "supplement": supplement}
    api.world.vectors.broken.add("search")
    body = lookup(api, "ERR_77")
    assert (body["primary"]["confidence"], body["supplement"]) == ("low", None)
    assert body["degraded"] == ["semantic_L1"]


def test_what_is_asked_for_on_top_adds_keys_and_changes_none(api: Api) -> None:
    api.call(form_event({"category": "api"}, ("a.md", markdown("ERR_77", body="## Causes\n\nBank.").encode())))
    plain = lookup(api, "ERR_77")
    body = lookup(api, "ERR_77", include_sections=True, explain=True)
    assert body["primary"]["availableSections"] == ["Causes"]
    assert body["explain"]["matches"][0]["keywords_in_query"] == ["err_77"]
    assert {**plain["primary"], "availableSections": ["Causes"]} == body["primary"]
    body = lookup(api, "ERR_77", section_title="causes")
    assert (body["section_title"], body["primary"]["content"]) == ("Causes", "## Causes\n\nBank.")


def test_get_lookup_answers_as_post_does(api: Api) -> None:
    api.call(form_event({"category": "api"}, ("a.md", markdown("支付网关").encode())))
    status, body = api.call(api_event("GET", "/lookup", query={"query": "支付", "include_sections": "true"}))
    assert status == 200
    assert body == lookup(api, "支付", include_sections=True)


def test_json_is_not_ascii_escaped_F05(api: Api) -> None:
    api.call(form_event({"category": "api"}, ("a.md", markdown("支付网关").encode())))
    answer = api.read(json_event("POST", "/lookup", {"query": "支付"}), Context())
    assert "支付网关" in answer["body"]


def test_content_is_the_stored_text_unchanged(api: Api) -> None:
    content = "\ufeff# 标题\r\n\r\ntext \u200b🚀".encode()
    doc_id = api.call(form_event({"category": "api"}, ("a.md", content)))[1]["doc_id"]
    answer = api.read(api_event("GET", f"/documents/{doc_id}/content"), Context())
    assert answer["statusCode"] == 200
    assert answer["body"].encode() == content
    assert answer["isBase64Encoded"] is False


def test_documents_are_listed_with_a_cursor(api: Api) -> None:
    for name in ("a.md", "b.md", "c.md"):
        api.call(form_event({"category": "api"}, (name, b"text")))
    _, first = api.call(api_event("GET", "/documents", query={"limit": "2"}))
    _, second = api.call(api_event("GET", "/documents", query={"limit": "2", "cursor": first["next_cursor"]}))
    names = [document["file_path"].rpartition("/")[2] for document in first["documents"] + second["documents"]]
    assert names == ["a.md", "b.md", "c.md"]
    assert second["next_cursor"] is None


def test_a_page_of_documents_stays_far_under_what_lambda_can_answer_F05(api: Api) -> None:
    keywords = [chr(0x4E00 + n) for n in range(4000)]
    for n in range(5):
        api.call(form_event({"category": "api"}, (f"{n}.md", markdown(*keywords).encode())))
    answer = api.read(api_event("GET", "/documents", query={"limit": "100"}), Context())
    assert len(answer["body"].encode()) < 5 * 50_000


def test_health_answers_without_a_caller_and_touches_no_store(api: Api) -> None:
    assert api.call(api_event("GET", "/health", authorizer=None)) == (200, {"status": "ok"})
    assert not api.world.objects.calls


NOT_JSON: list[tuple[str, dict[str, Any]]] = [
    ("no body", {"body": None, "content_type": "application/json"}),
    ("empty", {"body": "", "content_type": "application/json"}),
    ("broken", {"body": "{bad", "content_type": "application/json"}),
    ("a list", {"body": "[1]", "content_type": "application/json"}),
    ("a number", {"body": "1", "content_type": "application/json"}),
    ("binary", {"body": b"\xff\xfe", "content_type": "application/json"}),
    ("not base64", {"body": "@@@", "content_type": "application/json", "is_base64": True}),
    ("repeated keys", {"body": '{"query": "a", "query": "b"}', "content_type": "application/json"}),
    ("NaN", {"body": '{"query": NaN}', "content_type": "application/json"}),
    ("half a character", {"body": '{"query": "\\ud800abc"}', "content_type": "application/json"}),
    ("a huge number", {"body": '{"query": ' + "1" * 5000 + "}", "content_type": "application/json"}),
    ("too deep", {"body": "[" * 100_000, "content_type": "application/json"}),
    ("wrong type", {"body": '{"query": 5}', "content_type": "application/json"}),
    ("null query", {"body": '{"query": null}', "content_type": "application/json"}),
    ("missing field", {"body": "{}", "content_type": "application/json"}),
    ("unknown field", {"body": '{"query": "a", "quary": "b"}', "content_type": "application/json"}),
    ("wrong flag", {"body": '{"query": "a", "explain": "yes"}', "content_type": "application/json"}),
    ("empty query", {"body": '{"query": " "}', "content_type": "application/json"}),
    ("3 MB query", {"body": json.dumps({"query": "x" * 3_000_000}), "content_type": "application/json"}),
]


@pytest.mark.parametrize(("name", "request_"), NOT_JSON, ids=[name for name, _ in NOT_JSON])
def test_a_bad_lookup_is_400_with_a_reason_F01(api: Api, name: str, request_: dict[str, Any]) -> None:
    status, body = api.call(api_event("POST", "/lookup", **request_))
    assert status == 400
    assert set(body["error"]) <= {"code", "message", "field"}
    assert body["error"]["message"]


def test_base64_of_valid_json_is_accepted_F01(api: Api) -> None:
    assert api.call(api_event("POST", "/lookup", body=b'{"query": "x y"}', content_type="application/json"))[0] == 200


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "application/xml"])
def test_another_content_type_is_415_F01(api: Api, content_type: str) -> None:
    status, body = api.call(api_event("POST", "/lookup", body='{"query": "x"}', content_type=content_type))
    assert status == 415
    assert content_type in body["error"]["message"]


@pytest.mark.parametrize(
    ("event", "status", "mentions"),
    [
        (form_event({"category": "api"}, ("notes.txt", b"x")), 415, ".md"),
        (form_event({"category": "api"}, ("../../x.md", b"x")), 400, "file name"),
        (form_event({"category": "../x"}, ("x.md", b"x")), 400, "category"),
        (form_event({}, ("x.md", b"x")), 400, "category"),
        (form_event({"category": "api"}, None), 400, "file"),
        (form_event({"category": "api"}, ("x.md", b"caf\xe9")), 415, "UTF-8"),
        (form_event({"category": "api"}, ("x.md", b"x" * (1024 * 1024 + 1))), 413, "1048576"),
        (api_event("POST", "/documents", body=b"no form", content_type="multipart/form-data"), 400, "form"),
        (
            api_event("POST", "/documents", body=b"--x\r\ncut", content_type="multipart/form-data; boundary=x"),
            400,
            "form",
        ),
        (api_event("POST", "/documents", body="x", content_type="text/plain"), 415, "text/plain"),
        (json_event("POST", "/documents", {"category": "a", "file_name": "x.md"}), 400, "content"),
        (json_event("POST", "/documents", {"category": "a", "file_name": "x.md", "content": 7}), 400, "content"),
        (json_event("POST", "/documents", {"category": "a", "file_name": "x.md", "content": "\ud800"}), 415, "UTF-8"),
        (api_event("GET", "/documents/nosuchdocument"), 404, "this id"),
        (api_event("GET", "/documents/nosuchdocument/content"), 404, "this id"),
        (api_event("DELETE", "/documents/nosuchdocument"), 404, "this id"),
        (api_event("GET", "/documents", query={"limit": "0"}), 400, "limit"),
        (api_event("GET", "/documents", query={"limit": "ten"}), 400, "limit"),
        (api_event("GET", "/documents", query={"status": "LOST"}), 400, "status"),
        (api_event("GET", "/documents", query={"cursor": "garbage"}), 400, "cursor"),
        (api_event("GET", "/documents", query={"colour": "red"}), 400, "colour"),
        (api_event("GET", "/documents", query={"category": "x" * 2000}), 400, "category"),
        (api_event("GET", "/documents/" + "x" * 3000), 404, "this id"),
        (api_event("GET", "/lookup"), 400, "query"),
        (api_event("GET", "/nowhere"), 404, "path"),
        (api_event("PATCH", "/lookup"), 404, "method"),
    ],
)
def test_a_bad_request_names_the_problem_and_changes_nothing(
    api: Api, event: dict[str, Any], status: int, mentions: str
) -> None:
    answered, body = api.call(event)
    assert answered == status
    assert mentions.lower() in json.dumps(body["error"]).lower()
    assert not list(api.world.objects.list(""))
    assert api.world.registry.head().version == 0


def test_of_several_files_none_is_stored_and_the_form_is_refused(api: Api) -> None:
    event = form_event({"category": "api"}, ("a.md", b"a"))
    parts = base64.b64decode(event["body"]).split(b"\r\n--")
    doubled = b"\r\n--".join([*parts[:-1], parts[-2], parts[-1]])
    status, body = api.call({**event, "body": base64.b64encode(doubled).decode()})
    assert (status, body["error"]["field"]) == (400, "file")
    assert not list(api.world.objects.list(""))


def test_a_category_that_is_not_utf8_is_refused(api: Api) -> None:
    event = form_event({"category": "api"}, ("a.md", b"a"))
    body = base64.b64decode(event["body"]).replace(b"\r\n\r\napi", b"\r\n\r\n\xff")
    status, answer = api.call({**event, "body": base64.b64encode(body).decode()})
    assert (status, answer["error"]["field"]) == (400, "category")


def test_a_parameter_given_twice_is_refused(api: Api) -> None:
    event = api_event("GET", "/lookup", query={"query": "b"})
    event["multiValueQueryStringParameters"] = {"query": ["a", "b"]}
    status, body = api.call(event)
    assert (status, body["error"]["field"]) == (400, "query")


@pytest.mark.parametrize("authorizer", [None, {}, {"actor": "x"}, {"actor": "x", "role": "emperor"}])
@pytest.mark.parametrize(("method", "path"), [("POST", "/lookup"), ("GET", "/documents"), ("DELETE", "/documents/x")])
def test_without_a_known_caller_everything_but_health_is_401(
    api: Api, method: str, path: str, authorizer: dict[str, Any] | None
) -> None:
    handler = api.delete if method == "DELETE" else api.read
    answer = handler(api_event(method, path, body='{"query": "x"}', authorizer=authorizer), Context())
    assert answer["statusCode"] == 401
    assert answer["multiValueHeaders"]["WWW-Authenticate"] == ["Bearer"]
    assert answer["multiValueHeaders"]["Access-Control-Allow-Origin"] == ["*"]
    assert "at least the role reader is needed" in json.loads(answer["body"])["error"]["message"]


def test_a_role_that_is_not_enough_is_403_and_names_the_one_needed(api: Api) -> None:
    reader = {"actor": "agent", "role": "reader"}
    status, body = api.call(form_event({"category": "api"}, ("x.md", b"x"), authorizer=reader))
    assert status == 403
    assert "writer" in body["error"]["message"]


def test_a_store_that_is_down_is_503_and_may_be_tried_again(api: Api) -> None:
    api.world.registry.broken.add("read")
    answer = api.read(api_event("GET", f"/documents/{SOME_ID}"), Context())
    assert answer["statusCode"] == 503
    assert answer["multiValueHeaders"]["Retry-After"] == ["2"]


def test_an_unexpected_error_is_500_in_json_and_shows_nothing_of_itself(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    def explode() -> None:
        raise RuntimeError("secret detail")

    api.world.registry.before["read"] = explode
    status, body = api.call(api_event("GET", f"/documents/{SOME_ID}"))
    assert status == 500
    assert "secret" not in json.dumps(body)
    assert any(record.message == "request_failed" for record in caplog.records)


def _tree(cls: type[errors.KnowledgeError]) -> list[type[errors.KnowledgeError]]:
    return [cls, *(found for child in cls.__subclasses__() for found in _tree(child))]


@pytest.mark.parametrize("cls", _tree(errors.KnowledgeError), ids=lambda cls: cls.__name__)
def test_every_error_has_a_status_and_a_code_of_its_own(cls: type[errors.KnowledgeError]) -> None:
    assert 400 <= status_for(cls) < 600
    assert "code" in vars(cls)
    assert set(STATUS_BY_ERROR) <= set(_tree(errors.KnowledgeError))
