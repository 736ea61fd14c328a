"""The functions as Lambda runs them: their handlers, their environment, the events in `events/`, AWS by moto."""

import base64
import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.client import BaseClient
from samtranslator.yaml_helper import yaml_parse

from knowledge.adapters.dynamodb_item_store import DynamoItemStore
from knowledge.adapters.s3 import S3ObjectStore
from knowledge.config import (
    AuthorizerSettings,
    DocumentSettings,
    IndexerSettings,
    ItemSettings,
    LookupSettings,
    MaintenanceSettings,
    Settings,
)
from knowledge.domain.document import doc_id_for
from knowledge.domain.item import ItemStatus
from knowledge.errors import ConfigError, InvalidInput
from knowledge.services.authentication import token_hash
from knowledge.services.item_index import ItemIndex
from knowledge.services.item_snapshots import ItemSnapshots
from tests.contract.item_builders import add, new_item
from tests.entrypoints.events import api_event, form_event, json_event
from tests.entrypoints.functions import BUCKET, ROOT, TABLE, Function, load
from tests.entrypoints.test_s3_events import dropped
from tests.services.world import markdown

SETTINGS: dict[str, type[Settings]] = {
    "upload": DocumentSettings,
    "delete": DocumentSettings,
    "lookup": LookupSettings,
    "knowledge": ItemSettings,
    "indexer": IndexerSettings,
    "maintenance": MaintenanceSettings,
    "authorizer": AuthorizerSettings,
}


def body_of(answer: dict[str, Any]) -> Any:
    return json.loads(answer["body"])


def ask(lookup: Function, query: str) -> Any:
    return body_of(lookup(json_event("POST", "/lookup", {"query": query})))


def test_what_one_function_uploads_the_next_lookup_in_another_finds_and_what_one_deletes_it_does_not(
    aws: SimpleNamespace,
) -> None:
    upload, lookup, delete = load("upload"), load("lookup"), load("delete")
    assert ask(lookup, "ERR_77 card")["found"] is False
    text = markdown("ERR_77", body="The customer mistyped the number of the card.")
    document = body_of(upload(form_event({"category": "api"}, ("errors.md", text.encode()))))
    assert document["status"] == "INDEXED"
    assert ask(lookup, "ERR_77 card")["primary"]["source"] == "knowledge_base/api/errors.md"
    found = ask(lookup, "the customer mistyped the card number")
    assert found["supplement"]["source"] == "knowledge_base/api/errors.md"
    assert delete(api_event("DELETE", f"/documents/{document['doc_id']}"))["statusCode"] == 200
    assert ask(lookup, "ERR_77 card")["found"] is False
    assert ask(lookup, "the customer mistyped the card number")["found"] is False
    assert not aws.s3.list_objects_v2(Bucket=BUCKET, Prefix="_index/vectors/").get("Contents")


