"""Rows of the lake as rows of the Delta tables, by expressions of Spark: what `delta.columns` says in DuckDB's SQL."""

from collections.abc import Sequence

from pyspark.sql import functions as F  # noqa: N812 - so do Spark's own documents

from kavka_audit.delta.columns import DAY, DAY_MS, DAYS_BACK_MAX, TIME_MAX_MS, TIMES
from kavka_audit.spark.entry_headers import Column


def to_delta(names: Sequence[str], topic_id: str, now_ms: int) -> list[Column]:
    """Return the columns that make rows of a table of rows of the lake."""
    found = (_time(name).alias(TIMES[name]) if name in TIMES else F.col(name) for name in names)
    return [F.lit(topic_id).alias("topic_id"), *found, _day(now_ms).alias(DAY)]


def _time(name: str) -> Column:
    return F.timestamp_millis(F.when(F.col(name) > TIME_MAX_MS, F.lit(TIME_MAX_MS)).otherwise(F.col(name)))


def _day(now_ms: int) -> Column:
    """The day of an entry; that of the run for what has no time."""
    since, until = now_ms - DAYS_BACK_MAX * DAY_MS, now_ms + DAY_MS
    written_ms = F.coalesce(F.col("written_ms"), F.lit(now_ms))
    return F.to_date(F.timestamp_millis(F.least(F.greatest(written_ms, F.lit(since)), F.lit(until))))
