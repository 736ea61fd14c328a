"""The stack as CloudFormation gets it: template.yaml after the SAM transform."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).resolve().parents[2]

Json = dict[str, Any]


@pytest.fixture(scope="session")
def template() -> Json:
    source: Json = yaml_parse((ROOT / "template.yaml").read_text())
    # Deploying uploads what was built and puts its address here; the transform takes nothing else.
    source["Globals"]["Function"]["CodeUri"] = "s3://bucket/key"
    for resource in source["Resources"].values():
        if resource["Type"] == "AWS::Serverless::LayerVersion":
            resource["Properties"]["ContentUri"] = "s3://bucket/key"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        transformed: Json = transform(source, {}, SimpleNamespace(load=dict))
    return transformed


@pytest.fixture(scope="session")
def resources(template: Json) -> Json:
    found: Json = template["Resources"]
    return found


@pytest.fixture(scope="session")
def functions(resources: Json) -> dict[str, Json]:
    """Properties of each function, by its name in functions/."""
    return {
        logical_id.removesuffix("Function").lower(): resource["Properties"]
        for logical_id, resource in resources.items()
        if resource["Type"] == "AWS::Lambda::Function"
    }


@pytest.fixture(scope="session")
def api(resources: Json) -> Json:
    """The API's OpenAPI document."""
    document: Json = resources["Api"]["Properties"]["Body"]
    return document
