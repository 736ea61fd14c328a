"""Where the local cloud keeps things, and how programs are told to use it instead of AWS."""

import os
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ROOT / ".local"
ENVIRONMENTS = LOCAL / "envs"
CLOUD = LOCAL / "cloud"

OUTPUTS = LOCAL / "outputs.json"
TOKEN = LOCAL / "token"

TEMPLATE = ROOT / "template.yaml"
SEED = ROOT / "knowledge_base_seed"
STACK = "knowledge-base"
REGION = "us-east-1"


class Problem(Exception):
    """Something the person at the keyboard has to know; the message says what to do. Shown without a traceback."""


def program(environment: str, name: str) -> str:
    """Path of a program in one of the environments that the Makefile makes."""
    path = ENVIRONMENTS / environment / "bin" / name
    if not path.exists():
        raise Problem(f"{path.relative_to(ROOT)} is missing. Start this through make, which installs it: make run")
    return str(path)


def endpoint(port: int) -> str:
    """Where the local AWS answers."""
    return f"http://127.0.0.1:{port}"


def aws_environment(port: int) -> dict[str, str]:
    """What makes any AWS program or SDK talk to the local cloud, and to nothing else."""
    return {
        "AWS_ENDPOINT_URL": endpoint(port),
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
    }


def process_environment(port: int, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of this process turned to the local cloud.

    The person's own AWS settings are left out, and a proxy is not asked for addresses of this machine.
    """
    kept = {name: value for name, value in (base or os.environ).items() if not name.startswith("AWS_")}
    own = {name: kept.get(name, "") for name in ("NO_PROXY", "no_proxy")}
    return (
        kept
        | aws_environment(port)
        | {name: f"{value},127.0.0.1,localhost".lstrip(",") for name, value in own.items()}
        | {
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "SAM_CLI_TELEMETRY": "0",
        }
    )
