"""Runs one function in Lambda's container, with the real `sam local invoke`, against the running local cloud."""

import asyncio
import ipaddress
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from samtranslator.yaml_helper import yaml_parse

from tools.local_cloud import functions, places, stack
from tools.local_cloud.places import CLOUD, ROOT, Problem

_IMAGE = "public.ecr.aws/lambda/python:3.13-x86_64"


def invoke(name: str, event: Path, port: int) -> int:
    """The exit code of `sam local invoke`, which printed what the function wrote and answered."""
    logical_id = functions.logical_id(name)
    _need_image()
    if stack.build(stack.LAMBDA_BUILD):
        print("built the layers for Lambda")
    settings = functions.configuration(name)["Environment"]["Variables"]
    local = {"AWS_ENDPOINT_URL": places.endpoint(port)}
    if settings.get("VECTOR_STORE") == "opensearch":
        local["OPENSEARCH_URL"] = settings["OPENSEARCH_URL"]
    with ExitStack() as forwarding:
        settings |= {
            variable: forwarding.enter_context(_reachable_from_containers(urlsplit(url).port or 80))
            for variable, url in local.items()
        }
        variables = CLOUD / "sam-local-variables.json"
        variables.write_text(json.dumps({logical_id: settings}))
        command = [places.program("sam", "sam"), "local", "invoke", logical_id, "--skip-pull-image"]
        command += ["--template", str(_template()), "--event", str(event), "--env-vars", str(variables)]
        command += ["--layer-cache-basedir", str(CLOUD / "layers")]
        return subprocess.run(command, cwd=ROOT, env=places.process_environment(port), check=False).returncode


def _template() -> Path:
    """The built template, beside the original, with what `sam local invoke` cannot work out for itself.

    It sets only variables that the template declares, and in AWS the endpoint must not be one of them; and it drops
    layers that hang on a condition.
    """
    template = yaml_parse((stack.LAMBDA_BUILD / "template.yaml").read_text())
    template["Globals"]["Function"]["Environment"] = {"Variables": {"AWS_ENDPOINT_URL": ""}}
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            layers = resource["Properties"]["Layers"]
            resource["Properties"]["Layers"] = [layer["Fn::If"][1] if "Fn::If" in layer else layer for layer in layers]
    path = stack.LAMBDA_BUILD / "template-local.json"
    path.write_text(json.dumps(template))
    return path


def _need_image() -> None:
    if not shutil.which("docker") or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        raise Problem("sam local needs a running Docker engine, and `docker info` does not find one.")
    if not subprocess.run(["docker", "image", "inspect", _IMAGE], capture_output=True, check=False).returncode:
        return
    if not subprocess.run(["docker", "pull", _IMAGE], check=False).returncode:
        return
    print(f"{_IMAGE} cannot be pulled here; making a stand-in from Debian and PyPI packages (about two minutes, once)")
    if subprocess.run([ROOT / "tools" / "lambda_base_image.sh", _IMAGE], check=False).returncode:
        raise Problem("The image could not be made; see above.")


@contextmanager
def _reachable_from_containers(port: int) -> Iterator[str]:
    """What listens on that port of 127.0.0.1 alone is meanwhile also reached at the URL given, by containers."""
    address = _bridge_address()
    loop = asyncio.new_event_loop()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))

    try:
        server = loop.run_until_complete(asyncio.start_server(forward, address))
    except OSError as error:
        raise Problem(f"Cannot listen on {address}, where containers reach this machine: {error.strerror}") from error
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield f"http://{address}:{server.sockets[0].getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        loop.close()


def _bridge_address() -> str:
    """This machine's address on Docker's own network."""
    query = ["docker", "network", "inspect", "bridge", "--format", "{{json (index .IPAM.Config 0)}}"]
    bridge = json.loads(subprocess.run(query, capture_output=True, text=True, check=True).stdout)
    # An engine names the gateway only when it was configured; it is the first address of the subnet then.
    return bridge.get("Gateway") or str(ipaddress.ip_network(bridge["Subnet"])[1])


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
