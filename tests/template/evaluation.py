"""What CloudFormation makes of the template for given parameters: what its rules say, which resources are left."""

import re
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

_NOTHING = object()


def refused(template: Json, parameters: Mapping[str, str]) -> list[str]:
    """What the rules say against these parameters, and which of them their own patterns and lists refuse."""
    values = _values(template, parameters)
    found = [name for name, value in values.items() if not _is_allowed(template["Parameters"].get(name, {}), value)]
    for rule in template["Rules"].values():
        if _holds(rule["RuleCondition"], values, {}):
            found += [a["AssertDescription"] for a in rule["Assertions"] if not _holds(a["Assert"], values, {})]
    return found


def evaluated(template: Json, parameters: Mapping[str, str]) -> Json:
    """The resources that are made, by name; `Ref` of a parameter is its value, other references stay."""
    values, conditions = _values(template, parameters), template["Conditions"]
    return {
        name: _value(resource, values, conditions)
        for name, resource in template["Resources"].items()
        if "Condition" not in resource or _holds({"Condition": resource["Condition"]}, values, conditions)
    }


def _values(template: Json, parameters: Mapping[str, str]) -> dict[str, str]:
    assert parameters.keys() <= template["Parameters"].keys()
    defaults = {name: str(one["Default"]) for name, one in template["Parameters"].items() if "Default" in one}
    return {**defaults, **parameters}


def _is_allowed(parameter: Json, value: str) -> bool:
    pattern, allowed = parameter.get("AllowedPattern", ".*"), parameter.get("AllowedValues")
    return re.fullmatch(pattern, value) is not None and (allowed is None or value in map(str, allowed))


def _holds(condition: Any, values: Mapping[str, str], conditions: Json) -> bool:
    [(function, argument)] = condition.items()
    match function:
        case "Condition":
            return _holds(conditions[argument], values, conditions)
        case "Fn::Equals":
            left, right = (_value(one, values, conditions) for one in argument)
            return bool(left == right)
        case "Fn::Not":
            return not _holds(argument[0], values, conditions)
        case "Fn::And":
            return all(_holds(one, values, conditions) for one in argument)
        case "Fn::Or":
            return any(_holds(one, values, conditions) for one in argument)
    raise AssertionError(function)


def _value(value: Any, values: Mapping[str, str], conditions: Json) -> Any:
    if isinstance(value, list):
        items = [_value(one, values, conditions) for one in value]
        return [one for one in items if one is not _NOTHING]
    if not isinstance(value, dict):
        return value
    if value == {"Ref": "AWS::NoValue"}:
        return _NOTHING
    if value.keys() == {"Ref"} and value["Ref"] in values:
        return values[value["Ref"]]
    if value.keys() == {"Fn::If"}:
        condition, then, otherwise = value["Fn::If"]
        chosen = then if _holds({"Condition": condition}, values, conditions) else otherwise
        return _value(chosen, values, conditions)
    fields = {name: _value(one, values, conditions) for name, one in value.items()}
    return {name: one for name, one in fields.items() if one is not _NOTHING}
