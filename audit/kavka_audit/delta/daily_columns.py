"""Columns of the daily tables, and the SQL between them and the aggregates that the questions ask of.

A daily table has the rows of an aggregate for each day by itself. Those of all days make the aggregate again: sums of
sums, the least and the greatest, and the union of ranges of sequences.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kavka_audit.delta.columns import DAY, DELTA_TYPES, Columns
from kavka_audit.lake.columns import ENTRIES

TIMES: Final = {
    "first_ms": "first_time",
    "last_ms": "last_time",
    "since_ms": "since_time",
    "bucket_ms": "bucket_time",
    "minute_ms": "minute_time",
    "start_ms": "start_time",
    "end_ms": "end_time",
}
"""Columns of aggregates in milliseconds, and the timestamps that they are here."""
DELAY: Final = "throttle_time_ms"
MERGED: Final = {
    **dict.fromkeys(("bytes", "records", "times", "entries", "lost", "denied", DELAY), "sum"),
    **dict.fromkeys(("written_bytes", "read_bytes", "written_records"), "sum"),
    **dict.fromkeys(("first_ms", "since_ms"), "min"),
    "last_ms": "max",
}
"""How a column of all days is made of those of each."""
SEQUENCE_RANGES: Final = """
SELECT source, min(sequence) AS first, max(sequence) AS last FROM (
    SELECT source, sequence, sequence - row_number() OVER (PARTITION BY source ORDER BY sequence) AS range
    FROM (SELECT DISTINCT source, sequence FROM entries WHERE sequence IS NOT NULL) AS found
) AS numbered GROUP BY source, range
"""
"""The sequences of a chain that are there, as ranges without a hole."""
CHAIN_COUNTS: Final = """
SELECT
    source, min(first) AS first, max(last) AS last,
    sum(greatest(last - greatest(first - 1, coalesce(reached, first - 1)), 0)) AS there
FROM (
    SELECT *, max(last) OVER (
        PARTITION BY source ORDER BY first, last ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS reached
    FROM sequence_ranges_daily
) AS ordered GROUP BY source
"""
"""How many sequences are in the union of ranges: of each range what those before it do not reach."""


@dataclass(frozen=True, slots=True)
class DailyTable:
    """A table by day. `columns` are those of its aggregate, with their types in SQL."""

    aggregate: str
    columns: Mapping[str, str]

    @property
    def delta_columns(self) -> Columns:
        """Return its columns in Delta, with their types."""
        found = {
            TIMES.get(name, name): "timestamp" if name in TIMES else DELTA_TYPES[kind]
            for name, kind in self.columns.items()
        }
        return {**found, DAY: "date"}

    @property
    def to_delta(self) -> str:
        """Return the select list that makes rows of this table, without their day, of the aggregate of a day."""
        return ", ".join(
            f'make_timestamptz("{name}" * 1000) AS "{TIMES[name]}"'
            if name in TIMES
            else f'CAST("{name}" AS {kind}) AS "{name}"'
            for name, kind in self.columns.items()
        )

    @property
    def from_delta(self) -> str:
        """Return the select list that makes rows of the aggregate of a day again."""
        back = (f'epoch_ms("{TIMES[name]}") AS "{name}"' if name in TIMES else f'"{name}"' for name in self.columns)
        return ", ".join(back)

    @property
    def groups(self) -> str:
        """Return the columns that tell rows of the aggregate apart."""
        return ", ".join(f'"{name}"' for name in self.columns if name not in MERGED)

    @property
    def merged(self) -> str:
        """Return the select list that makes the aggregate of the rows of all days, grouped by `groups`."""
        return ", ".join(
            f'{MERGED[name]}("{name}") AS "{name}"' if name in MERGED else f'"{name}"' for name in self.columns
        )


TEXT: Final = "VARCHAR"
COUNT: Final = "BIGINT"
WHO: Final = {"principal": TEXT, "client_id": TEXT}
DENIALS: Final = "denials_delays_changes"
THROTTLED: Final = "throttled_use_daily"
RANGES: Final = "sequence_ranges_daily"
DAILY: Final[Mapping[str, DailyTable]] = {
    "use_daily": DailyTable(
        "uses",
        {
            **WHO,
            **dict.fromkeys(("address", "operation", "resource"), TEXT),
            **dict.fromkeys(("bytes", "records", "times", "first_ms", "last_ms"), COUNT),
        },
    ),
    "traffic_daily": DailyTable(
        "traffic_buckets",
        dict.fromkeys(("bucket_ms", "written_bytes", "read_bytes", "written_records", "denied", DELAY), COUNT),
    ),
    "entry_counts_daily": DailyTable(
        "entry_counts",
        {
            "partition": "INTEGER",
            "source": TEXT,
            "node": "INTEGER",
            "kind": TEXT,
            **dict.fromkeys(("entries", "lost", "first_ms", "last_ms", "since_ms"), COUNT),
        },
    ),
    DENIALS: DailyTable(
        DENIALS,
        {
            name: ENTRIES[name]
            for name in (
                *("class_uid", "outcome", "source", "node", "start_ms", "end_ms", "times", "operation", "principal"),
                *("client_id", "address", "resource_type", "resource", "bytes", "quota_type", "quota_entity"),
                *("quota_limit", DELAY, "throttle_time_ms_max", "config_key", "config_value", "config_previous"),
            )
        },
    ),
    RANGES: DailyTable("chain_counts", {"source": TEXT, "first": COUNT, "last": COUNT}),
    THROTTLED: DailyTable(
        "throttled_uses",
        {
            "source": TEXT,
            "minute_ms": COUNT,
            **WHO,
            "operation": TEXT,
            **dict.fromkeys(("bytes", "first_ms", "last_ms"), COUNT),
        },
    ),
}
"""Each daily table, by its name."""
DAYS: Final[Columns] = {DAY: "date", "files": "string"}
"""Columns of the table `daily_days`: days that the daily tables have, and a digest of the files they are made of."""
