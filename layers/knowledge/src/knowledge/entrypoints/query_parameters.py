"""What the query of a URL says: nothing unknown, nothing twice, and each value of its kind."""

from collections.abc import Collection
from enum import StrEnum
from typing import TypeVar

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEvent

from knowledge.errors import InvalidInput

E = TypeVar("E", bound=StrEnum)


def query_parameters(event: APIGatewayProxyEvent, known: Collection[str]) -> dict[str, str]:
    """The parameters of the query. Raises InvalidInput, naming it, for one that is not `known` or is repeated."""
    parameters = event.get("queryStringParameters") or {}
    if unknown := sorted(set(parameters) - set(known)):
        known_ones = f"known are {', '.join(known)}" if known else "this route has none"
        raise InvalidInput(f"{unknown[0]}: not a parameter; {known_ones}", field=unknown[0])
    for name, values in (event.get("multiValueQueryStringParameters") or {}).items():
        if len(values) > 1:
            raise InvalidInput(f"{name}: it is given {len(values)} times", field=name)
    return dict(parameters)


def flag(parameters: dict[str, str], name: str) -> bool:
    """True or false as the query says it; false when it does not. Raises InvalidInput for anything else."""
    value = parameters.get(name, "false").lower()
    if value not in ("true", "false"):
        raise InvalidInput(f"{name} is {value!r}; it must be true or false", field=name)
    return value == "true"


def integer(parameters: dict[str, str], name: str, default: int) -> int:
    """A whole number, `default` when the query has none. Raises InvalidInput for anything else."""
    value = parameters.get(name, str(default))
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        raise InvalidInput(f"{name} is {value[:40]!r}; it must be a whole number", field=name)
    return int(value)


def one_of(parameters: dict[str, str], name: str, values: type[E]) -> E | None:
    """The member of `values` that the query names, None when it names none. Raises InvalidInput for anything else."""
    value = parameters.get(name)
    if value is None:
        return None
    found = next((one for one in values if one.value.lower() == value.lower()), None)
    if found is None:
        raise InvalidInput(f"{name} is {value[:40]!r}; it must be one of {', '.join(values)}", field=name)
    return found
