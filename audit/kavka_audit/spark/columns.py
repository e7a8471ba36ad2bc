"""Columns of the lake as Spark's types."""

from typing import Any, Final

from pyspark.sql import types

from kavka_audit.lake.columns import Columns

TYPES: Final[dict[str, Any]] = {
    "VARCHAR": types.StringType(),
    "INTEGER": types.IntegerType(),
    "BIGINT": types.LongType(),
    "DOUBLE": types.DoubleType(),
    "BOOLEAN": types.BooleanType(),
    "BLOB": types.BinaryType(),
}
SQL_TYPES: Final = {"VARCHAR": "STRING", "BLOB": "BINARY"}
"""Types that have another name in Spark's SQL."""


def schema(columns: Columns) -> Any:
    """Return the schema of a file with these columns."""
    return types.StructType([types.StructField(name, TYPES[kind]) for name, kind in columns.items()])
