"""Reads values of Avro by the schema that wrote them, with Apache Avro's library.

It is the one in Python alone: a value nested too deeply is an error there, and not the end of the process. A schema can
say that few bytes are very many values (an array of nulls, records of records without a field that takes a byte), so
the parts of a value are counted while it is read, and the time is limited.
"""

import json
import time
from collections.abc import Callable
from decimal import Decimal
from io import BytesIO
from typing import Any, Final

import avro.io
import avro.name
import avro.schema

from kavka_cli.schema_registry.registry_client import Schema

PARTS_MAX: Final = 50_000
"""The values in one value: fields, elements, and what is in them."""
SECONDS_MAX: Final = 2.0
PARTS_PER_LOOK: Final = 64
SCHEMA_CHARACTERS_MAX: Final = 128 * 1024
"""The library reads a schema in a time that grows with the square of its fields."""
DECIMAL_BYTES_MAX: Final = 1_024
"""A decimal is made of its bytes in a time that grows with their square."""


class TooMuchError(ValueError):
    """A value that is too large to be shown."""


def avro_reader(schema: Schema, parts_max: int = PARTS_MAX) -> Callable[[bytes], Any]:
    """Make the function that reads a value. Raises AvroException for what is no schema, and TooMuchError."""
    size = len(schema.text) + sum(len(reference.text) for reference in schema.references)
    if size > SCHEMA_CHARACTERS_MAX:
        raise TooMuchError(f"it has {size:,} characters, and {SCHEMA_CHARACTERS_MAX:,} are the most that are read")
    names = avro.name.Names(validate_names=False)
    for reference in schema.references:
        _parse(reference.text, names)
    parsed = _parse(schema.text, names)
    if parsed.type == "bytes" and getattr(parsed, "logical_type", None) is None:
        return bytes  # Confluent's serializer for Java writes bytes alone as they are, without their length

    def read(payload: bytes) -> Any:
        return _Reader(parsed, parts_max).read(_Decoder(BytesIO(payload)))

    return read


def _parse(text: str, names: Any) -> Any:
    return avro.schema.make_avsc_object(json.loads(text), names, validate_enum_symbols=False, validate_names=False)


class _Reader(avro.io.DatumReader):
    """Reads one value, as far as the bounds allow."""

    def __init__(self, schema: Any, parts_max: int) -> None:
        super().__init__(schema, schema)
        self._parts_max = parts_max
        self._parts = 0
        self._deadline = time.monotonic() + SECONDS_MAX

    def read_data(self, writers_schema: Any, readers_schema: Any, decoder: Any) -> object:
        """Read a part of the value. Raises TooMuchError."""
        self._parts += 1
        if self._parts > self._parts_max:
            raise TooMuchError(f"it has more than {self._parts_max:,} values")
        if self._parts % PARTS_PER_LOOK == 0 and time.monotonic() > self._deadline:
            raise TooMuchError(f"it takes longer than {SECONDS_MAX:.0f} s")
        return super().read_data(writers_schema, readers_schema, decoder)


class _Decoder(avro.io.BinaryDecoder):
    def read_decimal_from_fixed(self, precision: int, scale: int, size: int) -> Decimal:
        """Read a decimal of so many bytes. Raises TooMuchError."""
        if size > DECIMAL_BYTES_MAX:
            raise TooMuchError(f"it has a decimal of {size:,} bytes")
        found: Decimal = super().read_decimal_from_fixed(precision, scale, size)
        return found
