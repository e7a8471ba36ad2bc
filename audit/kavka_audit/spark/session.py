"""The Spark session of a run.

Its settings are those below, unless `spark-defaults.conf` (in the directory that SPARK_CONF_DIR names), or
PYSPARK_SUBMIT_ARGS, says otherwise: a file decides where executors run, how many there are and how large. Without any,
all runs in this process on the processors that the machine has.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from kavka_audit.engine import EngineError
from kavka_audit.spark.settings import MEMORY, collector, missing

OPTIONS: Final = ("PYSPARK_SUBMIT_ARGS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
"""Variables in which options of Java may stand, beside the file of settings."""


@contextmanager
def session(others: Mapping[str, str] | None = None) -> Iterator[Any]:
    """Give a session with settings of its own, and end it; one that is there already is given, and stays. Raises
    EngineError.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    started = _started(others or {})
    try:
        yield started
    finally:
        started.stop()


def _started(others: Mapping[str, str]) -> Any:
    # Both variables are read when Spark's Java process starts. It starts no Python: no record is for Python to look at.
    os.environ.setdefault("SPARK_DRIVER_MEMORY", MEMORY)
    os.environ.setdefault("SPARK_SUBMIT_OPTS", collector(_settings(), *(os.environ.get(name, "") for name in OPTIONS)))
    try:
        # Starts the Java process, which reads the files with settings: what they say is known from then on.
        SparkContext.setSystemProperty("kavka.audit", "run")
        conf = SparkConf()
        for name, value in {**others, **missing(dict(conf.getAll()))}.items():
            conf.set(name, value)
        return SparkSession.builder.config(conf=conf).getOrCreate()
    except PySparkRuntimeError as problem:
        raise EngineError(f"Spark does not start; it needs Java 17 or newer: {problem}") from problem


def _settings() -> str:
    """Return the text of the file of settings, before Spark reads it."""
    home = os.environ.get("SPARK_HOME", "")
    directory = os.environ.get("SPARK_CONF_DIR", os.path.join(home, "conf") if home else "")
    with suppress(OSError):
        return (Path(directory) / "spark-defaults.conf").read_text(errors="replace") if directory else ""
    return ""
