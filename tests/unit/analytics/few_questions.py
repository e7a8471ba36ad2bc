"""Few questions asked, where a test asks them many times."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from kavka_audit.engine import DuckDB
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.snapshot import Snapshot, keep
from kavka_audit.questions import query_runner
from kavka_audit.questions.query_runner import Settings, Table, ask
from tests.unit.analytics.trail import CLUSTER, NOW_MS, ROWS_MAX, Kept, taken_in


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


def read_by(name: str) -> set[str]:
    """A question, and those whose answers it reads."""
    known = {question.name: question.sql for question in query_runner.questions()}
    return {name, *(other for other in known if other in known[name].split())}


class Answers:
    """The answers that a lake gives, each of which is asked for when a test looks at it."""

    def __init__(
        self,
        directory: Path,
        trail: Kept,
        tables: Mapping[str, Sequence[Mapping[str, object]]] | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._settings = settings or Settings(NOW_MS)
        self._lake, _ = taken_in(directory, trail)
        keep(self._lake, Snapshot(CLUSTER, tables or {}))

    def __getitem__(self, name: str) -> Table:
        with asked(*read_by(name)):
            return ask(self._lake, self._settings, ROWS_MAX)[name]
