"""Errors of Spark in words: one line that names what is wrong, instead of pages of Java."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from kavka_audit.engine import EngineError

NO_CONNECTOR: Final = (
    "Spark lacks its connector for Kafka: name its jars by spark.jars in spark-defaults.conf (docs/how-to/audit.md)"
)
NO_DELTA: Final = (
    "Spark lacks Delta Lake: name its jars by spark.jars or spark.jars.packages in spark-defaults.conf"
    " (docs/how-to/audit.md)"
)
NO_STORE: Final = (
    "Spark lacks its file system for S3 stores: name its jars by spark.jars in spark-defaults.conf"
    " (docs/how-to/audit.md)"
)
DELTA_LACKS: Final = ("data source: delta", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
"""What errors say where the jars of Delta Lake are not there."""
CHARACTERS_MAX: Final = 500


@contextmanager
def told(doing: str) -> Iterator[None]:
    """Raise EngineError, which says what was being done, for an error of Spark."""
    try:
        yield
    except (PySparkException, Py4JError) as problem:
        raise EngineError(f"{doing}: {words(problem)}") from problem


def words(problem: Exception) -> str:
    """Return the error in words."""
    text = _innermost(problem)
    if any(name in text for name in DELTA_LACKS):
        return NO_DELTA
    if "data source: kafka" in text or "DATA_SOURCE_NOT_FOUND" in text:
        return NO_CONNECTOR
    if "S3AFileSystem not found" in text:
        return NO_STORE
    return " ".join(text.split())[:CHARACTERS_MAX]


def _innermost(problem: Exception) -> str:
    """The words of the error that began it."""
    cause = problem.java_exception if isinstance(problem, Py4JJavaError) else None
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    return str(problem) if cause is None else str(cause.toString())
