"""The engine over Delta tables with Spark: Spark takes in the trail, and DuckDB answers from the tables."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import time
from typing import Any, Final

from kavka_audit.delta.daily_columns import DAILY
from kavka_audit.delta.engine import DeltaDuckDB
from kavka_audit.engine import EngineError
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.ingest import Ingested, Trail
from kavka_audit.spark.catalog import register
from kavka_audit.spark.delta_query import ingest
from kavka_audit.spark.live_query import LiveQuery
from kavka_audit.spark.session import session
from kavka_audit.spark.settings import DELTA
from kavka_audit.spark.source import KafkaSource, Stream
from kavka_audit.spark.storage import is_here

OF_TRAIL: Final = ("events", "dead_letters", "chains")


class DeltaSpark(DeltaDuckDB):
    """Takes in by a session of Spark. Each method raises LakeError and EngineError."""

    def __init__(self, spark: Any, source: Stream, clock: Callable[[], float] = time, schema: str = "") -> None:
        super().__init__(clock)
        self._spark, self._source, self._schema = spark, source, schema

    def ingest(self, lake: Lake, trail: Trail) -> Iterator[Ingested]:
        """Take in what is new; gives what was read at the end."""
        return ingest(self._spark, lake, trail, self._source, int(self._clock() * 1000))

    def retain(self, lake: Lake, now_ms: int, keep_days: int) -> None:
        """Delete days that are too old, and name the tables in the catalog, if they are to be there."""
        super().retain(lake, now_ms, keep_days)
        if self._schema:
            register(self._spark, self._schema, lake.directory, (*OF_TRAIL, *DAILY))

    def live(self, lake: Lake, interval_seconds: int) -> LiveQuery:
        """Return the engine of a run that goes on; its query looks for records every so many seconds."""
        return LiveQuery(self._spark, lake, self._source, interval_seconds, self._clock)


@contextmanager
def opened(bootstrap: str, properties: Mapping[str, str], schema: str = "") -> Iterator[DeltaSpark]:
    """Give an engine that reads the audit topic of a cluster. `schema` is that of Spark's catalog in which its tables
    are named, if any. Raises EngineError.
    """
    with session(DELTA) as spark:
        if not is_here(spark):
            raise EngineError(
                "--table-format delta: its tables stand in a directory of this machine, and executors are elsewhere;"
                " set spark.master to local[*]"
            )
        yield DeltaSpark(spark, KafkaSource(bootstrap, properties), schema=schema)
