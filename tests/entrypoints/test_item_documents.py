"""Items, files and lookups through the functions themselves: what people do in the bucket, the sweep, reconcile."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from samtranslator.yaml_helper import yaml_parse

from knowledge.adapters.dynamodb_item_store import DynamoItemStore
from knowledge.adapters.hashing_embedder import HashingEmbedder
from knowledge.domain import item as items
from knowledge.domain.document import doc_id_for
from knowledge.domain.item import ItemStatus
from knowledge.domain.timeline import status_changed
from knowledge.errors import DependencyUnavailable
from tests.entrypoints.functions import BUCKET, ROOT, TABLE, Gateway, hashing_embedder, load
from tests.entrypoints.test_s3_events import dropped
from tests.item_commands import ADMIN, REVIEWER, Commands

MINE = b"---\ntitle: Mine\nkeywords: [ERR_MINE]\n---\nMine."


@pytest.fixture
def commands(aws: SimpleNamespace) -> Iterator[Commands]:
    with hashing_embedder():
        yield Commands(Gateway())


def path_of(item: Any) -> str:
    return f"knowledge_base/{item['kind']}/{item['id']}.md"


def files(aws: SimpleNamespace) -> list[str]:
    listed = aws.s3.list_objects_v2(Bucket=BUCKET, Prefix="knowledge_base/")
    return [found["Key"] for found in listed.get("Contents", [])]


def events(commands: Commands, item: Any) -> list[str]:
    timeline = commands.api.call(REVIEWER, "GET", f"/items/{item['id']}/timeline").body
    return [event["type"] for event in timeline["items"]]


def source(commands: Commands, query: str) -> str | None:
    primary = commands.lookup(query)["primary"]
    return str(primary["source"]) if primary else None


def test_the_indexer_puts_back_what_somebody_did_to_the_files_of_items(
    aws: SimpleNamespace, commands: Commands
) -> None:
    published = commands.item(ItemStatus.PUBLISHED, tags=["ERR_ONE"])
    archived = commands.item(ItemStatus.ARCHIVED, tags=["ERR_TWO"])
    removed = commands.item(ItemStatus.PUBLISHED, tags=["ERR_THREE"])
    for item in (published, archived):
        aws.s3.put_object(Bucket=BUCKET, Key=path_of(item), Body=MINE)
    aws.s3.delete_object(Bucket=BUCKET, Key=path_of(removed))
    answer = load("indexer")({"Records": [dropped(path_of(item)) for item in (published, archived, removed)]})
    assert answer == {"batchItemFailures": []}
    assert set(files(aws)) == {path_of(published), path_of(removed)}
    found = {query: source(commands, query) for query in ("ERR_ONE", "ERR_TWO", "ERR_THREE", "ERR_MINE")}
    assert found == {
        "ERR_ONE": path_of(published),
        "ERR_TWO": None,
        "ERR_THREE": path_of(removed),
        "ERR_MINE": None,
    }
    assert [events(commands, item).count("document_put_back") for item in (published, archived, removed)] == [1, 1, 1]


def test_a_file_that_cannot_be_put_right_comes_back_and_is_not_indexed_and_the_others_are(
    aws: SimpleNamespace, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = commands.item(ItemStatus.CANDIDATE)
    assert source(commands, item["id"]) is None
    for key in (path_of(item), "knowledge_base/kb/a.md"):
        aws.s3.put_object(Bucket=BUCKET, Key=key, Body=MINE.replace(b"ERR_MINE", key.encode()))

    def refuse(*_: object) -> None:
        raise DependencyUnavailable("DynamoDB", "did not answer")

    monkeypatch.setattr(DynamoItemStore, "read_all", refuse)
    messages = [dropped(path_of(item), "item"), dropped("knowledge_base/kb/a.md", "document")]
    answer = load("indexer")({"Records": messages})
    assert answer == {"batchItemFailures": [{"itemIdentifier": "item"}]}
    assert source(commands, "knowledge_base/kb/a.md") == "knowledge_base/kb/a.md"
    assert source(commands, item["id"]) is None


def test_uploads_and_deletes_of_an_items_document_are_conflicts_that_name_the_command(commands: Commands) -> None:
    item = commands.item(ItemStatus.PUBLISHED)
    body = {"category": "pitfall", "file_name": f"{item['id']}.md", "content": "Mine."}
    answer = commands.api.call(ADMIN, "POST", "/documents", body=body)
    assert (answer.status, answer.body["error"]["code"]) == (409, "conflict")
    assert f"PATCH /items/{item['id']}" in answer.body["error"]["message"]
    answer = commands.api.call(ADMIN, "DELETE", f"/documents/{doc_id_for(path_of(item))}")
    assert answer.status == 409
    assert f"POST /items/{item['id']}/archive" in answer.body["error"]["message"]


def swept() -> Any:
    """What the sweep answers, with the event that the template sends every five minutes."""
    template = yaml_parse((ROOT / "template.yaml").read_text())
    event = template["Resources"]["MaintenanceFunction"]["Properties"]["Events"]["Sweep"]["Properties"]["Input"]
    return load("maintenance")(json.loads(event))["sweep"]


def test_the_sweep_embeds_what_could_not_be_embedded_and_counts_what_still_is_not_K5(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(items, "_FIRST_RETRY", timedelta(0))
    with monkeypatch.context() as broken:

        def refuse(*_: object) -> None:
            raise DependencyUnavailable("embedder", "did not answer")

        broken.setattr(HashingEmbedder, "embed_passages", refuse)
        item = commands.item(ItemStatus.PUBLISHED, tags=["ERR_ONE"])
        assert item["embedding"]["state"] == "failed"
        assert swept() == {"settled": 0, "failed": 1, "published_without_embedding": 1}
        assert '"PublishedWithoutEmbedding":[1.0]' in capsys.readouterr().out.replace(" ", "")
    assert swept() == {"settled": 1, "failed": 0, "published_without_embedding": 0}
    assert "PublishedWithoutEmbedding" not in capsys.readouterr().out
    assert events(commands, item)[-3:] == ["embedding_failed", "embedding_failed", "embedded"]


def test_reconcile_finishes_what_a_dead_process_left_and_what_no_event_told(
    aws: SimpleNamespace, commands: Commands
) -> None:
    left, kept = (commands.item(ItemStatus.PUBLISHED, tags=[tag]) for tag in ("ERR_LEFT", "ERR_KEPT"))
    store = DynamoItemStore(aws.dynamodb, TABLE)
    before = store.read(left["id"])
    assert before is not None
    after = before.next(by="dead", at=datetime.now(UTC), status=ItemStatus.ARCHIVED)
    store.write(before, after, status_changed(before, after))
    aws.s3.put_object(Bucket=BUCKET, Key=path_of(kept), Body=MINE)
    report = load("maintenance")({"tasks": ["reconcile"]})["reconcile"]
    assert report["differences"] == {"item": 2}
    assert (report["repaired"], report["unsettled_items"], report["published_without_embedding"]) == (2, 0, 0)
    assert files(aws) == [path_of(kept)]
    assert [source(commands, query) for query in ("ERR_LEFT", "ERR_KEPT", "ERR_MINE")] == [None, path_of(kept), None]
    assert events(commands, left)[-1] == "status_changed"
    assert load("maintenance")({"tasks": ["reconcile"]})["reconcile"]["differences"] == {}
