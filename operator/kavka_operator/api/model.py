"""Models of resources: fields in camelCase that are read strictly, and rules that hold in both worlds.

A model is a frozen dataclass whose annotations say what each field may hold (`shapes`). It reads itself from the
plain values of YAML or JSON, writes itself back, and writes its part of a CRD; nothing says any of it a second time.

A rule between fields is written once, as a `Rule`: a CEL expression for the API server and the same rule as a Python
function for resource files. Both give the same message. The tests run a table of good and bad objects against the
Python half; the API server's tests run the same table against the CEL half.
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from datetime import UTC, datetime
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from kavka_operator.api.complaints import not_fields, unknown_field
from kavka_operator.api.shapes import (
    SCALARS,
    UNREADABLE,
    Anything,
    Bounded,
    Bounds,
    Choice,
    Extended,
    InvalidError,
    Listing,
    Mapped,
    Optional,
    Parsed,
    Reading,
    Schema,
    Shape,
)
from kavka_operator.api.yaml_lines import Where

LEFT_OUT = "x-left-out"
"""Marks in a schema an object that is nothing where it is left out: the defaults of its fields do not bring it."""


@dataclass(frozen=True, slots=True, eq=False)
class Extra:
    """Words of a field's schema beyond its shape; annotations are hashed, and a schema is not."""

    schema: Schema


