"""The trail into the lake, by Spark: in rounds, of which each is one job.

A job reads ranges of offsets, a task each, and writes a file for each range beside the lake. When the job is over, the
files take their places, those of a partition in order. A run that dies in a job leaves nothing, one
that dies while files take their places leaves the beginning of each partition, and the next run goes on behind it. So
each record gets into the lake once.

Executors on other machines have to see the same ground: the directory, or the store (`storage`). Those that write
elsewhere are found out: what their tasks have written is counted by Spark, and what stands there is counted again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - so do Spark's own documents

from kavka_audit.engine import EngineError
from kavka_audit.lake.columns import ENTRIES
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.ingest import Ingested, Range, Trail
from kavka_audit.lake.rows import missed
from kavka_audit.lake.writing import write
from kavka_audit.spark.columns import schema
from kavka_audit.spark.errors import told
from kavka_audit.spark.micro_batches import rounds
from kavka_audit.spark.rows import rows_of
from kavka_audit.spark.source import Source
from kavka_audit.spark.storage import Ground

FILE_RECORDS_MAX: Final = 1_000_000
"""Records of one file, which one task makes."""
ROUND_TASKS_MAX: Final = 4
"""Tasks of one round, for each processor that executors have: what a run that dies has to do again."""


@dataclass(frozen=True, slots=True)
class _Staged:
    """A file that a task has written, and what is in it."""

    file: Path
    partition: int
    first: int
    records: int
    dead: int


@dataclass(slots=True)
class Ingestion:
    """One run's taking in."""

    spark: Any
    lake: Lake
    trail: Trail
    source: Source
    ground: Ground
    stage: Path
    so_far: Ingested = field(default_factory=Ingested)

    def run(self) -> Iterator[Ingested]:
        """Take in what is new; gives what has been taken in after each round. Raises EngineError and LakeError."""
        cores = int(self.spark.sparkContext.defaultParallelism)
        for number, ranges in enumerate(rounds(self._begun(), FILE_RECORDS_MAX, cores * ROUND_TASKS_MAX)):
            self._take(self.stage / str(number), ranges)
            yield self.so_far

    def _begun(self) -> list[Range]:
        """The ranges that are to be read, once those that can no longer be read are counted."""
        next_offsets, ranges = self.lake.next_offsets(self.trail.topic_id), []
        for partition, begin, end in self.trail.ranges():
            first = next_offsets.get(partition, 0)
            if first < begin:
                self._put((partition, first, begin), [missed(partition, first, begin)])
                self.so_far.missed += begin - first
            if max(first, begin) < end:
                ranges.append((partition, max(first, begin), end))
        return ranges

    def _put(self, span: Range, rows: list[dict[str, object]]) -> None:
        """A small file of rows that are not the work of executors."""
        place = self.lake.place(self.trail.topic_id, *span)
        write(self.lake, place, rows, ENTRIES)
        self.so_far.files.append(str(place))

    def _take(self, stage: Path, ranges: Sequence[Range]) -> None:
        with told("reading the audit topic by Spark"):
            written = Observation()
            rows = rows_of(self.source.records(self.spark, ranges, FILE_RECORDS_MAX))
            counted = rows.observe(written, F.count(F.lit(1)).alias("records"))
            counted.write.mode("overwrite").option("compression", "zstd").parquet(self.ground.address(stage))
            staged = self._staged(stage)
        self._check(sum(one.records for one in staged), written.get["records"])
        for partition, first, until in ranges:
            self._settle([one for one in staged if one.partition == partition], (partition, first, until))
        self.ground.clear(self.stage)

    def _check(self, found: int, written: int) -> None:
        """Raise EngineError where executors wrote to a directory of their own."""
        if found != written:
            words = f"executors have written {written} records, and {found} are in {self.lake.name}"
            raise EngineError(f"{words}; run in this process (spark.master local[*]), or have all share that directory")

    def _staged(self, stage: Path) -> list[_Staged]:
        """What the tasks have written, by partition and offset. A task without a record has written no file."""
        names = self.ground.names(stage)
        if not names:
            return []
        read = self.spark.read.schema(schema(ENTRIES)).parquet(*(self.ground.address(stage / name) for name in names))
        dead = F.count_if(F.col("kind") == "dead")
        sums = [F.min("partition"), F.max("partition"), F.min("offset"), F.count("*"), dead]
        found = read.groupBy(F.element_at(F.split(F.input_file_name(), "/"), -1)).agg(*sums).collect()
        assert all(row[1] == row[2] for row in found), "a task reads of one partition"
        return sorted((_Staged(stage / row[0], row[1], *row[3:]) for row in found), key=lambda one: one.first)

    def _settle(self, files: Sequence[_Staged], span: Range) -> None:
        """Have the files of a partition take their places: each is of the offsets up to the next one's first."""
        partition, first, end = span
        if not files:
            self._put(span, [])  # the offsets were looked at
        for place, one in enumerate(files):
            until = files[place + 1].first if place + 1 < len(files) else end
            where = self.lake.place(self.trail.topic_id, partition, first, until)
            self.ground.settle(one.file, where)
            self.so_far.files.append(str(where))
            self.so_far.records += one.records
            self.so_far.dead += one.dead
            first = until
