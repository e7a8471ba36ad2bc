"""Somebody who types commands, in the process of the test."""

import contextlib
import io
from pathlib import Path

import pytest

from kavka_cli.app import main
from tests.unit.operator.test_local_pieces import FILE


def run(*words: str) -> tuple[int, str]:
    """Exit code of a command, stdout and stderr together."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), pytest.raises(SystemExit) as ended:
        main(words)
    assert isinstance(ended.value.code, int)
    return ended.value.code, said.getvalue()


class Person:
    """Types commands; answers with exit code, stdout and stderr together."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def types(self, *words: str) -> tuple[int, str]:
        return run(*words, "--state-dir", str(self.directory / "state"))

    def file(self, text: str = FILE) -> str:
        path = self.directory / "file.yaml"
        path.write_text(text)
        return str(path)
