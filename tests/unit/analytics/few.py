"""Few questions asked, where a test asks them many times."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kavka_audit.engine import DuckDB
from kavka_audit.lake.directory import Lake
from kavka_audit.questions import query_runner
from kavka_audit.questions.query_runner import Settings, Table


class Few(DuckDB):
    """DuckDB, asked little: answers to the other questions are those of a run before."""

    def __init__(self, others: dict[str, Table]) -> None:
        super().__init__()
        self._others = others

    def ask(self, lake: Lake, settings: Settings, rows_max: int) -> dict[str, Table]:
        return self._others | super().ask(lake, settings, rows_max)


@contextmanager
def asked(*names: str) -> Iterator[None]:
    """Only these questions are asked."""
    few = tuple(question for question in query_runner.questions() if question.name in names)
    assert len(few) == len(names), f"questions are {[question.name for question in query_runner.questions()]}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kavka_audit.questions.query_runner.questions", lambda: few)
        yield
