"""The chains of a trail, judged by Spark: hashes and links in the JVM, verdicts in the driver.

The driver gets few entries of a sound trail, and judges them by the rules of `TrailCheck`, in the order of the topic.
The topic is read in batches, so that a trail that has been tampered with all over, of which the driver gets every
entry, needs no more memory. Chains go on from batch to batch by what `TrailCheck` knows of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import functions as F  # noqa: N812 - so do Spark's own documents

from kavka_audit.lake.ingest import Range
from kavka_audit.spark.chain_runs import hashed, steps_of
from kavka_audit.spark.errors import told
from kavka_audit.spark.micro_batches import batches
from kavka_audit.spark.source import Source
from kavka_broker.core.audit.chain import Entry, Kind
from kavka_broker.core.audit.cloud_events import entry_of
from kavka_broker.core.audit.trail_check import TrailCheck

TASK_RECORDS_MAX: Final = 250_000
BATCH_TASKS: Final = 4
"""Tasks of a batch, for each processor that executors have."""
Foreign = Callable[[int, int, str], None]
"""Takes a record that is no entry: its partition, its offset, and why."""


@dataclass(slots=True)
class Verification:
    """Reads a trail into a check. `foreign` is told of each record that is no entry."""

    spark: Any
    source: Source
    check: TrailCheck
    foreign: Foreign
    task_records_max: int = TASK_RECORDS_MAX
    _log_starts: dict[int, int] = field(default_factory=dict)
    _reached: dict[str, int] = field(default_factory=dict)  # the offset of the entry read last, by chain

    def read(self, ranges: Sequence[Range]) -> None:
        """Read all partitions, each from its first offset on. Raises EngineError and TooManyChainsError."""
        self._log_starts = {partition: first for partition, first, _ in ranges}
        cores = int(self.spark.sparkContext.defaultParallelism)
        for batch in batches(ranges, cores * BATCH_TASKS * self.task_records_max):
            with told("verifying the audit topic by Spark"):
                records = self.source.records(self.spark, batch, self.task_records_max)
                for row in in_order(steps_of(hashed(records))):
                    self._take(row)

    def _take(self, row: Any) -> None:
        if row["has_its_hash"] is None:
            self.foreign(row["partition"], row["offset"], problem_of(row["headers"] or ()))
            return
        entry, before = entry_from(row), self._reached.get(row["source"], -1)
        self._reached[entry.source] = row["offset"]
        if not row["is_run"]:
            self._add(row, entry)
        elif not self.check.extend(entry):
            self._add_each(row["partition"], entry.source, before + 1, row["offset"] + 1)

    def _add(self, row: Any, entry: Entry) -> None:
        log_start = self._log_starts[row["partition"]]
        self.check.add_hashed(row["partition"], log_start, entry, has_its_hash=row["has_its_hash"])

    def _add_each(self, partition: int, source: str, first: int, until: int) -> None:
        """Read a run again, and add its entries one by one."""
        records = self.source.records(self.spark, [(partition, first, until)], self.task_records_max)
        for row in in_order(hashed(records).filter(F.col("source") == source)):
            self._add(row, entry_from(row))


def in_order(frame: Any) -> Iterator[Any]:
    """Give the rows of a frame by partition and offset. There are few, or they are those of a batch."""
    rows: Iterator[Any] = frame.repartition(1).sortWithinPartitions("partition", "offset").toLocalIterator()
    return rows


def entry_from(row: Any) -> Entry:
    """Return the entry of a row; it has its value where that is the value of a head."""
    return Entry(
        row["source"],
        row["sequence"],
        Kind(row["entry_kind"]),
        row["written_ms"],
        bytes(row["value"] or b""),
        row["lost"],
        bytes(row["previous"]),
        bytes(row["hash"]),
        bytes(row["signature"] or b""),
        row["key_id"] or "",
    )


def problem_of(headers: Sequence[Any]) -> str:
    """Return why a record with these headers is no entry."""
    try:
        entry_of([(name, None if value is None else bytes(value)) for name, value in headers], None)
    except ValueError as problem:
        return str(problem)
    raise AssertionError("Spark takes a record for none that is an entry")
