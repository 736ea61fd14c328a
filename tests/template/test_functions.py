"""What each function is made of, told and allowed."""

import fnmatch
from collections.abc import Iterator
from typing import Any

import pytest

from knowledge.config import (
    AuthorizerSettings,
    DocumentSettings,
    IndexerSettings,
    ItemSettings,
    LookupSettings,
    MaintenanceSettings,
    Settings,
)
from tests.template.evaluation import evaluated

Json = dict[str, Any]

SETTINGS: dict[str, type[Settings]] = {
    "authorizer": AuthorizerSettings,
    "delete": DocumentSettings,
    "indexer": IndexerSettings,
    "knowledge": ItemSettings,
    "lookup": LookupSettings,
    "maintenance": MaintenanceSettings,
    "upload": DocumentSettings,
}
# Source: Amazon API Gateway quotas, "Integration timeout".
GATEWAY_TIMEOUT_S = 29

each_function = pytest.mark.parametrize("name", SETTINGS)


def test_the_stack_has_exactly_the_functions_whose_settings_are_known(functions: Json) -> None:
    assert set(functions) == set(SETTINGS)


@each_function
def test_every_function_runs_on_python_3_13_and_x86_64(functions: Json, name: str) -> None:
    assert functions[name]["Runtime"] == "python3.13"
    assert functions[name]["Architectures"] == ["x86_64"]


@each_function
def test_every_function_has_the_knowledge_layer(functions: Json, name: str) -> None:
    [layer] = [layer["Ref"] for layer in functions[name]["Layers"] if "Ref" in layer]
    assert layer.startswith("KnowledgeLayer")


def test_the_embedded_layer_is_attached_only_where_vectors_are_embedded(functions: Json) -> None:
    conditional = {name: [layer for layer in f["Layers"] if "Fn::If" in layer] for name, f in functions.items()}
    assert conditional.pop("authorizer") == []
    for layers in conditional.values():
        [[condition, then, otherwise]] = [layer["Fn::If"] for layer in layers]
        assert condition == "UsesEmbeddedLayer"
        assert then["Ref"].startswith("EmbeddedLayer")
        assert otherwise == {"Ref": "AWS::NoValue"}


@each_function
def test_a_function_is_told_exactly_what_its_settings_read(functions: Json, name: str) -> None:
    assert set(functions[name]["Environment"]["Variables"]) == SETTINGS[name].environment_variables()


@each_function
def test_the_defaults_of_the_template_are_settings_that_can_be_used(template: Json, name: str) -> None:
    variables = evaluated(template, {})[f"{name.capitalize()}Function"]["Properties"]["Environment"]["Variables"]
    environment = {key: value if isinstance(value, str) else value["Ref"] for key, value in variables.items()}
    settings = SETTINGS[name].from_env(environment)
    assert settings.log_level == "INFO"


@each_function
def test_values_of_variables_are_text(functions: Json, name: str) -> None:
    values = functions[name]["Environment"]["Variables"].values()
    assert [value for value in values if not isinstance(value, str | dict)] == []


@pytest.mark.parametrize("name", ["authorizer", "delete", "knowledge", "lookup", "upload"])
def test_a_function_behind_the_gateway_ends_before_the_gateway_gives_up(functions: Json, name: str) -> None:
    assert functions[name]["Timeout"] < GATEWAY_TIMEOUT_S


@each_function
def test_every_function_has_a_role_of_its_own(functions: Json, resources: Json, name: str) -> None:
    roles = [f["Role"]["Fn::GetAtt"][0] for f in functions.values()]
    assert roles.count(functions[name]["Role"]["Fn::GetAtt"][0]) == 1
    assert resources[functions[name]["Role"]["Fn::GetAtt"][0]]["Type"] == "AWS::IAM::Role"


@each_function
def test_no_role_allows_everything(functions: Json, resources: Json, name: str) -> None:
    statements = list(_statements(functions, resources, name))
    assert statements
    for statement in statements:
        assert statement["Effect"] == "Allow"
        assert [action for action in _list(statement["Action"]) if "*" in action] == []
        assert "*" not in _list(statement["Resource"])


@each_function
def test_beyond_its_own_policy_a_role_may_only_write_logs(functions: Json, resources: Json, name: str) -> None:
    arns = _role(functions, resources, name)["ManagedPolicyArns"]
    names = [str(arn["Fn::Sub"] if isinstance(arn, dict) else arn).rsplit("/", 1)[-1] for arn in arns]
    assert names == ["AWSLambdaBasicExecutionRole"]


def test_the_authorizer_may_only_get_an_item(functions: Json, resources: Json) -> None:
    assert _actions(functions, resources, "authorizer") == {"dynamodb:GetItem"}


def test_the_function_that_reads_cannot_write(functions: Json, resources: Json) -> None:
    reading = ("s3:Get*", "s3:List*", "dynamodb:Get*", "dynamodb:BatchGet*", "dynamodb:Query")
    # Of a domain it may reach what test_choices says; of a collection, what the data access policy allows.
    searching = ("es:ESHttpGet", "es:ESHttpPost", "aoss:APIAccessAll")
    embedding = ("bedrock:InvokeModel", "secretsmanager:GetSecretValue")
    actions = _actions(functions, resources, "lookup")
    assert {
        action
        for action in actions
        if not any(fnmatch.fnmatch(action, one) for one in (*reading, *searching, *embedding))
    } == set()


