"""The command line that makes, lists, rotates and revokes tokens; the table is moto's."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from samtranslator.yaml_helper import yaml_parse

from knowledge import bootstrap
from knowledge.domain.access import Role, Token
from tools import token

ROOT = Path(__file__).parents[3]
TABLE = "kb-table"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    table = yaml_parse((ROOT / "template.yaml").read_text())["Resources"]["Table"]["Properties"]
    wanted = ("BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")
    with mock_aws():
        client = boto3.client("dynamodb")
        client.create_table(TableName=TABLE, **{part: table[part] for part in wanted})
        yield client


@pytest.fixture
def run(dynamodb: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The exit code of the program, and what it wrote to either output."""

    def program(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["token", "--table", TABLE, *arguments])
        try:
            code = token.main()
        except SystemExit as ended:
            code = int(str(ended.code))
        return code, *capsys.readouterr()

    return program


def known() -> dict[str, Token]:
    return {one.name: one for one in bootstrap.tokens(TABLE).list()}


@pytest.mark.parametrize(("role", "days"), [("reader", 365), ("writer", 365), ("reviewer", 90), ("admin", 90)])
def test_a_token_is_shown_once_alone_and_only_its_hash_is_kept(run: Run, dynamodb: Any, role: str, days: int) -> None:
    code, out, err = run("create", "--name", "ci-agent", "--role", role)
    secret = out.strip()
    assert (code, len(secret), out) == (0, 43, f"{secret}\n")
    assert secret not in json.dumps(dynamodb.scan(TableName=TABLE)["Items"])
    lasts = known()["ci-agent"]
    assert lasts.expires_at is not None
    assert (lasts.role, (lasts.expires_at - lasts.created_at).days) == (Role(role), days)
    meant_for = "an agent" if role in ("reader", "writer") else "a person, never a program"
    assert f"ci-agent, {role}, for {meant_for}" in err


def test_a_token_is_a_readers_unless_told_otherwise(run: Run) -> None:
    assert run("create", "--name", "ci-agent")[0] == 0
    assert known()["ci-agent"].role is Role.READER


@pytest.mark.parametrize(("expires", "seconds"), [("90d", 90 * 86400), ("P30D", 30 * 86400), ("PT12H", 12 * 3600)])
def test_a_token_expires_when_told(run: Run, expires: str, seconds: int) -> None:
    assert run("create", "--name", "ci-agent", "--expires", expires)[0] == 0
    lasts = known()["ci-agent"]
    assert lasts.expires_at is not None
    assert (lasts.expires_at - lasts.created_at).total_seconds() == seconds


def test_a_token_expires_never_when_told(run: Run) -> None:
    _, _, err = run("create", "--name", "ci-agent", "--expires", "never")
    assert known()["ci-agent"].expires_at is None
    assert "Expires: never." in err


def test_tokens_are_listed_with_what_tells_them_apart_and_never_themselves(run: Run) -> None:
    secret = run("create", "--name", "ci-agent")[1].strip()
    run("create", "--name", "王芳", "--role", "reviewer")
    run("rotate", "--name", "ci-agent")
    code, out, _ = run("list")
    head, agent, person = out.splitlines()
    assert (code, head.split()) == (0, ["NAME", "ROLE", "CREATED", "EXPIRES", "SHA-256", "STATE"])
    assert f"{known()['ci-agent'].token_hash[:8]}...  active; the one before until " in agent
    assert person.split()[:2] == ["王芳", "reviewer"]
    assert secret not in out


def test_a_rotated_token_is_shown_once_and_the_old_one_is_good_for_a_day(run: Run) -> None:
    old = run("create", "--name", "ci-agent")[1].strip()
    code, out, err = run("rotate", "--name", "ci-agent")
    assert (code, len(out.strip())) == (0, 43)
    assert out.strip() != old
    assert "The one before is good until" in err
    replaced = known()["ci-agent"].replaced
    assert replaced is not None
    assert (replaced.until - known()["ci-agent"].created_at).total_seconds() == 24 * 3600
    assert "within 30 seconds" in run("rotate", "--name", "ci-agent", "--grace", "0")[2]
    assert known()["ci-agent"].replaced is None


def test_a_revoked_token_is_gone_and_it_is_said_when(run: Run) -> None:
    run("create", "--name", "ci-agent")
    code, out, err = run("revoke", "--name", "ci-agent")
    assert (code, out) == (0, "")
    assert "within 30 seconds" in err
    assert known() == {}
    assert run("revoke", "--name", "ci-agent") == (1, "", "'ci-agent' has no token\n")


def test_what_is_said_of_the_gateway_is_what_the_template_tells_it() -> None:
    api = yaml_parse((ROOT / "template.yaml").read_text())["Resources"]["Api"]["Properties"]
    assert api["Auth"]["Authorizers"]["BearerToken"]["Identity"]["ReauthorizeEvery"] == 30


@pytest.mark.parametrize(
    ("arguments", "code", "mentions"),
    [
        (["create"], 2, "--name"),
        (["create", "--name", ""], 1, "a name is"),
        (["create", "--name", "taken"], 1, "rotate it, or revoke it first"),
        (["create", "--name", "x", "--role", "emperor"], 2, "reviewer"),
        (["create", "--name", "x", "--expires", "soon"], 2, "90d"),
        (["create", "--name", "x", "--expires", "-P1D"], 2, "--expires"),
        (["create", "--name", "x", "--expires", "PT0S"], 1, "ten years"),
        (["rotate", "--name", "nobody"], 1, "has no token"),
        (["rotate", "--name", "taken", "--grace", "soon"], 2, "--grace"),
        (["rotate", "--name", "taken", "--grace", "1000"], 1, "30 days"),
        (["rotate", "--name", "taken", "--expires", "90d"], 2, "--expires"),
        (["lose"], 2, "lose"),
    ],
)
def test_a_mistake_is_named_and_changes_nothing(run: Run, arguments: list[str], code: int, mentions: str) -> None:
    run("create", "--name", "taken")
    before = known()
    ended, out, err = run(*arguments)
    assert (ended, out) == (code, "")
    assert mentions in err
    assert known() == before


def test_a_table_that_is_not_there_is_named_without_a_traceback(run: Run, dynamodb: Any) -> None:
    dynamodb.delete_table(TableName=TABLE)
    code, out, err = run("list")
    assert (code, out) == (1, "")
    assert "DynamoDB" in err