def test_a_certain_lookup_costs_one_strongly_consistent_read_and_its_file(
    aws: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload, lookup, another = load("upload"), load("lookup"), load("lookup")
    for number in range(3):
        text = markdown(f"ERR_{number}").encode()
        assert upload(form_event({"category": "api"}, (f"{number}.md", text)))["statusCode"] == 201
    assert ask(lookup, "ERR_0")["found"] is ask(another, "ERR_1")["found"] is True
    calls: list[tuple[str, object]] = []
    send: Any = vars(BaseClient)["_make_api_call"]

    def counted(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
        calls.append((operation, parameters.get("ConsistentRead")))
        return send(client, operation, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", counted)
    for instance in (lookup, another):
        calls.clear()
        assert ask(instance, "ERR_2 again")["primary"]["confidence"] == "high"
        assert calls == [("Query", True), ("GetObject", None)]


def test_a_dropped_file_is_indexed_by_the_bucket_event(aws: SimpleNamespace) -> None:
    key = "knowledge_base/文档/部署 指南+1.md"
    aws.s3.put_object(Bucket=BUCKET, Key=key, Body=markdown("ERR_77").encode())
    assert load("indexer")({"Records": [dropped(key)]}) == {"batchItemFailures": []}
    assert ask(load("lookup"), "ERR_77")["primary"]["source"] == key
    document = body_of(load("lookup")(api_event("GET", f"/documents/{doc_id_for(key)}")))
    assert (document["file_path"], document["status"]) == (key, "INDEXED")


def test_maintenance_calibrates_what_was_uploaded_and_lookups_go_by_it(aws: SimpleNamespace) -> None:
    upload, maintenance, lookup = load("upload"), load("maintenance"), load("lookup")
    subjects = ("invoices", "refunds", "webhooks", "rate limits", "access tokens", "time zones")
    for number, subject in enumerate(subjects):
        text = markdown(f"K_{number}", title=f"All about {subject}", body=f"How we handle {subject} in our service.")
        assert upload(form_event({"category": "api"}, (f"{number}.md", text.encode())))["statusCode"] == 201
    event = json.loads((ROOT / "events" / "maintenance.json").read_text())
    figures = maintenance(event)["calibrate"]
    [noted] = aws.s3.list_objects_v2(Bucket=BUCKET, Prefix="_index/vectors.notes/")["Contents"]
    assert re.fullmatch(r"_index/vectors\.notes/[0-9a-f]{8}\.json", noted["Key"])  # of one embedder
    notes = json.loads(aws.s3.get_object(Bucket=BUCKET, Key=noted["Key"])["Body"].read())
    assert {**notes["calibration"], "is_noted": True} == figures
    decision = body_of(lookup(json_event("POST", "/lookup", {"query": "why are cats grey", "explain": True})))
    assert decision["explain"]["answer"]["threshold"] == pytest.approx(figures["answer_thresholds"]["spaced"], abs=1e-4)


def test_maintenance_compacts_the_log_and_a_new_lookup_function_starts_from_the_snapshot(
    aws: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    upload, maintenance, warm = load("upload"), load("maintenance"), load("lookup")
    assert ask(warm, "ERR_1 card")["found"] is False
    for number in (1, 2, 3):
        assert upload(form_event({"category": "api"}, (f"{number}.md", markdown(f"ERR_{number}").encode())))
        answer = maintenance({"tasks": ["compact"]})
        assert (answer["compact"]["is_written"], answer["compact"]["version"]) == (True, number)
        assert list(answer) == ["compact"]
    assert json.dumps(answer)
    assert len(aws.s3.list_objects_v2(Bucket=BUCKET, Prefix="_index/catalog/")["Contents"]) == 2
    key = {":pk": {"S": "CATALOG"}, ":log": {"S": "LOG#"}}
    condition = "pk = :pk AND begins_with(sk, :log)"
    log = aws.dynamodb.query(TableName=TABLE, KeyConditionExpression=condition, ExpressionAttributeValues=key)
    assert [item["sk"]["S"] for item in log["Items"]] == ["LOG#000000000002", "LOG#000000000003"]
    caplog.clear()
    cold = load("lookup")
    for number in (1, 2, 3):
        for lookup in (cold, warm):
            assert ask(lookup, f"ERR_{number} card")["primary"]["source"] == f"knowledge_base/api/{number}.md"
    loaded = [vars(record)["source"] for record in caplog.records if record.message == "catalog_loaded"]
    assert loaded == ["snapshot", "snapshot"], "the cold one, and the warm one that the log no longer goes back to"


def test_every_hour_maintenance_does_nothing_while_the_log_is_short_and_no_pass_unfinished(
    aws: SimpleNamespace,
) -> None:
    upload = load("upload")
    upload(form_event({"category": "api"}, ("1.md", markdown("ERR_1").encode())))
    load("maintenance")({"tasks": ["compact"]})
    upload(form_event({"category": "api"}, ("2.md", markdown("ERR_2").encode())))
    template = yaml_parse((ROOT / "template.yaml").read_text())
    hourly = template["Resources"]["MaintenanceFunction"]["Properties"]["Events"]["Hourly"]["Properties"]
    answer = load("maintenance")(json.loads(hourly["Input"]))
    assert answer.keys() == {"compact_if_due", "compact_items", "reconcile_unfinished"}
    assert (answer["compact_if_due"]["is_written"], answer["reconcile_unfinished"]["documents"]) == (False, 0)
    (snapshot,) = aws.s3.list_objects_v2(Bucket=BUCKET, Prefix="_index/catalog/")["Contents"]
    assert "Contents" not in aws.s3.list_objects_v2(Bucket=BUCKET, Prefix="_index/reconcile.json")
    aws.s3.delete_object(Bucket=BUCKET, Key=snapshot["Key"])
    answer = load("maintenance")(json.loads(hourly["Input"]))
    assert answer["compact_if_due"]["is_written"], "within the hour new processes have something to start from again"


def test_every_hour_maintenance_sees_to_the_snapshot_of_the_items(aws: SimpleNamespace) -> None:
    items = DynamoItemStore(aws.dynamodb, TABLE)
    add(items, new_item(title="A lesson"))
    maintenance = load("maintenance")
    saved = [maintenance({"tasks": ["compact_items"]})["compact_items"] for _ in range(2)]
    assert [one["is_written"] for one in saved] == [True, False]
    assert [one["item_count"] for one in saved] == [1, 1]
    (snapshot,) = aws.s3.list_objects_v2(Bucket=BUCKET, Prefix="_index/items/")["Contents"]
    index = ItemIndex(items, ItemSnapshots(S3ObjectStore(aws.s3, BUCKET)))
    index.refresh()
    assert len(index.matching("a lesson", statuses=set(ItemStatus), kind=None, limit=9)) == 1
    assert snapshot["Size"] > 0


def test_a_task_that_fails_does_not_keep_the_others_from_running_and_fails_the_invocation(
    aws: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    load("upload")(form_event({"category": "api"}, ("1.md", markdown("ERR_1").encode())))
    monkeypatch.setenv("VECTOR_STORE", "opensearch")
    monkeypatch.setenv("OPENSEARCH_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENSEARCH_SERVICE", "none")
    with pytest.raises(ExceptionGroup, match="failed: calibrate") as caught:
        load("maintenance")({})
    assert len(caught.value.exceptions) == 1
    assert len(aws.s3.list_objects_v2(Bucket=BUCKET, Prefix="_index/catalog/")["Contents"]) == 1
    monkeypatch.setenv("TABLE_NAME", "no-such-table")
    with pytest.raises(ExceptionGroup, match="failed: compact, sweep, compact_items, calibrate"):
        load("maintenance")({})


def test_a_task_that_does_not_exist_is_refused_before_any_other_is_begun(aws: SimpleNamespace) -> None:
    with pytest.raises(
        InvalidInput, match="'compct'; there are compact, compact_if_due, sweep, compact_items, calibrate"
    ):
        load("maintenance")({"tasks": ["compact", "compct"]})


def test_maintenance_finds_a_file_whose_delete_marker_was_removed_B10(aws: SimpleNamespace) -> None:
    indexer, maintenance, lookup = load("indexer"), load("maintenance"), load("lookup")
    key = "knowledge_base/文档/部署 指南+1.md"
    aws.s3.put_object(Bucket=BUCKET, Key=key, Body=markdown("ERR_77").encode())
    indexer({"Records": [dropped(key)]})
    marker = aws.s3.delete_object(Bucket=BUCKET, Key=key)["VersionId"]
    indexer({"Records": [dropped(key)]})
    assert ask(lookup, "ERR_77")["found"] is False
    aws.s3.delete_object(Bucket=BUCKET, Key=key, VersionId=marker)
    answer = json.loads(json.dumps(maintenance({"tasks": ["reconcile"]})))
    assert answer.keys() == {"reconcile"}
    assert answer["reconcile"]["differences"] == {"not_indexed": 1}
    assert (answer["reconcile"]["repaired"], answer["reconcile"]["documents"]) == (1, 1)
    assert ask(lookup, "ERR_77")["primary"]["source"] == key
    assert maintenance({"tasks": ["reconcile_unfinished"]}) == {"reconcile_unfinished": answer["reconcile"]}
    assert maintenance({"tasks": ["reconcile"]})["reconcile"]["differences"] == {}


def test_the_authorizer_knows_the_token_by_its_hash_in_the_table(aws: SimpleNamespace) -> None:
    item = {"pk": f"TOKEN#{token_hash('secret')}", "sk": "TOKEN", "name": "ci", "role": "admin"}
    aws.dynamodb.put_item(TableName=TABLE, Item={name: {"S": value} for name, value in item.items()})
    event = json.loads((ROOT / "events" / "authorizer.json").read_text())
    answer = load("authorizer")({**event, "authorizationToken": "Bearer secret"})
    assert answer["context"] == {"actor": "ci", "role": "admin"}


@pytest.mark.parametrize("name", ["upload", "delete", "lookup", "knowledge", "indexer"])
def test_the_event_on_file_is_one_the_function_understands(aws: SimpleNamespace, name: str) -> None:
    event = json.loads((ROOT / "events" / f"{name}.json").read_text())
    answer = load(name)(event)
    if name == "indexer":
        assert answer == {"batchItemFailures": []}
    else:
        assert answer["statusCode"] == {"upload": 201, "delete": 404, "lookup": 200, "knowledge": 200}[name]


def test_the_bytes_of_a_binary_upload_arrive_unchanged(aws: SimpleNamespace) -> None:
    content = b"\xef\xbb\xbf# \xe6\x94\xaf\xe4\xbb\x98\r\n"
    event = api_event(
        "PUT",
        "/documents/api/x.md",
        body=base64.b64encode(content).decode(),
        is_base64=True,
        content_type="text/markdown",
        path_parameters={"category": "api", "file_name": "x.md"},
    )
    assert load("upload")(event)["statusCode"] == 201
    assert aws.s3.get_object(Bucket=BUCKET, Key="knowledge_base/api/x.md")["Body"].read() == content


@pytest.mark.parametrize(
    ("keywords", "body"),
    [(["ERR_77"], "支" * 150_000), ([f"ERR_{n:04}" for n in range(3_000)], "text"), (["长" * 200] * 100, "text")],
    ids=["450 KB of text", "3,000 keywords", "60 KB of keywords"],
)
def test_a_large_document_is_indexed_whatever_an_item_of_the_table_may_hold_C01(
    aws: SimpleNamespace, keywords: list[str], body: str
) -> None:
    content = markdown(*keywords, body=body).encode()
    document = body_of(load("upload")(form_event({"category": "api"}, ("large.md", content))))
    assert (document["status"], len(document["metadata"]["keywords"])) == ("INDEXED", len(keywords))
    assert ask(load("lookup"), keywords[-1])["primary"]["source"] == "knowledge_base/api/large.md"
    assert aws.s3.get_object(Bucket=BUCKET, Key="knowledge_base/api/large.md")["Body"].read() == content


def test_frontmatter_too_large_for_an_item_is_a_warning_and_loses_nothing_C01(aws: SimpleNamespace) -> None:
    content = markdown("ERR_77", summary="长" * 160_000, body="The customer mistyped the card number.").encode()
    document = body_of(load("upload")(form_event({"category": "api"}, ("large.md", content))))
    assert (document["status"], document["metadata"]) == ("INDEXED", None)
    assert "bytes" in document["warnings"][0]
    kept = [item["Key"] for item in aws.s3.list_objects_v2(Bucket=BUCKET, Prefix="_index/vectors/")["Contents"]]
    assert len([key for key in kept if document["doc_id"] in key]) == 1


def test_numbers_in_frontmatter_come_back_as_their_author_typed_them_C02(aws: SimpleNamespace) -> None:
    typed = {"confidence": "0.87", "weight": "1e-3", "ratio": ".nan", "big": "1" * 39, "count": "1", "bound": "-.inf"}
    fields = "".join(f"{name}: {value}\n" for name, value in typed.items())
    upload = load("upload")(form_event({"category": "api"}, ("n.md", f"---\ntitle: 1.10\n{fields}---\ntext".encode())))
    assert upload["statusCode"] == 201
    document = body_of(load("lookup")(api_event("GET", f"/documents/{body_of(upload)['doc_id']}")))
    assert document["metadata"] == {"title": "1.10", **typed}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_handler_imports_in_an_empty_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in SETTINGS[name].environment_variables():
        monkeypatch.delenv(variable, raising=False)
    assert callable(load(name))


@pytest.mark.parametrize("name", SETTINGS)
def test_a_missing_setting_is_named_D19(name: str) -> None:
    with pytest.raises(ConfigError, match="TABLE_NAME"):
        SETTINGS[name].from_env({})


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MAX_DOCUMENT_BYTES", "0"),
        ("MAX_DOCUMENT_BYTES", "many"),
        ("KNOWLEDGE_BASE_PATH", "/"),
        ("KNOWLEDGE_BASE_PATH", "a//b"),
        ("LOG_LEVEL", "LOUD"),
        ("SEMANTIC_TIMEOUT_S", "0"),
        ("CATALOG_LOAD_WAIT_S", "-1"),
    ],
)
def test_a_setting_out_of_bounds_is_named_D19(variable: str, value: str) -> None:
    with pytest.raises(ConfigError, match=variable):
        LookupSettings.from_env({"BUCKET_NAME": "b", "TABLE_NAME": "t", variable: value})


@pytest.mark.parametrize("path", ["kb", "/kb", "kb/", "/kb/"])
def test_the_prefix_is_the_same_with_or_without_slashes_D19(path: str) -> None:
    env = {"BUCKET_NAME": "b", "TABLE_NAME": "t", "KNOWLEDGE_BASE_PATH": path, "UNKNOWN": "ignored"}
    assert LookupSettings.from_env(env).knowledge_base_path == "kb/"
    assert LookupSettings.from_env({**env, "KNOWLEDGE_BASE_PATH": ""}).knowledge_base_path == "knowledge_base/"
