"""What decoding adds to the line of a record: its key and value, and the schemas of both.

    {..., "key": "a", "value": {"id": 1}, "valueSchema": "AVRO 7"}

What cannot be decoded stays as it is, with `valueProblem` beside it, and each reason is told once.
"""

from collections.abc import Iterator
from typing import Any, Final

from kavka_cli.output import note
from kavka_cli.schema_registry.decoding import Decoder
from kavka_operator.live_views.decoded import Decoded, as_json

PROBLEMS_MAX: Final = 20
PARTS: Final = ("key", "value")


class LineDecoding:
    """Decodes the records of `kavka consume`."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._told: dict[str, None] = {}

    def fields(self, record: Any) -> dict[str, Any]:
        """The fields of a record that are not as in its line without a registry."""
        found: dict[str, Any] = {}
        for part, decoded in self._decoded(record):
            if decoded.problem:
                found[f"{part}Problem"] = decoded.problem
            else:
                found[part], found[f"{part}Schema"] = decoded.value, decoded.schema
        return found

    def texts(self, record: Any) -> list[str]:
        """The decoded key and value as JSON, to be searched."""
        return [as_json(decoded) for _, decoded in self._decoded(record) if not decoded.problem]

    def value_text(self, record: Any) -> str | None:
        """The decoded value as JSON; None where it stays as it is."""
        decoded = self._decoder.decode(record.value)
        if decoded is None:
            return None
        self._tell(decoded.problem)
        return None if decoded.problem else as_json(decoded)

    def _decoded(self, record: Any) -> Iterator[tuple[str, Decoded]]:
        for part in PARTS:
            decoded = self._decoder.decode(getattr(record, part))
            if decoded is not None:
                self._tell(decoded.problem)
                yield part, decoded

    def _tell(self, problem: str) -> None:
        if problem and problem not in self._told and len(self._told) < PROBLEMS_MAX:
            self._told[problem] = None
            note(f"not decoded: {problem}")
