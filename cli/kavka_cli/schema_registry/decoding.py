"""Decodes keys and values by their schemas. What cannot be decoded stays as it is, with the reason: reading goes on."""

import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import date, datetime
from datetime import time as time_of_day
from importlib.util import find_spec
from typing import Any, Final

from kavka_cli.schema_registry.registry_client import (
    RETRY_SECONDS,
    RegistryClient,
    RegistryError,
    Schema,
    SchemaError,
)
from kavka_cli.schema_registry.wire_format import unframe
from kavka_operator.domain.json_bytes import as_text
from kavka_operator.live_views.decoded import Decoded

READERS_MAX: Final = 256
"""Schemas that are kept; those that were not used for longest are fetched again. So many reasons are kept, too."""
INTEGER_BITS_MAX: Final = 8_192
WORDS_MAX: Final = 300
NEEDS: Final = {"AVRO": "avro", "PROTOBUF": "grpc_tools"}

Read = Callable[[bytes], Any]


class Decoder:
    """Decodes by the schemas of a registry. Threads may share it."""

    def __init__(self, client: RegistryClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self.missing: OrderedDict[int, tuple[float, str]] = OrderedDict()  # until when, and why
        self._lock = threading.Lock()
        self._readers: OrderedDict[int, tuple[Schema, Read | str]] = OrderedDict()

    def decode(self, data: bytes | None) -> Decoded | None:
        """A key or value, decoded; None where it is not in the wire format."""
        framed = unframe(data)
        if framed is None:
            return None
        try:
            schema, read = self._reader(framed.schema_id)
        except RegistryError as error:
            return Decoded(problem=str(error))
        if isinstance(read, str):
            return Decoded(schema=str(schema), problem=read)
        try:
            return Decoded(plain(read(framed.payload)), str(schema))
        except Exception as error:  # noqa: BLE001 - whatever a library says of bytes that others wrote
            words = f"{type(error).__name__}: {error}"[:WORDS_MAX]
            return Decoded(schema=str(schema), problem=f"is not of schema {framed.schema_id}: {words}")

    def _reader(self, schema_id: int) -> tuple[Schema, Read | str]:
        with self._lock:
            found = self._readers.pop(schema_id, None)
            if found is None:
                schema = self._schema(schema_id)
                found = schema, make_reader(schema)
            self._readers[schema_id] = found
            if len(self._readers) > READERS_MAX:
                self._readers.popitem(last=False)
            return found

    def _schema(self, schema_id: int) -> Schema:
        """Fetch a schema; one that cannot be had is asked for again after a while. Raises RegistryError."""
        until, words = self.missing.pop(schema_id, (0.0, ""))
        if words and self._clock() < until:
            self.missing[schema_id] = until, words
            raise SchemaError(words)
        try:
            return self._client.schema(schema_id)
        except SchemaError as error:
            self.missing[schema_id] = self._clock() + RETRY_SECONDS, str(error)
            if len(self.missing) > READERS_MAX:
                self.missing.popitem(last=False)
            raise


def make_reader(schema: Schema) -> Read | str:
    """The function that reads values of a schema; the reason in words where there is none."""
    if (module := NEEDS.get(schema.kind)) and find_spec(module) is None:
        return f"schema {schema.id} is of {schema.kind}: pip install 'kavka[registry]'"
    try:
        match schema.kind:
            case "AVRO":
                from kavka_cli.schema_registry.avro_values import avro_reader

                return avro_reader(schema)
            case "PROTOBUF":
                from kavka_cli.schema_registry.protobuf_values import protobuf_reader

                return protobuf_reader(schema)
            case "JSON":
                return json.loads
    except Exception as error:  # noqa: BLE001 - whatever a library says of a schema that others wrote
        return f"schema {schema.id} cannot be used: {error}"[:WORDS_MAX]
    return f"schema {schema.id} is of {schema.kind}, which is not known here"


def plain(value: Any) -> Any:
    """A value as JSON has it: times and decimals are texts, bytes as everywhere in these lines. Raises ValueError for a
    number that is too long.
    """
    match value:
        case None | bool():
            return value
        case str():
            return value.encode(errors="replace").decode()  # halves of a pair are in no UTF-8
        case int():
            if value.bit_length() > INTEGER_BITS_MAX:
                raise ValueError(f"a number of {value.bit_length()} bits")
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return as_text(value)
        case Mapping():
            return {plain(str(key)): plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case datetime() | date() | time_of_day():
            return value.isoformat()
    return str(value)
