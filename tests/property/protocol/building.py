"""Random messages from the schema, for properties and for oracles.

One builder, two sources of chance: Hypothesis, which shrinks what fails, and a seeded `Random`, which is quick
enough for every version of every message.
"""

from __future__ import annotations

import importlib
import pkgutil
from random import Random
from typing import Any, Protocol

from hypothesis import strategies as st

import kavka_broker.protocol.messages
from kavka_broker.protocol.compiler.decoder import STRIDE_MIN
from kavka_broker.protocol.compiler.layout import Layout, Place, of_message
from kavka_broker.protocol.message import Message

INTEGERS = {"int8": (-(2**7), 2**7 - 1), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1)}
INTEGERS |= {"int64": (-(2**63), 2**63 - 1), "uint16": (0, 2**16 - 1), "uint32": (0, 2**32 - 1)}
ITEMS_MAX = STRIDE_MIN + 1
LONG = 140
"""More than a one-byte varint can count."""


class Pick(Protocol):
    """Where a builder's choices come from."""

    def integer(self, low: int, high: int) -> int: ...
    def length(self) -> int: ...
    def real(self) -> float: ...
    def text(self) -> str: ...
    def blob(self, size: int | None) -> bytes: ...
    def records(self) -> bytes: ...


class Seeded:
    """Choices of a pseudo-random generator, with the edges often and long values sometimes."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)

    def integer(self, low: int, high: int) -> int:
        edges = [low, high, min(max(0, low), high), min(max(-1, low), high)]
        return self.chance.choice(edges) if self.chance.random() < 0.2 else self.chance.randint(low, high)

    def length(self) -> int:
        return LONG if self.chance.random() < 0.005 else self.chance.randint(0, ITEMS_MAX)

    def real(self) -> float:
        return self.chance.choice([0.0, -1.5, 1e300, self.chance.random()])

    def text(self) -> str:
        length = LONG if self.chance.random() < 0.03 else self.chance.randrange(8)
        return "".join(self.chance.choice("abc_-.09 äß€語😀") for _ in range(length))

    def blob(self, size: int | None) -> bytes:
        length = LONG if self.chance.random() < 0.03 else self.chance.randrange(8)
        return self.chance.randbytes(length if size is None else size)

    def records(self) -> bytes:
        return self.blob(None)


class Drawn:
    """Choices of Hypothesis."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        found: int = self.draw(st.integers(low, high))
        return found

    def length(self) -> int:
        return self.integer(0, ITEMS_MAX)

    def real(self) -> float:
        found: float = self.draw(st.floats(allow_nan=False))
        return found

    def text(self) -> str:
        found: str = self.draw(st.text(max_size=LONG))
        return found

    def blob(self, size: int | None) -> bytes:
        found: bytes = self.draw(st.binary(min_size=size or 0, max_size=LONG if size is None else size))
        return found

    def records(self) -> bytes:
        return self.blob(None)


def build(kind: type[Message], version: int, pick: Pick) -> Message:
    """A message with random values in every field that this version has."""
    message = build_struct(of_message(kind, version), pick)
    assert isinstance(message, Message)
    return message


def build_struct(layout: Layout, pick: Pick) -> Any:
    places = (*layout.places, *layout.tagged)
    return layout.kind(**{place.attribute: build_value(layout, place, pick) for place in places})


def build_value(layout: Layout, place: Place, pick: Pick) -> Any:
    if place.nullable and pick.integer(0, 5) == 0:
        return None
    if place.is_array:
        return [build_value(layout, place.element, pick) for _ in range(pick.length())]
    if place.is_struct:
        return build_struct(layout.nested(place.type), pick)
    match place.type:
        case "bool":
            return pick.integer(0, 1) == 1
        case "string":
            return pick.text()
        case "uuid":
            return pick.blob(16)
        case "bytes":
            return pick.blob(None)
        case "records":
            return pick.records()
        case "float64":
            return pick.real()
        case integer:
            return pick.integer(*INTEGERS[integer])


def every_message() -> list[type[Message]]:
    """All generated messages, in a fixed order."""
    found: list[type[Message]] = []
    package = kavka_broker.protocol.messages
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        members = vars(importlib.import_module(module.name)).values()
        found += [
            member
            for member in members
            if isinstance(member, type) and member.__module__ == module.name and is_message(member)
        ]
    return sorted(found, key=lambda kind: (kind.__module__, kind.NAME))


def is_message(kind: type) -> bool:
    return issubclass(kind, Message) and kind is not Message


def versions(kind: type[Message]) -> range:
    return range(kind.VERSIONS[0], kind.VERSIONS[1] + 1)
