"""The API as a client sees it, whether its functions run in this process or in the local cloud."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from knowledge.domain.access import Principal


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    text: str

    @property
    def body(self) -> Any:
        """The JSON in it."""
        return json.loads(self.text)


class Api(Protocol):
    """Whatever can be called."""

    def call(
        self,
        caller: Principal | None,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        """The answer to this caller, None for one without a token; the body is sent as JSON, whatever it is called."""


def done(answer: Answer) -> Any:
    """The body of an answer that is no refusal."""
    assert 200 <= answer.status < 300, answer
    return answer.body
