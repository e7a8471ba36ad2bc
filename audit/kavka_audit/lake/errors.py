"""Errors of files and of DuckDB in words: one line that names the file and says what to do."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb

from kavka_audit.lake.database import connected
from kavka_audit.lake.directory import Lake, LakeError, damaged

OF_THE_DISK: Final = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG, errno.EACCES, errno.EPERM)
)
NO_ROOM: Final = "No space left on device"
CHARACTERS_MAX: Final = 300


@contextmanager
def told(lake: Lake) -> Iterator[None]:
    """Raise LakeError for an error of the disk, and for one of DuckDB."""
    try:
        yield
    except OSError as problem:
        if problem.errno not in OF_THE_DISK:
            raise
        raise LakeError(_refused(lake, problem.strerror or str(problem))) from problem
    except duckdb.Error as problem:
        words = " ".join(str(problem).split())[:CHARACTERS_MAX]
        if NO_ROOM in words:
            raise LakeError(_refused(lake, NO_ROOM)) from problem
        if (file := _unreadable(lake)) is not None:
            raise damaged(lake, file) from problem
        raise LakeError(f"{lake.name}: {words}") from problem


def _refused(lake: Lake, reason: str) -> str:
    return f"{lake.directory} cannot be written to: {reason}; mend that and run again: what is in it counts once"


def _unreadable(lake: Lake) -> Path | None:
    """Return the first file that DuckDB cannot read to its end."""
    with connected() as connection:
        for file in lake.here():
            try:
                connection.execute("SELECT count(COLUMNS(*)) FROM read_parquet(?)", [str(file)]).fetchall()
            except duckdb.Error:
                return file
    return None
