"""The database of this process in which Parquet is read and written: it takes 20 ms of a processor to begin with.

A run asks it some thirty times, and once more for each file. It holds nothing: no table is made in it. The questions
have one of their own, with a bound to its memory.
"""

from functools import cache

import duckdb


def connected(*, threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """Return a connection to the database, which its user closes. `threads`: to the one that has so many."""
    return _database(threads).cursor()


@cache
def _database(threads: int | None) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={} if threads is None else {"threads": threads})
