"""A client of the AWS SDK that reaches no network: its answers and faults come from the test."""

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError


class ScriptedClient:
    """A client whose methods give the next answer of `script`: a value, a function of the calls, or an error."""

    def __init__(self, **script: list[Any]) -> None:
        self._script = script
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**parameters: Any) -> Any:
            self.calls.append((name, parameters))
            answer = self._script[name].pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer(self.calls) if callable(answer) else answer

        return call

    @property
    def unused(self) -> list[str]:
        """Methods whose answers were not all taken."""
        return [name for name, answers in self._script.items() if answers]


def refused(code: str, status: int = 400, *, retries: int = 0, **more: Any) -> ClientError:
    """An answer with an error, as the SDK raises it."""
    answer = {
        "Error": {"Code": code, "Message": "a foreign text with secrets"},
        "ResponseMetadata": {"HTTPStatusCode": status, "RetryAttempts": retries},
        **more,
    }
    return ClientError(answer, "Operation")  # type: ignore[arg-type]


def cancelled(*codes: str) -> ClientError:
    """A transaction that DynamoDB cancelled, with a reason for each of its items."""
    return refused("TransactionCanceledException", CancellationReasons=[{"Code": code} for code in codes])
