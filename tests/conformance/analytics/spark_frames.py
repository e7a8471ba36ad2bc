"""What only the Java of Spark says of a frame."""

from typing import Any

import pytest


def java_of(frame: Any) -> Any:
    """The frame as Java has it."""
    return frame._jdf


def executed_plan(frame: Any) -> Any:
    """The plan by which a frame is computed."""
    return java_of(frame).queryExecution().executedPlan()


def hadoop_settings(spark: Any) -> Any:
    """The settings of Hadoop that all frames of a session share."""
    return spark.sparkContext._jsc.hadoopConfiguration()


def small_files(monkeypatch: pytest.MonkeyPatch, *, tasks_max: int) -> None:
    """Have Spark write files of a few records, and rounds of a few files."""
    monkeypatch.setattr("kavka_audit.spark.ingest.FILE_RECORDS_MAX", 40)
    monkeypatch.setattr("kavka_audit.spark.ingest.ROUND_TASKS_MAX", tasks_max)