def test_documents_are_put_and_deleted_by_their_commands_and_by_who_puts_those_of_items_right(
    functions: Json, resources: Json
) -> None:
    def may(action: str) -> set[str]:
        return {
            name
            for name in functions
            for statement in _statements(functions, resources, name)
            if action in _list(statement["Action"]) and "KnowledgeBasePath" in str(statement["Resource"])
        }

    assert may("s3:PutObject") == {"upload", "knowledge", "indexer", "maintenance"}
    assert may("s3:DeleteObject") == {"delete", "knowledge", "indexer", "maintenance"}


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("upload", ["DOC#*", "CATALOG"]),
        ("delete", ["DOC#*", "CATALOG"]),
        ("knowledge", ["ITEM#*", "ITEMS#*", "SETTINGS", "DOC#*", "CATALOG"]),
        ("indexer", ["DOC#*", "CATALOG", "ITEM#*", "ITEMS#*"]),
        ("maintenance", ["DOC#*", "CATALOG", "ITEM#*", "ITEMS#*"]),
    ],
)
def test_who_writes_into_the_table_writes_nothing_else_and_no_caller(
    functions: Json, resources: Json, name: str, keys: list[str]
) -> None:
    [statement] = [s for s in _statements(functions, resources, name) if "dynamodb:PutItem" in s["Action"]]
    assert statement["Resource"] == {"Fn::GetAtt": ["Table", "Arn"]}
    assert statement["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": keys}}


def test_nobody_else_writes_into_the_table(functions: Json, resources: Json) -> None:
    writing = {name for name in functions if "dynamodb:PutItem" in _actions(functions, resources, name)}
    assert writing == {"upload", "delete", "knowledge", "indexer", "maintenance"}


def test_maintenance_writes_documents_what_is_derived_from_them_and_items_and_makes_no_caller(
    functions: Json, resources: Json
) -> None:
    writing = ("s3:Put*", "s3:Delete*", "dynamodb:*Put*", "dynamodb:*Update*", "dynamodb:*Delete*", "dynamodb:*Write*")
    statements = [
        statement
        for statement in _statements(functions, resources, "maintenance")
        if any(fnmatch.fnmatch(action, pattern) for action in _list(statement["Action"]) for pattern in writing)
    ]
    documents, objects, items = statements
    assert documents["Resource"] == {"Fn::Sub": "${Bucket.Arn}/${KnowledgeBasePath}*"}
    assert objects["Resource"] == {"Fn::Sub": "${Bucket.Arn}/_index/*"}
    assert items["Resource"] == {"Fn::GetAtt": ["Table", "Arn"]}
    assert items["Condition"] == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["DOC#*", "CATALOG", "ITEM#*", "ITEMS#*"]}
    }


def test_maintenance_may_do_with_documents_what_the_indexer_may(functions: Json, resources: Json) -> None:
    """It repairs through the same code, and lists records beside that; it has no part in the queue."""
    following = {action for action in _actions(functions, resources, "indexer") if not action.startswith("sqs:")}
    assert _actions(functions, resources, "maintenance") == following | {"dynamodb:BatchWriteItem"}
    indexes = [str(s["Resource"]) for s in _statements(functions, resources, "maintenance") if "/index/" in str(s)]
    assert indexes == ["{'Fn::Sub': '${Table.Arn}/index/listing'}"]


def test_maintenance_does_everything_once_a_day_and_more_often_what_cannot_wait(resources: Json) -> None:
    rules = [resource["Properties"] for resource in resources.values() if resource["Type"] == "AWS::Events::Rule"]
    schedules = {rule["ScheduleExpression"]: rule["Targets"][0].get("Input") for rule in rules}
    assert schedules == {
        "rate(1 day)": None,
        "rate(1 hour)": '{"tasks": ["compact_if_due", "compact_items", "reconcile_unfinished"]}',
        "rate(5 minutes)": '{"tasks": ["sweep"]}',
    }
    assert all("MaintenanceFunction" in str(rule["Targets"]) for rule in rules)


@each_function
def test_logs_are_kept_for_the_time_that_the_parameter_says(functions: Json, resources: Json, name: str) -> None:
    group = resources[functions[name]["LoggingConfig"]["LogGroup"]["Ref"]]
    assert group["Type"] == "AWS::Logs::LogGroup"
    assert group["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}


def _role(functions: Json, resources: Json, name: str) -> Json:
    role: Json = resources[functions[name]["Role"]["Fn::GetAtt"][0]]["Properties"]
    return role


def _statements(functions: Json, resources: Json, name: str) -> Iterator[Json]:
    """Of the role itself, and of every policy that may be attached to it."""
    role = functions[name]["Role"]["Fn::GetAtt"][0]
    attached = [r["Properties"] for r in resources.values() if r["Type"] == "AWS::IAM::Policy"]
    for policy in (*resources[role]["Properties"]["Policies"], *(p for p in attached if {"Ref": role} in p["Roles"])):
        yield from policy["PolicyDocument"]["Statement"]


def _actions(functions: Json, resources: Json, name: str) -> set[str]:
    return {action for statement in _statements(functions, resources, name) for action in _list(statement["Action"])}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]
