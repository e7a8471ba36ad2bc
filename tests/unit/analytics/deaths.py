"""Runs over Delta tables that die behind a commit, or whose commits are watched."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from kavka_audit.delta.tables import Table

WRITE: Final = Table._write


class Death(BaseException):
    """The process ends here."""


@contextmanager
def written_by(write: Callable[..., None]) -> Iterator[None]:
    """Have `write` write the tables, which is called as `WRITE` is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "_write", write)
        yield


@contextmanager
def death_behind(commit: int) -> Iterator[None]:
    """Have the run in the block die behind its commit of that number."""
    count = 0

    def write(table: Table, *given: Any) -> None:
        nonlocal count
        count += 1
        WRITE(table, *given)
        if count == commit:
            raise Death

    with written_by(write), pytest.raises(Death):
        yield
