"""What a field of a resource may hold: each shape reads a value, and writes itself as a part of a CRD's schema.

Nothing is converted silently: `"3"` is no number and 3.0 no whole one. A shape that does not take a value says so in
words that a person can act on, and reading goes on: all faults of a resource are found at once. Lists become tuples.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kavka_operator.api.complaints import (
    NAMES,
    no_multiple,
    not_a_name,
    not_one_of,
    out_of_range,
    shown,
    too_long,
    too_short,
)
from kavka_operator.api.yaml_lines import Where

Schema = dict[str, Any]

#: Stands for a value that could not be read.
UNREADABLE = object()

#: What a larger whole number is taken for where a float is wanted, which might not hold it; no field takes either.
INTEGER_MAX = 1 << 1000


class InvalidError(ValueError):
    """A value is not what its model takes; `faults` are (path, what is wrong and what to write)."""

    def __init__(self, faults: tuple[tuple[Where, str], ...]) -> None:
        super().__init__("; ".join(f"{'.'.join(map(str, path))}: {message}" for path, message in faults))
        self.faults = faults


@dataclass(slots=True)
class Reading:
    """One reading of a value: the faults found so far, and whether an unknown field is one or is left out."""

    is_strict: bool = True
    faults: list[tuple[Where, str]] = field(default_factory=list)

    def refuse(self, path: Where, message: str) -> Any:
        """Note a fault. Returns UNREADABLE."""
        self.faults.append((path, message))
        return UNREADABLE


class Shape(Protocol):
    """The rule for a value: its type, its bounds and its form."""

    def read(self, value: Any, path: Where, reading: Reading) -> Any:
        """The value as a model holds it, or UNREADABLE with a fault in `reading`."""
        ...

    def schema(self) -> Schema:
        """The structural schema, as an API server takes it."""
        ...


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a value: of a number itself, or of the length of text, a list or a map."""

    ge: int | None = None
    gt: int | None = None
    le: float | None = None
    multiple_of: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None

    def fault(self, value: Any, given: Any) -> str | None:
        """The fault of a value of the right type, which was given as `given`."""
        return self._length(value) if isinstance(value, str | tuple | dict) else self._number(value, given)

    def _number(self, value: float, given: Any) -> str | None:
        if self.le is not None and not value <= self.le:
            return out_of_range(given, "up to", self.le)
        if self.ge is not None and not value >= self.ge:
            return out_of_range(given, "from", self.ge)
        if self.gt is not None and not value > self.gt:
            return out_of_range(given, "above", self.gt)
        if self.multiple_of is not None and value % self.multiple_of:
            return no_multiple(given, self.multiple_of)
        return None

    def _length(self, value: Any) -> str | None:
        if self.max_length is not None and len(value) > self.max_length:
            return too_long(value, self.max_length)
        if self.min_length is not None and len(value) < self.min_length:
            return too_short(value, self.min_length)
        if self.pattern is not None and re.fullmatch(self.pattern, value) is None:
            return (
                not_a_name(value, self.pattern)
                if self.pattern in NAMES
                else f"{shown(value)} does not match {self.pattern}"
            )
        return None

    def schema(self, noun: str) -> Schema:
        """The limits in a schema; `noun` is what a length counts: Length, Items or Properties."""
        limits = {
            "minimum": self.ge if self.gt is None else self.gt,
            "exclusiveMinimum": None if self.gt is None else True,
            "maximum": self.le,
            "multipleOf": self.multiple_of,
            f"min{noun}": self.min_length,
            f"max{noun}": self.max_length,
            "pattern": self.pattern,
        }
        return {key: limit for key, limit in limits.items() if limit is not None}


@dataclass(frozen=True, slots=True)
class Bounded:
    """A shape with limits."""

    inner: Shape
    bounds: Bounds

    def read(self, value: Any, path: Where, reading: Reading) -> Any:
        found = self.inner.read(value, path, reading)
        if found is not UNREADABLE and (fault := self.bounds.fault(found, value)) is not None:
            return reading.refuse(path, fault)
        return found

    def schema(self) -> Schema:
        inner = self.inner.schema()
        noun = {"array": "Items", "object": "Properties"}.get(inner.get("type", ""), "Length")
        return {**inner, **self.bounds.schema(noun)}


