"""Reads the answers that the last run has written, for those that show them again."""

import duckdb

from kavka_audit.lake.database import connected
from kavka_audit.lake.directory import Lake, LakeError
from kavka_audit.questions.query_runner import Table, questions, read_answer


def stored_answer(lake: Lake, name: str, rows_max: int) -> Table | None:
    """Return the answer to a question with its first rows; None where no run has answered it. Raises LakeError."""
    place = lake.tables / f"{name}.parquet"
    question = next(question for question in questions() if question.name == name)
    if not place.is_file():
        return None
    try:
        with connected() as connection:
            return read_answer(connection, question, place, rows_max)
    except duckdb.Error as error:
        raise LakeError(f"{place} cannot be read: {error}") from error
