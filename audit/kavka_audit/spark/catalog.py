"""Names Delta tables in Spark's catalog, so that others find them by `SELECT ... FROM audit.events`.

A table in the catalog is a name for its directory: the rows, their columns and versions stay what Delta's log says. A
name that stands for another directory is left alone, and said.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from kavka_audit.engine import EngineError
from kavka_audit.spark.errors import told


def register(spark: Any, schema: str, directory: Path, names: Iterable[str]) -> None:
    """Name the tables of a directory in a schema, which is made where it is not there. Its name is letters, digits and
    a dot. Raises EngineError.
    """
    assert schema.replace(".", "_").isidentifier(), schema
    with told(f"naming tables in {schema}"):
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        for name in names:
            place = directory.absolute() / name
            location = f"file://{place}".replace("'", "\\'")
            spark.sql(f"CREATE TABLE IF NOT EXISTS {schema}.{name} USING delta LOCATION '{location}'")
            ((found,),) = spark.sql(f"DESCRIBE DETAIL {schema}.{name}").select("location").collect()
            if Path(unquote(urlparse(found).path)) != place:
                raise EngineError(
                    f"{schema}.{name} is a table of Spark's catalog already, at {found}; name another schema"
                )