@dataclass(frozen=True, slots=True)
class Scalar:
    """Text, a number, or true and false."""

    kind: type
    wanted: str
    name: str

    def read(self, value: Any, path: Where, reading: Reading) -> Any:
        if type(value) is self.kind:
            return value
        if self.kind is float and type(value) is int:
            return float(max(-INTEGER_MAX, min(value, INTEGER_MAX)))
        return reading.refuse(path, f"{shown(value)} is not {self.wanted}; write {self._fix(value)}")

    def _fix(self, value: Any) -> str:
        """A number that somebody wrote as text or per cent, as a number; otherwise what is wanted."""
        digits = value.strip().rstrip("%") if isinstance(value, str) and self.kind in {int, float} else ""
        return digits if digits.replace(".", "", 1).isdecimal() else self.wanted

    def schema(self) -> Schema:
        return {"type": self.name}


TEXT = Scalar(str, "text (in quotes)", "string")
SCALARS: Mapping[object, Scalar] = {
    str: TEXT,
    int: Scalar(int, "a whole number", "integer"),
    float: Scalar(float, "a number", "number"),
    bool: Scalar(bool, "true or false", "boolean"),
}


@dataclass(frozen=True, slots=True)
class Anything:
    """A value that is taken as it is."""

    def read(self, value: Any, path: Where, reading: Reading) -> Any:
        return value

    def schema(self) -> Schema:
        return {}


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few texts, or the one word that makes sense."""

    options: tuple[Any, ...]

    def read(self, value: Any, path: Where, reading: Reading) -> Any:
        if any(type(value) is type(option) and value == option for option in self.options):
            return value
        return reading.refuse(path, not_one_of(value, [str(option) for option in self.options]))

    def schema(self) -> Schema:
        kind = SCALARS[type(self.options[0])]
        return {**kind.schema(), "enum": list(self.options)}


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be nothing."""

    inner: Shape

    def read(self, value: Any, path: Where, reading: Reading) -> Any:
        return None if value is None else self.inner.read(value, path, reading)

    def schema(self) -> Schema:
        return self.inner.schema()


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of values alike."""

    item: Shape

    def read(self, value: Any, path: Where, reading: Reading) -> Any:
        if not isinstance(value, list | tuple):
            return reading.refuse(path, f"{shown(value)} is not a list; write a list")
        items = tuple(self.item.read(item, (*path, index), reading) for index, item in enumerate(value))
        return UNREADABLE if any(item is UNREADABLE for item in items) else items

    def schema(self) -> Schema:
        return {"type": "array", "items": self.item.schema()}


@dataclass(frozen=True, slots=True)
class Mapped:
    """A map of values alike, by keys that are free."""

    value: Shape

    def read(self, value: Any, path: Where, reading: Reading) -> Any:
        if not isinstance(value, Mapping):
            return reading.refuse(path, f"{shown(value)} is not a map; write a map")
        found = dict(self._pairs(value, path, reading))
        return UNREADABLE if any(part is UNREADABLE for part in found.values()) else found

    def _pairs(self, value: Mapping[Any, Any], path: Where, reading: Reading) -> Iterator[tuple[str, Any]]:
        for key, part in value.items():
            if TEXT.read(key, (*path, str(key)), reading) is UNREADABLE:
                yield str(key), UNREADABLE
            else:
                yield key, self.value.read(part, (*path, key), reading)

    def schema(self) -> Schema:
        inner = self.value.schema()
        return {"type": "object", "additionalProperties": inner} if inner else {"type": "object"}


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """A value in one of several spellings; `parse` raises ValueError with words for a person."""

    parse: Callable[[object], Any]
    written: Schema

    def read(self, value: Any, path: Where, reading: Reading) -> Any:
        try:
            return self.parse(value)
        except ValueError as error:
            return reading.refuse(path, str(error))

    def schema(self) -> Schema:
        return dict(self.written)


@dataclass(frozen=True, slots=True)
class Extended:
    """A shape whose schema says more than the shape does, such as how lists merge.

    A list that merges by its items or by a key of theirs holds each once.
    """

    inner: Shape
    more: Schema

    def read(self, value: Any, path: Where, reading: Reading) -> Any:
        found = self.inner.read(value, path, reading)
        if found is not UNREADABLE and (twice := self._twice(value)) is not None:
            return reading.refuse(path, f"has {shown(twice)} twice; keep one")
        return found

    def _twice(self, given: Any) -> Any:
        """The first value that stands twice in the list, or None."""
        match self.more.get("x-kubernetes-list-type"):
            case "set":
                keys = list(given)
            case "map":
                (key,) = self.more["x-kubernetes-list-map-keys"]
                keys = [item.get(key) for item in given if isinstance(item, Mapping)]
            case _:
                return None
        times = Counter(map(repr, keys))
        return next((key for key in keys if times[repr(key)] > 1), None)

    def schema(self) -> Schema:
        return {**self.inner.schema(), **self.more}
