"""The engine: what a run asks of Spark, over a lake in a directory, or in a store that executors reach.

Spark aggregates from the rows what the questions ask of. Aggregates tell apart clients and topics, and no times: they
are little, mostly. Planning a question over little takes Spark seconds, and DuckDB no time. So DuckDB answers from what
Spark has aggregated, unless that is much; then Spark answers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial, reduce
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import duckdb
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from kavka_audit.lake.columns import COUNTS, CUTS, ENTRIES, SNAPSHOT, Columns
from kavka_audit.lake.database import connected
from kavka_audit.lake.directory import PART, Lake, by_topic
from kavka_audit.lake.ingest import Ingested, Trail
from kavka_audit.lake.retention import keep_lately, merge
from kavka_audit.questions.query_runner import EVENTS, Question, Settings, Table, aggregations, ask, questions
from kavka_audit.spark.columns import SQL_TYPES, schema
from kavka_audit.spark.errors import told
from kavka_audit.spark.ingest import Ingestion
from kavka_audit.spark.session import session
from kavka_audit.spark.source import KafkaSource, Source
from kavka_audit.spark.storage import Ground, Here, afar, is_here
from kavka_audit.spark.writing import stage_frame, write_frame
from kavka_audit.store.address import Address
from kavka_audit.store.objects import Store

LITTLE_ROWS_MAX: Final = 1_000_000
"""Rows of aggregates, and of what clients tell, up to which DuckDB answers: ten seconds of one processor."""
LITTLE_MEMORY: Final = "256MB"
"""What DuckDB may keep in memory then, as Java has most of it. A million and a half took a process to 365 MiB."""
AGGREGATED_TOGETHER: Final = 2
"""Aggregates that are made at a time: while one is planned, which takes one thread, the rows of another are read."""


class SparkEngine:
    """Computes over a lake in a session of Spark. Each method raises LakeError and EngineError."""

    def __init__(self, spark: Any, source: Source, ground: Callable[[Lake], Ground] = Here) -> None:
        self.spark = spark
        self._source = source
        self._ground = ground
        self._run = f"spark-{uuid4().hex}"  # no other run has this name, however long its executors go on

    def ingest(self, lake: Lake, trail: Trail) -> Iterator[Ingested]:
        """Take in what is new; gives what has been taken in after each round."""
        ground, stage = self._ground(lake), self._stage(lake, "entries")
        return Ingestion(self.spark, lake, trail, self._source, ground, stage).run()

    def _stage(self, lake: Lake, name: str) -> Path:
        """Return where a job writes what is to be part of the lake."""
        return lake.directory / f"{self._run}-{name}{PART}"

    def ask(self, lake: Lake, settings: Settings, rows_max: int) -> dict[str, Table]:
        """Answer each question into a file of `tables`; returns the first `rows_max` rows of each, by name."""
        self.see(lake, settings)
        aggregates = self.aggregate(lake)
        if (
            _rows([*lake.files("counts"), *(file for files in aggregates.values() for file in files)])
            <= LITTLE_ROWS_MAX
        ):
            found = ask(lake, settings, rows_max, partial(_read, aggregates), LITTLE_MEMORY)
        else:
            found = {question.name: self.answer(lake, question, rows_max) for question in questions()}
        for name in aggregates:
            self._ground(lake).clear(self._stage(lake, name))
        return found

    def retain(self, lake: Lake, now_ms: int, keep_days: int) -> None:
        """Delete files whose rows are all too old, and merge small ones: by DuckDB, as that is little."""
        keep_lately(lake, now_ms, keep_days)
        merge(lake)

    def aggregate(self, lake: Lake) -> dict[str, list[str]]:
        """Write what the questions ask of beside the lake, and make it to be seen; returns the files of each table."""
        ground = self._ground(lake)
        first, second, *others = aggregations()
        found = {first: self._aggregated(lake, ground, first)}
        with told("reading the lake by Spark"):
            self.spark.sql(EVENTS).createOrReplaceTempView("events")
        found[second] = self._aggregated(lake, ground, second)
        with ThreadPoolExecutor(AGGREGATED_TOGETHER) as threads:
            files = threads.map(lambda name: self._aggregated(lake, ground, name), others)
            return found | dict(zip(others, files, strict=True))

    def _aggregated(self, lake: Lake, ground: Ground, name: str) -> list[str]:
        stage = self._stage(lake, name)
        with told(f"aggregating {name} by Spark"):
            frame = self.spark.sql(aggregations()[name])
        files = [str(file) for file in stage_frame(ground, stage, frame)]
        with told(f"reading {stage} by Spark"):
            self.spark.read.schema(frame.schema).parquet(ground.address(stage)).createOrReplaceTempView(name)
        return files

    def see(self, lake: Lake, settings: Settings) -> None:
        """Make what the questions read. A column that a file does not have reads as NULL. Raises EngineError."""
        ground = self._ground(lake)
        with told("reading the lake by Spark"):
            self._view_trail(ground, by_topic(lake.files()))
            self._view(ground, "counts", COUNTS, lake.files("counts"))
            self._view(ground, "cuts", CUTS, [lake.cuts] if lake.cuts.exists() else [])
            for name, columns in SNAPSHOT.items():
                file = lake.snapshot / f"{name}.parquet"
                self._view(ground, name, columns, [file] if file.exists() else [])
            asked = [f"CAST({value:d} AS BIGINT) AS {name}" for name, value in asdict(settings).items()]
            self.spark.sql(f"SELECT {', '.join(asked)}").createOrReplaceTempView("settings")

    def _view_trail(self, ground: Ground, files: Mapping[str, Sequence[str]]) -> None:
        """Make the rows of all topics of the trail, with the topic of each."""
        topics = [
            self._rows(ground, ENTRIES, listed).withColumn("topic_id", lit(topic_id))
            for topic_id, listed in files.items()
        ]
        frame = (
            reduce(DataFrame.union, topics) if topics else self._rows(ground, {**ENTRIES, "topic_id": "VARCHAR"}, [])
        )
        frame.createOrReplaceTempView("entries")

    def _view(self, ground: Ground, name: str, columns: Columns, files: Sequence[Path | str]) -> None:
        self._rows(ground, columns, files).createOrReplaceTempView(name)

    def _rows(self, ground: Ground, columns: Columns, files: Sequence[Path | str]) -> DataFrame:
        if files:
            return self.spark.read.schema(schema(columns)).parquet(*(ground.address(Path(file)) for file in files))
        # In this form Spark knows that there is nothing, and plans without it.
        nothing = [f"CAST(NULL AS {SQL_TYPES.get(kind, kind)}) AS `{column}`" for column, kind in columns.items()]
        return self.spark.sql(f"SELECT {', '.join(nothing)} WHERE false")

    def answer(self, lake: Lake, question: Question, rows_max: int) -> Table:
        """Answer a question from what was made to be seen."""
        ground, place = self._ground(lake), lake.tables / f"{question.name}.parquet"
        with told(f"answering {question.name} by Spark"):
            frame = self.spark.sql(question.sql)
        write_frame(lake, ground, self._stage(lake, question.name), place, frame)
        with told(f"reading {place} by Spark"):
            written = self.spark.read.schema(frame.schema).parquet(ground.address(place))
            # A question may ask of the answers to those before it.
            written.createOrReplaceTempView(question.name)
            rows = [tuple(row) for row in written.limit(rows_max + 1).collect()]
            count = len(rows) if len(rows) <= rows_max else written.count()
        return Table(question, tuple(frame.columns), rows[:rows_max], count)


def _read(
    files: Mapping[str, Sequence[str]], connection: duckdb.DuckDBPyConnection
) -> dict[str, duckdb.DuckDBPyRelation]:
    """Return the aggregates that Spark has written."""
    return {name: connection.read_parquet([*found]) for name, found in files.items()}


def _rows(files: list[str]) -> int:
    """Return how many rows files have, which they tell without being read."""
    with connected() as connection:
        return len(files) and int(connection.read_parquet(files, union_by_name=True).count("*").fetchall()[0][0])


@contextmanager
def opened(
    bootstrap: str, properties: Mapping[str, str], kept: tuple[Address, Store] | None = None
) -> Iterator[SparkEngine]:
    """Give an engine that reads the audit topic of a cluster. `kept` is the store of the lake, if it is in one, which
    executors on other machines reach themselves. Raises EngineError.
    """
    source = KafkaSource(bootstrap, properties)
    with session() as spark:
        if kept is None or is_here(spark):
            yield SparkEngine(spark, source)
            return
        with afar(spark, *kept) as ground:
            yield SparkEngine(spark, source, ground)
