"""What is wrong with a resource, in words that name the field and the fix.

Pydantic knows what it did not like; a person wants to know what to write instead. One function a kind of error.
"""

import difflib
import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kavka_operator.api.model import NAME_PATTERN, BrokenRuleError
from kavka_operator.api.yaml_lines import Where

SHOWN_LENGTH_MAX = 60
LISTED_MAX = 12


def complaints(error: ValidationError, model: type[BaseModel], prefix: Where = ()) -> Iterator[tuple[Where, str]]:
    """Each fault of the input as (path, what is wrong and what to write)."""
    found = [(tuple(part for part in fault["loc"] if not _is_marker(part)), fault) for fault in error.errors()]
    for path, fault in found:
        if not _follows(path, fault, [other for other, _ in found]):
            yield from (((*prefix, *where), words) for where, words in _explain(fault, path, model))


def _follows(path: Where, fault: ErrorDetails, paths: list[Where]) -> bool:
    """Whether a list is called too short only because its items are wrong; the faults of the items are enough."""
    inside = any(len(other) > len(path) and other[: len(path)] == path for other in paths)
    return inside and fault["type"] == "too_short"


def _is_marker(part: str | int) -> bool:
    """Whether a part of the path is no field but the branch of a union (`int`, `constrained-str`)."""
    return isinstance(part, str) and ("[" in part or part in {"str", "int", "float", "bool"})


def _explain(fault: ErrorDetails, path: Where, model: type[BaseModel]) -> Iterator[tuple[Where, str]]:
    given = fault["input"]
    bounds = fault.get("ctx", {})
    match fault["type"]:
        case "extra_forbidden":
            yield path, unknown_field(path, model)
        case "missing":
            yield path, "is missing; add it"
        case "value_error":
            cause = bounds["error"]
            below = tuple(cause.path.split(".", 1)) if isinstance(cause, BrokenRuleError) and cause.path else ()
            yield (*path, *below), str(cause)
        case "literal_error":
            yield path, _not_one_of(given, _choices(str(bounds["expected"])))
        case "string_pattern_mismatch":
            yield path, _pattern(str(given), str(bounds["pattern"]))
        case "string_too_long" | "string_too_short" | "too_long" | "too_short":
            yield path, _length(given, bounds)
        case "greater_than_equal" | "less_than_equal" | "greater_than" | "less_than":
            yield path, f"{shown(given)} is out of range; write a number {_range(fault['type'], bounds)}"
        case other if isinstance(given, str) and _fields_at(model, path)[:1] == ["name"]:
            yield path, f"{shown(given)} is not a map of fields; write {{name: {given[:SHOWN_LENGTH_MAX]}}}"
        case other:
            yield path, _wrong_type(other, given)


def shown(value: object) -> str:
    """The value for a message: short, text in quotes."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            short = value if len(value) <= SHOWN_LENGTH_MAX else value[:SHOWN_LENGTH_MAX] + "..."
            return f'"{short}"'
        case dict():
            return "a map"
        case list() | tuple():
            return "a list"
        case None:
            return "nothing"
        case _:
            return str(value)[:SHOWN_LENGTH_MAX]


def nearest(wrong: str, known: list[str]) -> str | None:
    """The known name that `wrong` most likely stands for."""
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(wrong.lower().replace("_", "").replace("-", ""), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None


def unknown_field(path: Where, model: type[BaseModel]) -> str:
    """Words for an unknown field, with the fields that there are."""
    known = _fields_at(model, path[:-1])
    if meant := nearest(str(path[-1]), known):
        return f'there is no such field; did you mean "{meant}"?'
    return f"there is no such field; take it out, or use one of {', '.join(known[:LISTED_MAX])}"


def _fields_at(model: type[BaseModel], path: Where) -> list[str]:
    schema: dict[str, Any] = model.model_json_schema(by_alias=True)
    definitions = schema.get("$defs", {})
    for part in path:
        schema = _resolved(schema, definitions)
        schema = schema.get("items", {}) if isinstance(part, int) else schema.get("properties", {}).get(part, {})
    return list(_resolved(schema, definitions).get("properties", {}))


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    for option in schema.get("anyOf", ()):
        if option.get("type") != "null":
            schema = option
    return definitions[schema["$ref"].removeprefix("#/$defs/")] if "$ref" in schema else schema


def _choices(expected: str) -> list[str]:
    return [choice.strip().strip("'") for choice in expected.replace(" or ", ", ").split(",")]


def _not_one_of(given: object, choices: list[str]) -> str:
    if choices == ["True"]:
        return f"{shown(given)} makes no sense here; write true or leave it out"
    meant = nearest(str(given), choices)
    fix = f'did you mean "{meant}"?' if meant else f"write {' or '.join(choices)}"
    return f"{shown(given)} is not one of {', '.join(choices)}; {fix}"


def _pattern(given: str, pattern: str) -> str:
    if pattern != NAME_PATTERN:
        return f"{shown(given)} does not match {pattern}"
    allowed = re.sub(r"[^a-z0-9]+", "-", given.lower()).strip("-")
    return f'{shown(given)} is not a name (lower-case letters, digits and "-"); write "{allowed or "name"}"'


def _length(given: object, bounds: dict[str, Any]) -> str:
    if "max_length" in bounds:
        return f"{shown(given)} is too long; at most {bounds['max_length']} are allowed"
    return f"{shown(given)} is too short; at least {bounds['min_length']} must be given"


def _range(kind: str, bounds: dict[str, Any]) -> str:
    words = {
        "greater_than_equal": "from",
        "less_than_equal": "up to",
        "greater_than": "above",
        "less_than": "below",
    }
    limit = next(value for key, value in bounds.items() if key in {"ge", "le", "gt", "lt"})
    return f"{words[kind]} {limit:g}" if isinstance(limit, float) else f"{words[kind]} {limit}"


WANTED = {
    "int": "a whole number",
    "float": "a number",
    "string": "text (in quotes)",
    "bool": "true or false",
    "model": "a map of fields",
    "dict": "a map",
    "list": "a list",
    "tuple": "a list",
}


def _wrong_type(kind: str, given: object) -> str:
    wanted = WANTED.get(kind.split("_", maxsplit=1)[0], "something else")
    fix = ""
    if isinstance(given, str) and kind.startswith(("int", "float")):
        digits = given.strip().rstrip("%")
        fix = f"; write {digits}" if digits.replace(".", "", 1).isdecimal() else ""
    return f"{shown(given)} is not {wanted}" + (fix or f"; write {wanted}")
