"""How many rows each answer had, for the next run to say what has changed since."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kavka_audit.lake.directory import Lake
from kavka_audit.lake.own_files import COUNTS_OF_ANSWERS as FILE
from kavka_audit.questions.query_runner import Table

TIME_MAX_MS: Final = 253_402_300_799_999
"""The end of the year 9999, the last that has a date."""


@dataclass(frozen=True, slots=True)
class Previous:
    """When the run before was, and how many rows its answers had; 0 where there was none."""

    now_ms: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    def change(self, table: Table) -> int | None:
        """Return how many rows more an answer has now; None where it is not known."""
        before = self.counts.get(table.question.name)
        return None if before is None else table.count - before


def read_previous(lake: Lake) -> Previous:
    """Return what the run before has left; what no run has written counts as nothing."""
    place = lake.directory / FILE
    try:
        found = json.loads(place.read_bytes())
        counts = {str(name): int(count) for name, count in found["rows"].items()}
        previous = Previous(int(found["now_ms"]), counts)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return Previous()
    return previous if 0 <= previous.now_ms <= TIME_MAX_MS else Previous()


def write_previous(lake: Lake, now_ms: int, tables: Mapping[str, Table]) -> None:
    """Leave it for the next run. Raises LakeError."""
    rows = {name: table.count for name, table in sorted(tables.items())}
    lake.put(lake.directory / FILE, json.dumps({"now_ms": now_ms, "rows": rows}).encode())
