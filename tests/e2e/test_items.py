"""Knowledge items in the deployed stack: their whole life, over HTTP and real bucket events."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from knowledge import bootstrap
from knowledge.domain.access import Principal, Role
from knowledge.domain.item import ItemStatus
from tests.access import CASES, CATEGORY, Case, assert_answers_every_role
from tests.api import Answer, done
from tests.e2e.callers import TokenApi
from tests.e2e.conftest import LOCAL, Stack, eventually
from tests.gate import leaks, marked_items
from tests.item_commands import READER, REVIEWER, WRITER, Commands, word

pytestmark = pytest.mark.e2e
ROOT = LOCAL.parent
ANOTHER_REVIEWER = Principal("test-another-reviewer", Role.REVIEWER)


@pytest.fixture(scope="module")
def commands(stack: Stack) -> Iterator[Commands]:
    tokens = bootstrap.tokens(json.loads((LOCAL / "outputs.json").read_text())["TableName"])
    api = TokenApi(str(stack.api.base_url), tokens)
    yield Commands(api)
    _cleared_up(api)
    api.close()


def _cleared_up(api: TokenApi) -> None:
    """Nothing of these tests is published or waits any more, and none of their documents is left."""
    for status in ("candidate", "pending_review", "published"):
        while items := done(api.call(REVIEWER, "GET", "/items", query={"status": status, "limit": "50"}))["items"]:
            own = [item for item in items if item["created_by"] in api.names]
            if not own:
                break
            ends = [{"id": one["id"], "status": "archived", "expected_version": one["version"]} for one in own]
            done(api.call(REVIEWER, "POST", "/items/inbox/decisions", body={"decisions": ends}))
    for document in done(api.call(REVIEWER, "GET", "/documents", query={"category": CATEGORY, "limit": "100"}))[
        "documents"
    ]:
        done(api.call(REVIEWER, "DELETE", f"/documents/{document['doc_id']}"))


def sources(answer: Any) -> list[str]:
    return [answer[tier]["source"] for tier in ("primary", "supplement") if answer[tier]]


def is_found(commands: Commands, item: Any, query: str) -> bool:
    """By whichever tier."""
    return any(item["id"] in source for source in sources(commands.lookup(query)))


def content_found(commands: Commands, query: str) -> str:
    """What the exact tier answers."""
    primary = commands.lookup(query)["primary"]
    return primary["content"] if primary else ""


def test_the_whole_life_of_an_item_each_step_in_the_very_next_lookup_K2(commands: Commands) -> None:
    tag, other = word(), word()
    sentence = f"The {tag} stapler of the archive jams whenever the barometer falls."
    item = commands.propose(WRITER, title="A stapler jams", content=sentence, tags=[tag])
    assert (item["status"], item["version"], item["created_by"]) == ("candidate", 1, WRITER.name)
    item = commands.move(item, "pending_review", WRITER)
    assert not is_found(commands, item, tag)
    item = commands.move(item, "published", note="seen twice")
    assert item["embedding"]["state"] == "ready"
    assert sources(commands.lookup(tag)) == [item["file_path"]]
    assert item["file_path"] in sources(commands.lookup("why does the stapler in the archive jam at low pressure"))
    item = commands.edit(item, content=f"{sentence} Oil it with {other}.", tags=[other])
    assert other in content_found(commands, other)
    assert commands.lookup(tag)["primary"] is None
    item = commands.move(item, "archived")
    assert not is_found(commands, item, other)
    restored = commands.api.call(REVIEWER, "POST", f"/items/{item['id']}/restore", body={"expected_version": 5})
    assert (done(restored)["status"], is_found(commands, item, other)) == ("pending_review", False)
    item = commands.move(done(restored), "published")
    assert sources(commands.lookup(other)) == [item["file_path"]]
    reused = done(commands.api.call(READER, "POST", f"/items/{item['id']}/reuse"))
    assert (reused["reuse_count"], reused["version"]) == (1, item["version"])
    timeline = done(commands.api.call(REVIEWER, "GET", f"/items/{item['id']}/timeline"))["items"]
    happened = [(event["type"], event["actor"]) for event in timeline if not event["type"].startswith("embed")]
    moved = ("status_changed", REVIEWER.name)
    assert happened == [
        ("created", WRITER.name),
        ("status_changed", WRITER.name),
        moved,
        ("edited", REVIEWER.name),
        *[moved] * 3,
        ("reused", READER.name),
    ]
    commands.move(item, "archived")


def test_items_are_found_by_search_and_in_the_context_K4_K8(commands: Commands) -> None:
    name = word()
    item = commands.item(ItemStatus.PUBLISHED, title=f"The {name} ferry", content="The ferry leaves before the tide.")
    query = {"query": name.upper()}
    [found] = done(commands.api.call(READER, "GET", "/items/search", query=query))["items"]
    assert (found["id"], "substring" in found["signals"]) == (item["id"], True)
    context = done(commands.api.call(READER, "POST", "/context", body={"query": f"When does the {name} ferry leave?"}))
    assert "The ferry leaves before the tide." in context["text"]
    assert item["file_path"] in [source["file_path"] for source in context["sources"]]
    commands.move(item, "archived")
    assert done(commands.api.call(READER, "GET", "/items/search", query=query))["items"] == []
    assert name not in commands.api.call(READER, "POST", "/context", body={"query": f"{name} ferry"}).text


def test_of_reviewers_who_decide_at_once_one_wins_and_the_others_are_told_what_is_K2(commands: Commands) -> None:
    reviewers = (REVIEWER, ANOTHER_REVIEWER)
    for reviewer in reviewers:
        done(commands.api.call(reviewer, "GET", "/items/inbox"))
    for _ in range(5):
        item = commands.item(ItemStatus.PENDING_REVIEW)

        def decide(number: int, item: Any = item) -> tuple[str, Answer]:
            status = ("published", "archived")[number % 2]
            body = {"status": status, "expected_version": 2}
            return status, commands.api.call(reviewers[number % 2], "POST", f"/items/{item['id']}/status", body=body)

        with ThreadPoolExecutor(2) as pool:
            ends = list(pool.map(decide, range(2)))
        [won] = [status for status, answer in ends if answer.status == 200]
        [told] = [answer for _, answer in ends if answer.status != 200]
        assert (told.status, told.body["error"]["current"]) == (409, {"version": 3, "status": won})
        stored = done(commands.api.call(REVIEWER, "GET", f"/items/{item['id']}"))
        assert (stored["status"], stored["version"]) == (won, 3)


def test_many_decisions_are_made_at_once_each_on_its_own(commands: Commands) -> None:
    tags = [word() for _ in range(3)]
    items = [commands.item(ItemStatus.PENDING_REVIEW, tags=[tag], content=f"About {tag}.") for tag in tags]
    decisions = [{"id": item["id"], "status": "published", "expected_version": 2} for item in items]
    decisions[1]["expected_version"] = 1
    body = {"decisions": decisions}
    one, outdated, other = done(commands.api.call(REVIEWER, "POST", "/items/inbox/decisions", body=body))["items"]
    assert (outdated["item"], outdated["error"]["code"]) == (None, "outdated")
    assert outdated["error"]["current"] == {"version": 2, "status": "pending_review"}
    for decided, tag in ((one, tags[0]), (other, tags[2])):
        assert decided["error"] is None
        assert sources(commands.lookup(tag)) == [decided["item"]["file_path"]]
    assert commands.lookup(tags[1])["primary"] is None
    commands.move(one["item"], "archived")
    commands.move(other["item"], "archived")


def test_the_file_of_an_item_that_a_person_edits_or_deletes_is_put_back(commands: Commands, stack: Stack) -> None:
    tag, forged = word(), word()
    item = commands.item(ItemStatus.PUBLISHED, tags=[tag], content="As it was approved.")
    place = {"Bucket": stack.bucket, "Key": item["file_path"]}
    approved = stack.s3.get_object(**place)["Body"].read()

    def is_put_back(version_id: str) -> bool:
        timeline = done(commands.api.call(REVIEWER, "GET", f"/items/{item['id']}/timeline"))["items"]
        overruled = [event["details"] for event in timeline if event["type"] == "document_put_back"]
        return version_id in json.dumps(overruled)

    edited = stack.s3.put_object(**place, Body=f"---\nkeywords: [{forged}]\n---\nNobody approved this.".encode())
    eventually(lambda: is_put_back(edited["VersionId"]))
    eventually(lambda: stack.s3.get_object(**place)["Body"].read() == approved)
    eventually(lambda: sources(commands.lookup(tag)) == [item["file_path"]])
    assert commands.lookup(forged)["primary"] is None
    stack.s3.delete_object(**place)
    eventually(lambda: sources(commands.lookup(tag)) == [item["file_path"]])
    assert stack.s3.get_object(**place)["Body"].read() == approved
    commands.move(done(commands.api.call(REVIEWER, "GET", f"/items/{item['id']}")), "archived")


def test_a_document_of_an_item_is_not_uploaded_over_nor_deleted(commands: Commands) -> None:
    item = commands.item(ItemStatus.PUBLISHED, content="As it was approved.")
    body = {"category": "pitfall", "file_name": f"{item['id']}.md", "content": "Nobody approved this."}
    refused = commands.api.call(WRITER, "POST", "/documents", body=body)
    assert (refused.status, "/items/" in refused.body["error"]["message"]) == (409, True)
    commands.move(item, "archived")


def test_the_life_of_an_item_in_the_readme_can_be_lived(stack: Stack) -> None:
    [commands] = re.findall(r"```sh\n(H=.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)
    variables = {"API": str(stack.api.base_url).rstrip("/"), "TOKEN": (LOCAL / "token").read_text().strip()}
    script = commands.replace("\ncurl", "\necho\ncurl")
    run = ["bash", "-euo", "pipefail", "-c", script]
    output = subprocess.run(run, capture_output=True, text=True, check=True, env=os.environ | variables).stdout
    submitted, published, answer, archived = map(json.loads, output.split("\n")[1:])
    assert [one["status"] for one in (submitted, published, archived)] == ["pending_review", "published", "archived"]
    assert (answer["primary"]["source"], answer["primary"]["confidence"]) == (published["file_path"], "high")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_route_answers_every_role_and_none_as_documented_in_the_cloud_A4(commands: Commands, case: Case) -> None:
    assert_answers_every_role(commands, case)


def test_no_agent_reads_what_no_person_has_published_in_the_cloud_N6(commands: Commands) -> None:
    marks = marked_items(commands)
    assert leaks(commands.api, marks, READER) == []
