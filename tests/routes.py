"""The routes that template.yaml has, for tests that go over all of them, so that a new one is covered by itself."""

import re
from dataclasses import dataclass
from pathlib import Path

from samtranslator.yaml_helper import yaml_parse

TEMPLATE = Path(__file__).parents[1] / "template.yaml"


@dataclass(frozen=True, order=True)
class Route:
    """One method of one path, and the folder of the function that serves it."""

    function: str
    method: str
    path: str
    is_open: bool
    """Whether it answers without a token."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def url(self) -> str:
        """The path with something in the place of each variable."""
        return re.sub(r"{\w+}", "abc", self.path)


def routes() -> list[Route]:
    """All of them."""
    template = yaml_parse(TEMPLATE.read_text(encoding="utf-8"))
    return sorted(
        Route(
            logical_id.removesuffix("Function").lower(),
            event["Properties"]["Method"].upper(),
            event["Properties"]["Path"],
            is_open=event["Properties"].get("Auth") == {"Authorizer": "NONE"},
        )
        for logical_id, resource in template["Resources"].items()
        for event in resource.get("Properties", {}).get("Events", {}).values()
        if event["Type"] == "Api"
    )
