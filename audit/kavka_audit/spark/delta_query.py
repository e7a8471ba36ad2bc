"""The trail into Delta tables by one query of Structured Streaming, which takes all that is there and ends, or goes on.

Spark keeps how far it has read in its checkpoint, makes micro-batches of it, and writes events and dead letters by
Delta's own writer. The driver judges the chains by the few entries that are steps, and commits `chains` by deltalake,
which ends the batch. A micro-batch that is played again has the number that its commits hold: Delta passes over a
commit with a number that a table has.

The commit to `chains` holds the number of the micro-batch too: a checkpoint that has ended more than that is not one of
these tables. A batch that was left half done, and whose records retention has deleted before it is played again, is
ended with what the tables have of it.

What `chains` says has been read is not taken in again, whatever the checkpoint says: so another engine may go on with
the tables, and Spark after it, between two runs.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import Any, Final

from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - so do Spark's own documents

from kavka_audit.delta.chain_rows import known_chains, offsets_behind, replace_chains
from kavka_audit.delta.chain_states import Batch, ChainState, Place, Steps, follow
from kavka_audit.delta.columns import IN_DEAD_LETTERS, IN_EVENTS
from kavka_audit.delta.deleted_topics import end_deleted_topics
from kavka_audit.delta.tables import NUMBER, Table, Tables, identifier, query_identifier
from kavka_audit.engine import EngineError
from kavka_audit.lake.chain_steps import Step
from kavka_audit.lake.columns import ENTRIES
from kavka_audit.lake.directory import Lake, LakeError
from kavka_audit.lake.ingest import Ingested, Trail
from kavka_audit.lake.rows import missed
from kavka_audit.spark.chain_runs import link_columns, steps_of
from kavka_audit.spark.columns import schema
from kavka_audit.spark.delta_columns import to_delta
from kavka_audit.spark.errors import told
from kavka_audit.spark.rows import rows_of
from kavka_audit.spark.source import Stream
from kavka_audit.spark.storage import Here
from kavka_audit.spark.verification import entry_from, in_order

BATCH_RECORDS_MAX: Final = 500_000
"""Records of a micro-batch, whose rows Spark keeps until it is committed: in memory, and on the disk what is more."""
CHECKPOINT: Final = "checkpoint"
NAME: Final = "kavka-audit"
"""The name of the query in Spark's UI, and in its metrics."""
FRAME: Final = ("partition", "offset", "source", "entry_kind", "sequence", "written_ms", "lost", "previous", "hash")
LINKS: Final = (*FRAME, "signature", "key_id", "has_its_hash", "value")
IS_DEAD: Final = "kind = 'dead'"


def ingest(spark: Any, lake: Lake, trail: Trail, source: Stream, now_ms: int) -> Iterator[Ingested]:
    """Take in all that is there; gives what was read at the end. Raises EngineError and LakeError."""
    query = make_query(lake, trail, lambda: now_ms)
    with failures_of(query):
        query.start(spark, source, availableNow=True).awaitTermination()
    yield query.so_far


def make_query(lake: Lake, trail: Trail, clock_ms: Callable[[], int]) -> "Query":
    """Return a query that goes on where the tables and its checkpoint are. Raises LakeError where it cannot."""
    tables, checkpoint = Tables(lake), lake.directory / CHECKPOINT / trail.topic_id
    log_starts = {partition: begin for partition, begin, _ in trail.ranges()}
    end_deleted_topics(tables, trail.topic_id, clock_ms())
    _check_ahead(tables, checkpoint)
    _check_unfinished(tables, trail.topic_id, [*log_starts], checkpoint)
    return Query(lake, tables, trail.topic_id, log_starts, checkpoint, clock_ms)


@contextmanager
def failures_of(query: "Query") -> Iterator[None]:
    """Raise what a query has ended by as EngineError or LakeError."""
    try:
        with told("reading the audit topic by Spark"), _quiet():
            yield
    except EngineError:
        if query.problem is not None:
            with told("writing Delta tables by Spark"):
                raise query.problem from None
        raise


@contextmanager
def _quiet() -> Iterator[None]:
    """Have py4j not print what a micro-batch raises, as the run says it in a line."""
    logger = logging.getLogger("py4j.clientserver")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _check_ahead(tables: Tables, checkpoint: Path) -> None:
    """Raise LakeError where a checkpoint has ended batches that the tables do not have."""
    ended = _last(checkpoint / "commits")
    if ended >= 0 and ended > tables.chains.ended(_query_id(checkpoint)):
        raise LakeError(
            f"{checkpoint} is ahead of {tables.chains.name}, as where tables were restored or removed; remove it, and"
            " Spark goes on from the tables"
        )


