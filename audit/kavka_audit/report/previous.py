"""How many rows each answer had in the last run and in the last run of earlier days, to say what has changed since."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kavka_audit.lake.directory import Lake
from kavka_audit.lake.own_files import COUNTS_OF_ANSWERS as FILE
from kavka_audit.questions.query_runner import Table
from kavka_audit.report.answers import counted

TIME_MAX_MS: Final = 253_402_300_799_999
"""The end of the year 9999, the last that has a date."""
DAY_MS: Final = 86_400_000
DAYS_KEPT: Final = 31
WEEK_DAYS: Final = 7
Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Previous:
    """When the run before was, and how many rows its answers had; 0 where there was none. `days` has the same of the
    last run of each day, by the day's beginning.
    """

    now_ms: int = 0
    counts: Counts = field(default_factory=dict)
    days: Mapping[int, Counts] = field(default_factory=dict)

    def change(self, table: Table) -> int | None:
        """Return how many rows more an answer has now; None where it is not known."""
        return _more(table, self.counts)

    def week_before(self, now_ms: int) -> int | None:
        """Return the last day of a run that is a week before a moment, or longer; None where there was none."""
        return max((day_ms for day_ms in self.days if day_ms <= now_ms - WEEK_DAYS * DAY_MS), default=None)

    def change_since(self, day_ms: int, table: Table) -> int | None:
        """Return how many rows more an answer has now than on a day; None where it is not known."""
        return _more(table, self.days[day_ms])


def _more(table: Table, counts: Counts) -> int | None:
    before = counts.get(table.question.name)
    return None if before is None else counted(table) - before


def read_previous(lake: Lake) -> Previous:
    """Return what the run before has left; what no run has written counts as nothing."""
    place = lake.directory / FILE
    try:
        found = json.loads(place.read_bytes())
        days = {int(day_ms): _counts(counts) for day_ms, counts in found.get("days", {}).items()}
        previous = Previous(int(found["now_ms"]), _counts(found["rows"]), days)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return Previous()
    return previous if all(0 <= time_ms <= TIME_MAX_MS for time_ms in (previous.now_ms, *days)) else Previous()


def _counts(found: Mapping[str, Any]) -> Counts:
    return {str(name): int(count) for name, count in found.items()}


def write_previous(lake: Lake, now_ms: int, tables: Mapping[str, Table], previous: Previous) -> None:
    """Leave it for the next run, with what earlier days had. Raises LakeError."""
    rows = {name: counted(table) for name, table in sorted(tables.items())}
    days = {**previous.days, now_ms - now_ms % DAY_MS: rows}
    kept = {day_ms: days[day_ms] for day_ms in sorted(days)[-DAYS_KEPT:]}
    lake.put(lake.directory / FILE, json.dumps({"now_ms": now_ms, "rows": rows, "days": kept}).encode())
