"""Calls one function's handler in this process, against the running local cloud.

What a function is told comes from the deployed stack, which came from template.yaml.
"""

import importlib.util
import os
import pdb
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3

from tools.local_cloud import stack
from tools.local_cloud.places import ROOT, Problem

if TYPE_CHECKING:
    from mypy_boto3_lambda.type_defs import FunctionConfigurationResponseTypeDef

_FOLDER = ROOT / "functions"

Handler = Callable[[dict[str, Any], "Context"], Any]


@dataclass
class Context:
    """What Lambda hands a handler beside the event."""

    function_name: str
    memory_limit_in_mb: int
    invoked_function_arn: str
    timeout_s: int
    function_version: str = "$LATEST"
    aws_request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    _started: float = field(default_factory=time.monotonic)

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda would end the invocation."""
        return max(0, int((self.timeout_s - (time.monotonic() - self._started)) * 1000))


def names() -> list[str]:
    """The functions there are."""
    return sorted(path.parent.name for path in _FOLDER.glob("*/handler.py"))


def invoke(name: str, event: dict[str, Any], *, debug: bool) -> object:
    """What the function's handler answers to `event`, called in this process with the deployed settings."""
    deployed = configuration(name)
    os.environ.update(deployed["Environment"]["Variables"])
    context = Context(deployed["FunctionName"], deployed["MemorySize"], deployed["FunctionArn"], deployed["Timeout"])
    handler = _load(name)
    return pdb.runcall(handler, event, context) if debug else handler(event, context)


def run(name: str) -> None:
    """The deployed function runs once, with an empty event.

    Raises:
        Problem: it failed.
    """
    answer = boto3.client("lambda").invoke(FunctionName=configuration(name)["FunctionName"], Payload=b"{}")
    if "FunctionError" in answer:
        raise Problem(f"{name} failed: {answer['Payload'].read().decode(errors='replace')}")


def configuration(name: str) -> "FunctionConfigurationResponseTypeDef":
    """The deployed function's settings."""
    physical_id = stack.physical_id(logical_id(name))
    return boto3.client("lambda").get_function_configuration(FunctionName=physical_id)


def logical_id(name: str) -> str:
    """The function's name in template.yaml. Raises Problem when there is no such function."""
    if name not in names():
        raise Problem(f"There is no function {name!r}; there are: {', '.join(names())}")
    return f"{name.capitalize()}Function"


def _load(name: str) -> Handler:
    spec = importlib.util.spec_from_file_location("handler", _FOLDER / name / "handler.py")
    if spec is None or spec.loader is None:
        raise Problem(f"functions/{name}/handler.py cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Handler = module.handler
    return handler
