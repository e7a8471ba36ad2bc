"""What takes the trail into a lake and answers questions from it: the seam between a run and the engine that computes.

Engines write the same files with the same columns, so that a lake that one has begun goes on with another. `DUCKDB` is
the engine for one machine; `spark` has that for more. What is small is DuckDB's with any engine, in this process:
what the cluster tells, what clients tell and the topics that they tell of, the age of files and their merging.
"""

from collections.abc import Iterator
from typing import Final, Protocol

from kavka_audit.lake.directory import Lake
from kavka_audit.lake.ingest import Ingested, Trail, ingest
from kavka_audit.lake.parallel_ingest import Opener, ingest_by_crew
from kavka_audit.lake.retention import keep_lately, merge
from kavka_audit.questions.query_runner import Settings, Table, ask


class EngineError(Exception):
    """The engine cannot start or go on; the message says why and what to do."""


class Engine(Protocol):
    """Computes over a lake. Each method raises LakeError and EngineError."""

    def ingest(self, lake: Lake, trail: Trail) -> Iterator[Ingested]:
        """Take in what is new; gives what was read so far from time to time. At the end all is in the lake."""

    def ask(self, lake: Lake, settings: Settings, rows_max: int) -> dict[str, Table]:
        """Answer each question into a file of `tables`; returns the first `rows_max` rows of each, by name."""

    def retain(self, lake: Lake, now_ms: int, keep_days: int) -> None:
        """Delete rows that are too old, and have few files where there are many."""


class DuckDB:
    """The engine for one machine: reads records by the client that the trail has. Where there are many, and `opener`
    says how other processes open the trail, several of them read.
    """

    def __init__(self, opener: Opener | None = None) -> None:
        self._opener = opener

    def ingest(self, lake: Lake, trail: Trail) -> Iterator[Ingested]:
        """Take in what is new; gives what was read so far for each file."""
        return ingest(lake, trail) if self._opener is None else ingest_by_crew(lake, trail, self._opener)

    def ask(self, lake: Lake, settings: Settings, rows_max: int) -> dict[str, Table]:
        """Answer each question into a file of `tables`; returns the first `rows_max` rows of each, by name."""
        return ask(lake, settings, rows_max)

    def retain(self, lake: Lake, now_ms: int, keep_days: int) -> None:
        """Delete files whose rows are all too old, and merge small ones."""
        keep_lately(lake, now_ms, keep_days)
        merge(lake)


DUCKDB: Final = DuckDB()
