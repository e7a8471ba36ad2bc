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
}
SQL_TYPES: Final = {"VARCHAR": "STRING"}
"""Types that have another name in Spark's SQL."""


def schema(columns: Columns) -> Any:
    """Return the schema of a file with these columns."""
    return types.StructType([types.StructField(name, TYPES[kind]) for name, kind in columns.items()])


def values(row: "dict[str, object] | Any", columns: Columns) -> tuple[object, ...]:
    """Return a row as Spark takes it: a value for each column, numbers of the type that the column has."""
    return tuple(_value(row.get(name), kind) for name, kind in columns.items())


def _value(value: object, kind: str) -> object:
    return float(value) if kind == "DOUBLE" and isinstance(value, int) else value
