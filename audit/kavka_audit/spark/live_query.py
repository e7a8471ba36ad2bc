"""Keeps one query of Structured Streaming running, by a trigger of processing time, while answers are made beside it.

The query commits to the tables, and so does what keeps them (retention, compaction, daily tables). Both are in this
process and take turns: a micro-batch waits while the tables are at rest, and the other way round. What ends the query
is raised where the run waits for it; it is begun again from its checkpoint and the tables, as after a death.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event
from typing import Any, Final

from kavka_audit.delta.engine import DeltaDuckDB
from kavka_audit.engine import EngineError
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.ingest import Ingested, Trail
from kavka_audit.spark.delta_query import Query, failures_of, make_query
from kavka_audit.spark.errors import told
from kavka_audit.spark.source import Stream

LOOK_SECONDS: Final = 0.5
LEAST_SECONDS: Final = 0.01
"""Spark waits for whole milliseconds, and for none at all not."""
ENDED_BY_OTHERS: Final = "the query was stopped from without, as in Spark's UI"


class LiveQuery(DeltaDuckDB):
    """The engine of a run that goes on. `clock` gives seconds since 1970. Each method raises LakeError and EngineError.
    The lake is held all the while.
    """

    def __init__(
        self, spark: Any, lake: Lake, source: Stream, interval_seconds: int, clock: Callable[[], float]
    ) -> None:
        super().__init__(clock)
        self._spark, self._lake, self._source = spark, lake, source
        self._trigger = f"{interval_seconds} seconds"
        self._reading: tuple[str, tuple[int, ...]] | None = None  # the topic's id, and its partitions
        self._query: Query | None = None
        self._running: Any = None  # Spark's
        self._reported = Ingested()

    @property
    def is_running(self) -> bool:
        """Whether it was begun, and nothing was raised of it since."""
        return self._running is not None

    def follow(self, trail: Trail) -> None:
        """Have the query read this topic with the partitions that it has now; begin it where it does not run so."""
        reading = trail.topic_id, tuple(sorted(partition for partition, *_ in trail.ranges()))
        if self._running is not None and self._reading == reading:
            return
        self.close()
        query = make_query(self._lake, trail, lambda: int(self._clock() * 1000))
        with failures_of(query):
            self._running = query.start(self._spark, self._source, processingTime=self._trigger)
        self._query, self._reading, self._reported = query, reading, Ingested()

    def wait(self, seconds: float, is_stopping: Event) -> bool:
        """Let the query run; whether it has run so long, and is not to stop. Raises what it ends by, after which
        `follow` begins it again.
        """
        assert self._query is not None, "it runs"
        until = time.monotonic() + seconds
        try:
            with failures_of(self._query):
                while not is_stopping.is_set() and (left := until - time.monotonic()) > 0:
                    if self._running.awaitTermination(min(max(left, LEAST_SECONDS), LOOK_SECONDS)):
                        raise EngineError(ENDED_BY_OTHERS)
        except Exception:
            self.close()  # for it to be begun again, also where it still runs
            raise
        return not is_stopping.is_set()

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Have no micro-batch be committed meanwhile, and the next one see what was done to the tables."""
        query = self._query
        if query is None:
            yield
            return
        with query.between_batches:
            try:
                yield
            finally:
                query.reload()

    def close(self) -> None:
        """Stop the query between two micro-batches, if it runs."""
        running, query, self._running = self._running, self._query, None
        if running is None or query is None:
            return
        with query.between_batches:
            query.is_stopped = True
        with suppress(EngineError), told("stopping the query"):
            running.stop()

    def ingest(self, lake: Lake, trail: Trail) -> Iterator[Ingested]:
        """Take in nothing more; gives what the query has taken in since the last time."""
        assert lake is self._lake, "the lake that is held"
        assert trail.topic_id
        if self._query is not None:
            sums, before = self._query.so_far, self._reported
            self._reported = Ingested(sums.records, sums.dead, sums.missed)
            yield Ingested(sums.records - before.records, sums.dead - before.dead, sums.missed - before.missed)
