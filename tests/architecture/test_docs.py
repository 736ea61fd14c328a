"""The documentation says what the code does, and leaves nothing of it out."""

import re
from pathlib import Path

from samtranslator.yaml_helper import yaml_parse

from knowledge import config, errors
from knowledge.config import Settings
from knowledge.entrypoints import metrics
from tests.bench.figures import FIGURES
from tests.routes import routes

ROOT = Path(__file__).parents[2]
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
PERFORMANCE = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def test_every_route_of_the_template_is_documented_and_no_other() -> None:
    table = API.split("## Lookup")[0]
    documented = set(re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE) [^`]+)`", table))
    # A REST API has one name for the variable of a path level, so the template calls a document's id as it calls the
    # category; what a variable is called is no part of a route.
    assert {_unnamed(route) for route in documented} == {_unnamed(str(route)) for route in routes()}


def _unnamed(route: str) -> str:
    return re.sub(r"{\w+}", "{}", route)


def _codes(cls: type[errors.KnowledgeError]) -> set[str]:
    return {cls.code}.union(*(_codes(child) for child in cls.__subclasses__()))


def test_every_error_code_is_documented_and_no_other() -> None:
    table = API.split("## Errors")[1]
    documented = set(
        re.findall(r"`([a-z_]+)`", "\n".join(line.split("|")[2] for line in table.splitlines() if "|" in line))
    )
    template = (ROOT / "template.yaml").read_text(encoding="utf-8")
    of_the_gateway = set(re.findall(r'"code": "(\w+)"', template))
    assert documented == _codes(errors.KnowledgeError) | of_the_gateway


def test_every_setting_is_documented_and_no_other() -> None:
    settings = {
        variable
        for value in vars(config).values()
        if isinstance(value, type) and issubclass(value, Settings)
        for variable in value.environment_variables()
    }
    table = OPERATIONS.split("## Settings")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `([A-Z_]+)`", table, flags=re.M)) == settings


def test_every_parameter_that_chooses_store_or_embedder_is_documented_with_its_default() -> None:
    parameters = yaml_parse((ROOT / "template.yaml").read_text(encoding="utf-8"))["Parameters"]
    chosen = {
        name: str(parameter["Default"])
        for name, parameter in parameters.items()
        if name.startswith(("VectorStore", "OpenSearch", "Embed"))
    }
    table = OPERATIONS.split("## Choosing the vector store")[1].split("\n## ")[0]
    documented = {
        name: row.split("|")[2].strip(" `")
        for row in table.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    assert documented == chosen


def test_every_metric_is_documented_and_no_other() -> None:
    sources = (ROOT / "layers" / "knowledge" / "src" / "knowledge" / "entrypoints").glob("*.py")
    emitted = {
        name for path in sources for name in re.findall(r'^[A-Z_]+ = "([A-Z]\w+)"$', path.read_text(), flags=re.M)
    }
    assert set(re.findall(r"\*\*The metric `(\w+)`\*\*", OPERATIONS)) == emitted - {metrics.NAMESPACE}


def test_links_between_documents_lead_somewhere() -> None:
    for document in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_every_decision_names_a_rejected_option_and_how_to_notice_being_wrong() -> None:
    decisions = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [int(path.name[:4]) for path in decisions] == list(range(1, len(decisions) + 1))
    for path in decisions:
        text = path.read_text(encoding="utf-8")
        assert "## Rejected" in text, path.name
        assert "being wrong" in text, path.name


def test_every_figure_of_the_benchmarks_is_documented_as_it_is_and_no_other() -> None:
    documented = [line for line in PERFORMANCE.splitlines() if line.startswith("| `")]
    assert documented == [
        f"| `{figure.name}` | {figure.unit} | {figure.meaning} | {figure.target} | {named(figure.baseline)} |"
        for figure in FIGURES.values()
    ]


def named(baseline: str | None) -> str:
    return f"`{baseline}`" if baseline else ""
