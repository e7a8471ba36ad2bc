"""Keys and values as a schema decodes them: what a decoder finds, for tables and lines of records."""

import json
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Decoded:
    """A value as JSON has it, and the schema it was decoded by; or the reason why it was not."""

    value: Any = None
    schema: str = ""
    problem: str = ""


class Decoder(Protocol):
    """Decodes by the schemas of a registry. Threads may share it."""

    def decode(self, data: bytes | None) -> Decoded | None:
        """A key or value, decoded; None where it is not in the wire format."""
        ...


def as_json(decoded: Decoded) -> str:
    """A decoded value as it is printed."""
    return json.dumps(decoded.value, ensure_ascii=False)