def field(
    *,
    description: str = "",
    default: Any = MISSING,
    default_factory: Any = MISSING,
    key: str | None = None,
    schema: Schema | None = None,
    **bounds: Any,
) -> Any:
    """A field of a model. `key` is its name in a resource, where that is not its own in camelCase."""
    metadata = {
        "description": description,
        "key": key,
        "marks": [*([Bounds(**bounds)] if bounds else []), *([Extra(schema)] if schema else [])],
    }
    return dataclasses.field(default=default, default_factory=default_factory, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that a valid object keeps: `cel` for the API server, `holds` for us. `path` is where to complain.

    `told` says it of the object at hand, where that is shorter than what can be said of all.
    """

    cel: str
    message: str
    holds: Callable[[Any], bool]
    path: str = ""
    told: Callable[[Any], str] | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """A rule between an object and what it was before."""

    cel: str
    message: str
    holds: Callable[[Any, Any], bool]
    path: str = ""


def rule_schema(rule: Rule | Transition) -> dict[str, str]:
    """A rule as it stands in a CRD."""
    place = {"fieldPath": f".{rule.path.split('.')[0]}"} if rule.path else {}
    return {"rule": rule.cel, "message": rule.message, "reason": "FieldValueInvalid", **place}


@dataclass(frozen=True, slots=True)
class Known:
    """A field of a model: its name here, its key in a resource, what it may hold, its value where it is left out."""

    name: str
    key: str
    shape: Shape
    description: str
    default: Any
    default_factory: Any

    @property
    def is_required(self) -> bool:
        return self.default is MISSING and self.default_factory is MISSING

    def unset(self) -> Any:
        """The value of a field that is left out."""
        return self.default if self.default_factory is MISSING else self.default_factory()

    def schema(self) -> Schema:
        """The schema, with what the field is for and its default."""
        schema = self.shape.schema()
        if self.description:
            schema["description"] = self.description
        if self.default not in (MISSING, None, ()):
            schema["default"] = plain(self.default)
        if self.default is None and "properties" in schema:
            schema[LEFT_OUT] = True
        return schema


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Model:
    """A part of a resource: no unknown fields, no silent conversions, never changed in place."""

    rules: ClassVar[tuple[Rule, ...]] = ()
    transitions: ClassVar[tuple[Transition, ...]] = ()

    known_fields: ClassVar[tuple[Known, ...]] = ()

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)
        hints = get_type_hints(cls, include_extras=True)
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        cls.known_fields = tuple(_known(part, hints[part.name]) for part in fields)

    def __post_init__(self) -> None:
        """Read what the fields were given. Raises InvalidError."""
        reading = Reading()
        for known in self.known_fields:
            self.__dict__[known.name] = known.shape.read(self.__dict__[known.name], (known.key,), reading)
        _raise_faults(reading)
        if (broken := self._broken()) is not None:
            raise InvalidError((broken,))

    @classmethod
    def decode(cls, value: object, *, is_strict: bool = True) -> Self:
        """The model of plain values; unknown fields are left out unless `is_strict`. Raises InvalidError."""
        reading = Reading(is_strict)
        found = Part(cls).read(value, (), reading)
        _raise_faults(reading)
        assert isinstance(found, cls)
        return found

    @classmethod
    def schema(cls) -> Schema:
        """The structural schema, as an API server takes it."""
        return Part(cls).schema()

    def replaced(self, changes: Mapping[str, Any]) -> Self:
        """A copy with other values of some fields, which are not read again."""
        assert changes.keys() <= self.__dict__.keys(), changes
        return _made(type(self), {**self.__dict__, **changes})

    def forbidden_changes(self, old: Self) -> Iterator[Transition]:
        """The rules that a change from `old` to this resource would break."""
        return (transition for transition in self.transitions if not transition.holds(self, old))

    def to_dict(self) -> dict[str, Any]:
        """The map for a resource: keys in camelCase, without fields that are unset."""
        pairs = ((known.key, self.__dict__[known.name]) for known in self.known_fields)
        return {key: plain(value) for key, value in pairs if value is not None}

    def _broken(self) -> tuple[Where, str] | None:
        """The first rule that does not hold, as a fault."""
        for rule in self.rules:
            if not rule.holds(self):
                place = tuple(rule.path.split(".", 1)) if rule.path else ()
                return place, rule.message if rule.told is None else rule.told(self)
        return None


AnyModel = TypeVar("AnyModel", bound=Model)


def _raise_faults(reading: Reading) -> None:
    if reading.faults:
        raise InvalidError(tuple(reading.faults))


def plain(value: Any) -> Any:
    """A value of a model as JSON has it."""
    match value:
        case Model():
            return value.to_dict()
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case list() | tuple():
            return [plain(item) for item in value]
        case dict():
            return {key: plain(part) for key, part in value.items()}
        case _:
            return value


@dataclass(frozen=True, slots=True)
class Part:
    """A value that is a model of its own."""

    model: type[Model]

    def read(self, value: Any, path: Where, reading: Reading) -> Any:
        """The model, made of a map or given as it is."""
        if isinstance(value, self.model):
            return value
        if not isinstance(value, Mapping):
            return reading.refuse(path, not_fields(value, self._keys()))
        before = len(reading.faults)
        found = {known.name: _value(known, value, path, reading) for known in self.model.known_fields}
        if reading.is_strict:
            self._refuse_unknown(value, path, reading)
        if len(reading.faults) > before:
            return UNREADABLE
        return self._kept(_made(self.model, found), path, reading)

    def _refuse_unknown(self, value: Mapping[str, Any], path: Where, reading: Reading) -> None:
        known = self._keys()
        for key in value:
            if key not in known:
                reading.refuse((*path, str(key)), unknown_field(str(key), known))

    def _keys(self) -> list[str]:
        return [known.key for known in self.model.known_fields]

    def _kept(self, made: Model, path: Where, reading: Reading) -> Any:
        """The model, unless it breaks one of its rules."""
        if (broken := made._broken()) is None:
            return made
        return reading.refuse((*path, *broken[0]), broken[1])

    def schema(self) -> Schema:
        """The structural schema of the model, with its rules beside it."""
        fields = self.model.known_fields
        schema: Schema = {
            "type": "object",
            "description": inspect.cleandoc(self.model.__doc__ or ""),
            "required": [known.key for known in fields if known.is_required],
            "properties": {known.key: known.schema() for known in fields},
            "x-kubernetes-validations": _rules(self.model),
        }
        return {name: part for name, part in schema.items() if part}


def _made(model: type[AnyModel], values: Mapping[str, Any]) -> AnyModel:
    """A model of values that were read already."""
    made = object.__new__(model)
    made.__dict__.update(values)
    return made


def _value(known: Known, given: Mapping[str, Any], path: Where, reading: Reading) -> Any:
    """The value of a field, which may have been left out."""
    where = (*path, known.key)
    if known.key in given:
        return known.shape.read(given[known.key], where, reading)
    return reading.refuse(where, "is missing; add it") if known.is_required else known.unset()


def _rules(model: type[Model]) -> list[dict[str, str]]:
    """The rules of a model, as they stand in a CRD."""
    found: tuple[Rule | Transition, ...] = (*model.rules, *model.transitions)
    return [dict(sorted(rule_schema(rule).items())) for rule in found]


def _known(part: "dataclasses.Field[Any]", hint: Any) -> Known:
    """A field of a model, of what its class says."""
    key = part.metadata.get("key") or _camel(part.name)
    shape = _marked(_shape(hint), part.metadata.get("marks", ()))
    return Known(part.name, key, shape, part.metadata.get("description", ""), part.default, part.default_factory)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _shape(hint: Any) -> Shape:
    """The shape that an annotation allows."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _marked(_shape(arguments[0]), hint.__metadata__)
    if origin in {Union, UnionType}:
        (only,) = (argument for argument in arguments if argument is not NoneType)
        return Optional(_shape(only))
    if origin is Literal:
        return Choice(arguments)
    if origin in {tuple, list}:
        return Listing(_shape(arguments[0]))
    if origin is dict:
        return Mapped(_shape(arguments[1]))
    if isinstance(hint, type) and issubclass(hint, Model):
        return Part(hint)
    assert hint in {*SCALARS, Any, datetime}, f"a field cannot hold {hint}"
    return SCALARS.get(hint, Anything())


def _marked(shape: Shape, marks: Any) -> Shape:
    """A shape with the limits, the spellings and the words of a schema that stand beside a type."""
    for mark in marks:
        match mark:
            case Bounds():
                shape = _bounded(shape, mark)
            case Extra():
                shape = Extended(shape, mark.schema)
            case Parsed():
                shape = mark
            case other:
                raise TypeError(f"{other!r} says nothing of a field")
    return shape


def _bounded(shape: Shape, bounds: Bounds) -> Shape:
    """A shape with limits, which what may be nothing keeps only where it is something."""
    return Optional(_bounded(shape.inner, bounds)) if isinstance(shape, Optional) else Bounded(shape, bounds)
