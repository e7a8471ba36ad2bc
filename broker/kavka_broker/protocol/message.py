"""What every generated message is made of.

A message is a slotted class with one attribute for every field of every version, and its schema as data: rows of
`SCHEMA` that the codec compiles. Only constants: importing a message costs what creating its classes costs, and
nothing is looked at before the message is first used.

A row is (Kafka's name, attribute, type, versions, nullable versions, tagged versions, tag, default, ignorable,
flexible versions where they differ from the message's); versions are (low, high), both included, or None.
Types are Kafka's; a capital letter starts the name of a struct in the same module, `[]` an array.
As a default b"" stands for whatever is empty: an array, a struct of defaults, the zero uuid. Cells at the end of a row
that are as `usual` says are left out; `whole` has them all.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, NoReturn, TypeAlias, TypeVar

from kavka_broker.protocol.uuids import ZERO

__all__ = [
    "EMPTY",
    "ZERO",
    "Buffer",
    "Default",
    "Message",
    "Records",
    "Row",
    "Struct",
    "Versions",
    "frozen",
    "is_larger",
    "says",
    "usual",
    "whole",
]

Versions: TypeAlias = tuple[int, int]
Default: TypeAlias = int | float | bool | str | bytes | None
Cells: TypeAlias = tuple[Versions | None, Versions | None, int | None, Default, bool, Versions | None]
Whole: TypeAlias = tuple[
    str, str, str, Versions, Versions | None, Versions | None, int | None, Default, bool, Versions | None
]
Row: TypeAlias = tuple[Any, ...]
"""The first four cells of a `Whole` row, and those behind them as far as they have to be told."""

Buffer: TypeAlias = bytes | bytearray | memoryview
Records: TypeAlias = Any
"""`memoryview | None` when decoded; any buffer, a list of buffers or None when encoded."""

_NOTHING: dict[str, Default] = {
    "bool": False, "float64": 0.0, "int8": 0, "int16": 0, "uint16": 0, "int32": 0, "uint32": 0, "int64": 0,
    "records": None, "string": "",
}  # fmt: skip


def usual(kind: str) -> Cells:
    """The cells of a field of this type behind its versions, where nothing else is said."""
    return None, None, None, _NOTHING.get(kind, b""), False, None


def whole(row: Row) -> Whole:
    """A row with all of its cells."""
    return (*row, *usual(row[2])[len(row) - 4 :])


EMPTY: list[Any] = []
"""Stands for "a new empty list" as the default of an argument; never stored, never changed."""


class Struct:
    """A struct, which is compared and shown by its fields."""

    __slots__: tuple[str, ...] = ()
    __match_args__: tuple[str, ...] = ()
    SCHEMA: ClassVar[tuple[Row, ...]] = ()

    def __init_subclass__(cls) -> None:
        # Said once here, not in each of 450 classes. One that adds nothing is matched by what it inherits.
        cls.__match_args__ = cls.__slots__ or cls.__match_args__  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or self.SCHEMA is not other.SCHEMA:
            return NotImplemented
        for name in self.__match_args__:  # noqa: SIM110 (each encoder asks it: `all` would cost twice as much)
            if getattr(self, name) != getattr(other, name):
                return False
        return True

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__name__}({fields})"


class Message(Struct):
    """A struct that stands alone on the wire, in a range of versions."""

    __slots__ = ()
    NAME: ClassVar[str]
    """The name of the class, which is Kafka's."""
    KIND: ClassVar[str]
    """request, response, header, data, metadata, coordinator-key or coordinator-value."""
    API_KEY: ClassVar[int | None] = None
    VERSIONS: ClassVar[Versions]
    FLEXIBLE_FROM: ClassVar[int | None] = None
    """The first version with compact lengths and tagged fields."""
    LATEST_UNSTABLE: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.NAME = cls.__name__


def says(answer: Struct, code: int) -> bool:
    """Whether an answer has this error at its top or in any of its parts."""
    if getattr(answer, "error_code", None) == code:
        return True
    for name in answer.__match_args__:
        value = getattr(answer, name)
        if isinstance(value, list) and any(isinstance(part, Struct) and says(part, code) for part in value):
            return True
    return False


def is_larger(answer: Struct, elements: int, size_bytes: int) -> bool:
    """Whether an answer has more structs in its arrays than that, or more bytes in its strings and fields of bytes. A
    list of strings counts by its length, and one of numbers, which is written at once, not at all.
    """
    left = [elements, size_bytes]
    _count(answer, left)
    return left[0] < 0 or left[1] < 0


def _count(part: Struct, left: list[int]) -> None:
    """Take what a part has from what is left, until one of the two is below 0."""
    texts, lists, arrays = _fields_of(type(part))
    for name in texts:
        if text := getattr(part, name):
            left[1] -= len(text)
    for name in lists:
        left[1] -= TEXT_BYTES * len(getattr(part, name) or ())
    for name in arrays:
        items = getattr(part, name)
        if not items:
            continue
        left[0] -= len(items)
        if left[0] < 0:
            return
        if any(_fields_of(type(items[0]))):
            for item in items:
                _count(item, left)
                if left[0] < 0 or left[1] < 0:
                    return


def _fields_of(kind: type[Struct]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The attributes that hold strings or bytes, lists of strings, and arrays of structs."""
    known = _fields.get(kind)
    if known is None:
        texts = tuple(row[1] for row in kind.SCHEMA if row[2] in ("string", "bytes"))
        lists = tuple(row[1] for row in kind.SCHEMA if row[2] == "[]string")
        arrays = tuple(row[1] for row in kind.SCHEMA if row[2].startswith("[]") and row[2][2].isupper())
        known = _fields[kind] = texts, lists, arrays
    return known


TEXT_BYTES: Final = 16
_fields: dict[
    Any, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
] = {}  # by class; bounded by the structs that exist


S = TypeVar("S", bound=Struct)


def frozen(kind: type[S]) -> S:
    """An instance with all defaults that refuses changes: a default argument that may be shared."""
    instance = kind()
    instance.__class__ = type(kind.__name__, (kind,), {"__slots__": (), "__setattr__": _refuse})
    return instance


def _refuse(self: Struct, name: str, _value: object) -> NoReturn:
    raise AttributeError(f"a default {type(self).__name__} is shared; give a new one instead of setting {name}")
