"""The engine for one machine over Delta tables: DuckDB reads the trail and answers, deltalake commits; no Java."""

from collections.abc import Callable, Iterator
from time import time

from kavka_audit.delta.daily_tables import refresh
from kavka_audit.delta.ingest import ingest
from kavka_audit.delta.retention import retain
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.ingest import Ingested, Trail
from kavka_audit.lake.parallel_ingest import Opener
from kavka_audit.lake.retention import keep_lately, merge
from kavka_audit.questions.query_runner import Settings, Table, ask


class DeltaDuckDB:
    """Computes over Delta tables in a directory. Each method raises LakeError. `clock` gives seconds since 1970. Where
    there are many new records, and `opener` says how other processes open the trail, several of them read.
    """

    def __init__(self, clock: Callable[[], float] = time, opener: Opener | None = None) -> None:
        self._clock, self._opener = clock, opener

    def ingest(self, lake: Lake, trail: Trail) -> Iterator[Ingested]:
        """Take in what is new; gives what was read so far for each batch."""
        return ingest(lake, trail, int(self._clock() * 1000), self._opener)

    def ask(self, lake: Lake, settings: Settings, rows_max: int) -> dict[str, Table]:
        """Answer each question from the daily tables into a file of `tables`; returns the first `rows_max` rows of
        each, by name.
        """
        return ask(lake, settings, rows_max, refresh(lake).aggregates())

    def retain(self, lake: Lake, now_ms: int, keep_days: int) -> None:
        """Delete days that are too old. What clients tell is in files of the lake's own."""
        retain(lake, now_ms, keep_days)
        refresh(lake)
        keep_lately(lake, now_ms, keep_days)
        merge(lake)
