"""Pydantic's errors in our words: where, what is wrong, what to write.

Pydantic says what it did not like; a person wants to know what to write instead. What that takes beside the error,
such as the fields that there are, is read from the model.
"""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kavka_operator.api.error_messages import (
    does_not_match,
    not_fields,
    not_one_of,
    not_wanted,
    out_of_range,
    too_long,
    too_short,
    unknown_field,
)
from kavka_operator.api.field_names import fields_by_key
from kavka_operator.api.yaml_lines import Where

KEY = "[key]"
"""The last part of pydantic's path to a key of a map."""
BOUNDS = {"less_than_equal": ("up to", "le"), "greater_than_equal": ("from", "ge"), "greater_than": ("above", "gt")}
FLOAT_MAX = 1e308  # a whole number above it is none that pydantic takes for a float
WANTED = {
    "string": "text (in quotes)",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "tuple": "a list",
    "dict": "a map",
}
"""The type that a field takes, in words, by the first word of the error's type."""
UNKNOWN = "a value of this field"
"""The same, where the error is none that is known here."""


class InvalidError(ValueError):
    """A value is not what its model takes; `faults` are (path, what is wrong and what to write)."""

    def __init__(self, faults: tuple[tuple[Where, str], ...]) -> None:
        super().__init__("; ".join(f"{'.'.join(map(str, path))}: {message}" for path, message in faults))
        self.faults = faults


class FieldError(ValueError):
    """A fault that a validator of a model finds in the field at `path`; in the model itself where that is empty."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path: Where = tuple(path.split(".", 1)) if path else ()


def faults_of(error: ValidationError, model: type[BaseModel]) -> tuple[tuple[Where, str], ...]:
    """All faults that pydantic found, in its order, which is that of the fields."""
    found = error.errors(include_url=False)
    inside = {details["loc"][:depth] for details in found for depth in range(len(details["loc"]))}
    # A list with wrong items is called too short as well, as only the right ones are counted.
    return tuple(
        _fault(details, model) for details in found if details["type"] != "too_short" or details["loc"] not in inside
    )


def _fault(details: ErrorDetails, model: type[BaseModel]) -> tuple[Where, str]:
    where, given, bounds = _where(details["loc"]), details["input"], details.get("ctx", {})
    match details["type"]:
        case "value_error":
            cause = bounds["error"]
            return (*where, *(cause.path if isinstance(cause, FieldError) else ())), str(cause)
        case "missing":
            return where, "is missing; add it"
        case "extra_forbidden" | "invalid_key":
            return where, unknown_field(str(where[-1]), list(fields_by_key(_field_at(model, where[:-1]))))
        case "model_type":
            return where, not_fields(given, list(fields_by_key(_field_at(model, where))))
        case "literal_error":
            return where, not_one_of(given, [str(option) for option in get_args(_field_at(model, where))])
        case other:
            return where, _scalar(other, given, bounds)


def _where(loc: tuple[int | str, ...]) -> Where:
    """The path of an error, whose last part is a key where the key itself is wrong."""
    return (*loc[:-2], str(loc[-2])) if loc[-1:] == (KEY,) else loc


def _scalar(kind: str, given: Any, bounds: Mapping[str, Any]) -> str:
    """Words for a value that is of the wrong type, length, size or form."""
    match kind:
        case "too_long" | "string_too_long":
            return too_long(given, bounds["max_length"])
        case "too_short" | "string_too_short":
            return too_short(given, bounds["min_length"])
        case "string_pattern_mismatch":
            return does_not_match(given, bounds["pattern"])
        case "float_type" if type(given) is int:
            return out_of_range(given, "below", FLOAT_MAX)
        case "string_unicode":
            return "is not text: it holds a half of a character; take it out"
        case other if other in BOUNDS:
            side, name = BOUNDS[other]
            return out_of_range(given, side, bounds[name])
        case other:
            return not_wanted(given, WANTED.get(other.partition("_")[0], UNKNOWN))


def _field_at(model: type[BaseModel], where: Where) -> Any:
    """The annotation at a path, without what stands beside it; None where there is none."""
    found: Any = model
    for part in where:
        found = _below(found, part)
    return found


def _below(annotation: Any, part: str | int) -> Any:
    """The annotation of a field, an item or a value."""
    if _is_model(annotation):
        field = fields_by_key(annotation).get(str(part))
        return None if field is None else _bare(field.annotation)
    arguments = get_args(annotation)
    return _bare(arguments[0 if isinstance(part, int) else -1]) if arguments else None


def _bare(annotation: Any) -> Any:
    """A type without its metadata, and without that it may be nothing."""
    while get_origin(annotation) in {Annotated, Union, UnionType}:
        annotation = next(part for part in get_args(annotation) if part is not NoneType)
    return annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
