"""Builds template.yaml with SAM and deploys it to the local AWS, each only when something changed."""

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3

from tools.local_cloud import places
from tools.local_cloud.places import CLOUD, ROOT, STACK, TEMPLATE, Problem

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

# The build for Lambda itself, which `make build` writes, and the one for the Python that ministack runs functions on.
LAMBDA_BUILD = ROOT / ".aws-sam" / "build"
LOCAL_BUILD = CLOUD / "build"

_LOG = CLOUD / "sam.log"
_SOURCE_TAG = "source"
_USABLE = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"}


def build(directory: Path, *, python: str | None = None) -> bool:
    """`directory` holds the built stack; False when it already did.

    `python` is the interpreter to build the layers for; None builds them for Lambda.
    """
    fingerprint = source_fingerprint(python)
    stamp = directory / "fingerprint"
    if stamp.exists() and stamp.read_text() == fingerprint:
        return False
    environment = os.environ | {"UV": places.program("uv", "uv")} | ({"LAYER_PYTHON": python} if python else {})
    _sam(["build", "--template", str(TEMPLATE), "--build-dir", str(directory)], environment)
    stamp.write_text(fingerprint)
    return True


def deploy(directory: Path, parameters: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """The stack in the local AWS is what `directory` holds, with these parameters; False when it already was."""
    client = boto3.client("cloudformation")
    given = [f'{name}="{value}"' for name, value in sorted(parameters.items())]
    source = hashlib.sha256("\n".join([(directory / "fingerprint").read_text(), *given]).encode()).hexdigest()
    status, deployed_source = _state(client)
    if status in _USABLE and deployed_source == source:
        return False
    if status and status not in _USABLE:
        client.delete_stack(StackName=STACK)  # what an earlier run left half-finished; bucket and table are retained
        client.get_waiter("stack_delete_complete").wait(StackName=STACK, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    arguments = ["--template", str(directory / "template.yaml"), "--no-confirm-changeset", "--no-progressbar"]
    arguments += ["--no-fail-on-empty-changeset", "--tags", f"{_SOURCE_TAG}={source}"]
    arguments += ["--parameter-overrides", *given]
    _sam(["deploy", *arguments], environment)
    return True


def outputs(port: int) -> dict[str, str]:
    """The stack's outputs, with the API's address on this machine for the one it would have in AWS."""
    client = boto3.client("cloudformation")
    stack = client.describe_stacks(StackName=STACK)["Stacks"][0]
    found = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    stage = found["ApiUrl"].rsplit("/", 1)[-1]
    return found | {"ApiUrl": f"{places.endpoint(port)}/_aws/execute-api/{physical_id('Api')}/{stage}"}


def parameter(name: str) -> str:
    """The value with which the stack was deployed."""
    parameters = boto3.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"][0]["Parameters"]
    return next(item["ParameterValue"] for item in parameters if item["ParameterKey"] == name)


def table_name() -> str:
    """The table's name, as the last start of the local cloud wrote it down. Raises Problem when there was none."""
    try:
        name: str = json.loads(places.OUTPUTS.read_text())["TableName"]
    except FileNotFoundError as error:
        raise Problem("There is no local cloud: make run, or name the table of a deployed stack: TABLE=...") from error
    return name


def physical_id(logical_id: str) -> str:
    """What the deployed resource of that name in template.yaml is called."""
    client = boto3.client("cloudformation")
    detail = client.describe_stack_resource(StackName=STACK, LogicalResourceId=logical_id)["StackResourceDetail"]
    return detail["PhysicalResourceId"]


def apply_own_answers_of_the_gateway() -> None:
    """The gateway answers its own errors, and browsers that ask with OPTIONS, as template.yaml says.

    In AWS both arrive inside the API's OpenAPI document; ministack leaves those parts of it out, so they are taken from
    there and put one by one.
    """
    template = boto3.client("cloudformation").get_template(StackName=STACK, TemplateStage="Processed")["TemplateBody"]
    resources: Mapping[str, Any] = template["Resources"]
    document = resources["Api"]["Properties"]["Body"]
    gateway = boto3.client("apigateway")
    api, stage = physical_id("Api"), physical_id("ApiStage")
    for kind, response in document["x-amazon-apigateway-gateway-responses"].items():
        status = {"statusCode": str(response["statusCode"])} if "statusCode" in response else {}
        gateway.put_gateway_response(
            restApiId=api,
            responseType=kind,
            responseParameters=_said(response["responseParameters"]),
            responseTemplates=response["responseTemplates"],
            **status,
        )
    for resource in gateway.get_resources(restApiId=api, limit=500)["items"]:
        if options := document["paths"].get(resource["path"], {}).get("options"):
            answer = options["x-amazon-apigateway-integration"]["responses"]["default"]
            gateway.put_integration_response(
                restApiId=api,
                resourceId=resource["id"],
                httpMethod="OPTIONS",
                statusCode=answer["statusCode"],
                responseParameters=_said(answer["responseParameters"]),
            )
    gateway.create_deployment(restApiId=api, stageName=stage)


def _said(parameters: Mapping[str, str | Mapping[str, str]]) -> dict[str, str]:
    """Texts, and what `Fn::Sub` makes of the stack's parameters."""
    return {
        name: value
        if isinstance(value, str)
        else re.sub(r"\${(\w+)}", lambda found: parameter(found[1]), value["Fn::Sub"])
        for name, value in parameters.items()
    }


def spare_processors() -> None:
    """At most two indexers run at the same time: each unpacks the layers for itself and then needs a processor."""
    client = boto3.client("lambda")
    for mapping in client.list_event_source_mappings()["EventSourceMappings"]:
        client.update_event_source_mapping(UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": 2})


def source_fingerprint(python: str | None) -> str:
    """Changes when anything changes that a build is made from."""
    digest = hashlib.sha256((python or "lambda").encode())
    for path in _sources():
        digest.update(f"\n{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _sources() -> Iterator[Path]:
    yield TEMPLATE
    yield ROOT / "tools" / "requirements-sam.txt"
    for folder in ("functions", "layers"):
        yield from sorted(_files(ROOT / folder))


def _files(folder: Path) -> Iterable[Path]:
    return (p for p in folder.rglob("*") if p.is_file() and p.parent.name != "__pycache__")


def _state(client: "CloudFormationClient") -> tuple[str | None, str | None]:
    try:
        stack = client.describe_stacks(StackName=STACK)["Stacks"][0]
    except client.exceptions.ClientError:  # the only thing it says of a stack that does not exist
        return None, None
    return stack["StackStatus"], {tag["Key"]: tag["Value"] for tag in stack["Tags"]}.get(_SOURCE_TAG)


def _sam(arguments: list[str], environment: Mapping[str, str]) -> None:
    _LOG.parent.mkdir(parents=True, exist_ok=True)
    with _LOG.open("w") as log:
        command = [places.program("sam", "sam"), *arguments, "--config-file", str(ROOT / "samconfig.toml")]
        code = subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=log, check=False).returncode
    if code:
        text = "\n".join(_LOG.read_text(errors="replace").splitlines()[-25:])
        raise Problem(f"sam {arguments[0]} failed:\n{text}\n(the whole log: {_LOG.relative_to(ROOT)})")
