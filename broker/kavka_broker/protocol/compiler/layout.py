"""What one version of a struct looks like on the wire: which fields, in which order, which of them tagged.

The schema of a class describes all versions; the compiler works on one. Everything that depends on the version is
decided here, so that the decoder and the encoder only see places in order.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass
from typing import Final

from kavka_broker.protocol.message import Default, Message, Row, Struct, Versions, whole

FORMATS: Final = {
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "bool": "?",
    "uuid": "16s",
}
"""The types of fixed size and their `struct` formats."""


@dataclass(frozen=True, slots=True)
class Place:
    """A field in one version."""

    attribute: str
    type: str
    default: Default
    nullable: bool
    compact: bool
    ignorable: bool
    tag: int

    @property
    def format(self) -> str | None:
        """The `struct` format, for a fixed size."""
        return FORMATS.get(self.type)

    @property
    def element(self) -> Place:
        """The place of an array's elements: never null."""
        return Place(self.attribute, self.type[2:], b"", False, self.compact, False, -1)

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")

    @property
    def is_struct(self) -> bool:
        return self.type[0].isupper()


@dataclass(frozen=True, slots=True)
class Layout:
    """A struct in one version."""

    kind: type[Struct]
    version: int
    flexible: bool
    places: tuple[Place, ...]
    """The ordinary fields, in the order of the wire."""
    tagged: tuple[Place, ...]
    """The tagged fields, by tag."""
    absent: tuple[Place, ...]
    """The fields this version does not have."""

    def nested(self, name: str) -> Layout:
        """The layout of a struct that the same module defines."""
        kind = getattr(sys.modules[self.kind.__module__], name)
        return of_struct(kind, self.version, self.flexible)

    def size_min(self) -> int:
        """The fewest bytes that can hold this struct; what an array's length is checked against."""
        return max(1, sum(map(self._size_min, self.places)) + self.flexible)

    def fixed_format(self) -> str | None:
        """The format of the whole struct without its tag count, where every field has a fixed size."""
        formats = [place.format for place in self.places]
        return "".join(map(str, formats)) if formats and None not in formats else None

    def _size_min(self, place: Place) -> int:
        if place.format:
            return struct.calcsize(">" + place.format)
        if place.is_struct:
            return 1 if place.nullable else self.nested(place.type).size_min()
        if place.compact:
            return 1
        return 2 if place.type == "string" else 4


def of_message(kind: type[Message], version: int) -> Layout:
    """The layout of a message. Raises ValueError for a version that it never had."""
    low, high = kind.VERSIONS
    if not low <= version <= high:
        raise ValueError(f"{kind.NAME} has versions {low} to {high}, not {version}")
    flexible = kind.FLEXIBLE_FROM is not None and version >= kind.FLEXIBLE_FROM
    return of_struct(kind, version, flexible)


def of_struct(kind: type[Struct], version: int, flexible: bool) -> Layout:
    """The layout of a struct within a message of this version."""
    present = [place_of(row, version, flexible) for row in kind.SCHEMA if within(version, row[3])]
    absent = [place_of(row, version, flexible) for row in kind.SCHEMA if not within(version, row[3])]
    tagged = sorted((place for place in present if place.tag >= 0), key=lambda place: place.tag)
    places = [place for place in present if place.tag < 0]
    return Layout(kind, version, flexible, tuple(places), tuple(tagged), tuple(absent))


def place_of(row: Row, version: int, flexible: bool) -> Place:
    """The place of a row of the schema in one version."""
    _, attribute, kind, _, nullable, tagged, tag, default, ignorable, override = whole(row)
    return Place(
        attribute=attribute,
        type=kind,
        default=default,
        nullable=within(version, nullable),
        compact=flexible if override is None else within(version, override),
        ignorable=ignorable,
        tag=tag if tag is not None and within(version, tagged) else -1,
    )


def within(version: int, versions: Versions | None) -> bool:
    return versions is not None and versions[0] <= version <= versions[1]
