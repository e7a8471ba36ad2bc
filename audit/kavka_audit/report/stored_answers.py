"""Reads the answers that the last run has written, for those that show them again."""

import duckdb

from kavka_audit.lake.database import connected
from kavka_audit.lake.directory import Lake, LakeError
from kavka_audit.questions.query_runner import Table, questions


def stored_answer(lake: Lake, name: str, rows_max: int) -> Table | None:
    """Return the answer to a question with its first rows; None where no run has answered it. Raises LakeError."""
    place = lake.tables / f"{name}.parquet"
    question = next(question for question in questions() if question.name == name)
    if not place.is_file():
        return None
    try:
        with connected() as connection:
            told = connection.execute("SELECT * FROM read_parquet(?) LIMIT ?", [str(place), rows_max])
            columns, rows = tuple(column[0] for column in told.description or ()), told.fetchall()
            ((count,),) = connection.execute("SELECT count(*) FROM read_parquet(?)", [str(place)]).fetchall()
    except duckdb.Error as error:
        raise LakeError(f"{place} cannot be read: {error}") from error
    return Table(question, columns, rows, count)