def _query_id(checkpoint: Path) -> str:
    """Return the id of the query, which is the same as long as its checkpoint is there."""
    return str(json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"])


def _check_unfinished(tables: Tables, topic_id: str, partitions: Sequence[int], checkpoint: Path) -> None:
    """Raise LakeError where a batch is half done that is not the next one of the checkpoint."""
    chains = tables.chains
    for table in (tables.dead_letters, tables.events):
        if any(table.reached(topic_id, found) > chains.reached(topic_id, found) for found in partitions):
            raise LakeError(f"{table.name} has a batch that DuckDB has not ended; run once with --engine duckdb")
    ahead = [table for table in (tables.dead_letters, tables.events) if table.number > chains.number]
    if ahead and _last(checkpoint / "offsets") <= _last(checkpoint / "commits"):
        raise LakeError(
            f"{ahead[0].name} has a batch that chains does not have, and {checkpoint} does not know of it; choose"
            " another directory"
        )


def _last(directory: Path) -> int:
    """Return the number of the last batch of which a checkpoint has a file; -1 without any."""
    names = (path.name for path in directory.iterdir()) if directory.is_dir() else ()
    return max((int(name) for name in names if name.isdecimal()), default=-1)


@dataclass(slots=True)
class Query:
    """What the query does with each micro-batch. `log_starts` are the first offsets by partition."""

    lake: Lake
    tables: Tables
    topic_id: str
    log_starts: Mapping[int, int]
    checkpoint: Path
    clock_ms: Callable[[], int]
    so_far: Ingested = field(default_factory=Ingested)
    problem: BaseException | None = None
    between_batches: Lock = field(default_factory=Lock)
    """Held while a micro-batch is committed; whoever holds it finds the tables at rest."""
    is_stopped: bool = False
    _chains: dict[Place, ChainState] = field(default_factory=dict)
    _now_ms: int = 0  # of the micro-batch

    def __post_init__(self) -> None:
        self._chains = known_chains(self.tables.chains)

    def start(self, spark: Any, source: Stream, **trigger: Any) -> Any:
        """Start it with a trigger of Spark's; returns Spark's own query."""
        begins = {partition: max(begin, self.reached(partition)) for partition, begin in self.log_starts.items()}
        writer = source.stream(spark, begins, BATCH_RECORDS_MAX).writeStream.trigger(**trigger).queryName(NAME)
        writer = writer.option("checkpointLocation", Here(self.lake).address(self.checkpoint))
        return writer.foreachBatch(self.take).start()

    def reload(self) -> None:
        """Look at the tables again, which another writer of this process has committed to between two micro-batches."""
        self.tables = Tables(self.lake)
        self._chains = known_chains(self.tables.chains)

    def reached(self, partition: int) -> int:
        """Return the offset up to which a partition is in all tables."""
        return self.tables.chains.reached(self.topic_id, partition)

    def take(self, records: Any, batch: int) -> None:
        """Commit a micro-batch. What it raises reaches Java as words: `problem` is the exception itself."""
        try:
            with self.between_batches:
                if self.is_stopped:
                    raise EngineError("the query was stopped before its next micro-batch")
                self._now_ms = self.clock_ms()
                self._take(records, batch)
        except BaseException as problem:
            self.problem = problem
            raise

    def _take(self, records: Any, batch: int) -> None:
        rows = rows_of(self._new(records), link_columns()).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            self._commit(rows, batch)
        finally:
            rows.unpersist()

    def _new(self, records: Any) -> Any:
        """Return the records that the tables do not have."""
        is_new = F.lit(True)
        for partition in self.log_starts:
            is_of = F.col("partition") == partition
            is_new = F.when(is_of, F.col("offset") >= self.reached(partition)).otherwise(is_new)
        return records.filter(is_new)

    def _commit(self, rows: Any, batch: int) -> None:
        found = [Span(**row.asDict()) for row in _spans(rows).collect()]
        if not found:
            self._end_without_rows(batch)
            return
        number = self.tables.chains.number + 1
        holes = {span.partition: span.first - self.reached(span.partition) for span in found}
        holes = {partition: lost for partition, lost in holes.items() if lost > 0}
        if sum(span.dead for span in found):
            dead = rows.filter(IS_DEAD).select(to_delta(IN_DEAD_LETTERS, self.topic_id, self._now_ms))
            self._append(self.tables.dead_letters, dead, number, batch)
        events = rows.filter(f"NOT {IS_DEAD}").select(*ENTRIES)
        if holes:  # beside the others in one commit
            lost = [missed(place, self.reached(place), self.reached(place) + count) for place, count in holes.items()]
            told_of = [tuple(row.get(name) for name in ENTRIES) for row in lost]
            events = events.unionByName(rows.sparkSession.createDataFrame(told_of, schema(ENTRIES)))
        events = events.select(to_delta(IN_EVENTS, self.topic_id, self._now_ms))
        self._append(self.tables.events, events, number, batch)
        self._end(rows, found, holes, {NUMBER: number, query_identifier(self.query_id): batch})

    def _append(self, table: Table, frame: Any, number: int, batch: int) -> None:
        """Commit rows, unless the table has this batch. Raises LakeError where another run has one of its number."""
        token = f"{self.query_id}/{batch}/{number}"
        writer = frame.write.format("delta").mode("append").option("userMetadata", token)
        writer = writer.option("txnAppId", NUMBER).option("txnVersion", number)
        writer.save(Here(self.lake).address(self.lake.directory / table.name))
        table.check_committed(token)

    @property
    def query_id(self) -> str:
        """Return the id of the query, which has begun."""
        return _query_id(self.checkpoint)

    def _end_without_rows(self, batch: int) -> None:
        """End a micro-batch that has nothing new; where it was left half done and its records are deleted, its number
        too, with what `events` has of it. Records that `events` does not have are missed by the next batch.
        """
        chains, reached, numbers = self._chains, dict[str, int](), {query_identifier(self.query_id): batch}
        number = self.tables.chains.number
        if max(self.tables.dead_letters.number, self.tables.events.number) > number:
            numbers[NUMBER] = number + 1
        elif self.tables.chains.ended(self.query_id) >= batch:
            return
        if self.tables.events.number > number:
            for (topic_id, partition), end in offsets_behind(self.tables).items():
                if topic_id == self.topic_id and end > self.reached(partition):
                    reached[identifier(self.topic_id, partition)] = end
                    log_start = self.log_starts.get(partition, 0)
                    deleted = Batch(self.topic_id, partition, log_start, self._now_ms, has_holes=True)
                    chains = follow(chains, deleted, (), lambda *_: ())
        replace_chains(self.tables.chains, chains, {**numbers, **reached})
        self._chains = chains

    def _end(self, rows: Any, spans: Sequence["Span"], holes: Mapping[int, int], numbers: Mapping[str, int]) -> None:
        """Judge the chains, and commit what ends the batch. `holes` are records that were deleted unread."""
        links = rows.filter("has_its_hash IS NOT NULL").select(*LINKS)
        chains = self._chains
        for partition, found in groupby(in_order(steps_of(links)), key=lambda row: int(row["partition"])):
            log_start, cluster = self.log_starts.get(partition, 0), self.lake.trail_cluster
            batch = Batch(self.topic_id, partition, log_start, self._now_ms, partition in holes, cluster)
            chains = follow(chains, batch, map(_step, found), partial(_reread, links, partition))
        reached = {identifier(self.topic_id, span.partition): span.last + 1 for span in spans}
        replace_chains(self.tables.chains, chains, {**numbers, **reached})
        self._chains = chains
        self.so_far.records += sum(span.records for span in spans)
        self.so_far.dead += sum(span.dead for span in spans)
        self.so_far.missed += sum(holes.values())


@dataclass(frozen=True, slots=True)
class Span:
    """What a micro-batch has of a partition: its first and last offset, its records, and those that are dead."""

    partition: int
    first: int
    last: int
    records: int
    dead: int


def _spans(rows: Any) -> Any:
    return rows.groupBy("partition").agg(
        F.min("offset").alias("first"),
        F.max("offset").alias("last"),
        F.count("*").alias("records"),
        F.count_if(F.expr(IS_DEAD)).alias("dead"),
    )


def _step(row: Any) -> Step:
    return Step(row["offset"], entry_from(row), row["has_its_hash"], row["is_run"])


def _reread(links: Any, partition: int, source: str, first: int, until: int) -> Steps:
    """Give the entries of a chain between two offsets as steps, each by itself."""
    is_wanted = (F.col("partition") == partition) & (F.col("source") == source)
    found = links.filter(is_wanted & F.col("offset").between(first, until - 1))
    return (Step(row["offset"], entry_from(row), row["has_its_hash"]) for row in in_order(found))
