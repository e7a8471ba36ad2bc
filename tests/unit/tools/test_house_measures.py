"""The measures of a made-up house."""

import ast
from pathlib import Path

import pytest

from tools.house_measures import Measures, measured, raised, room_of, silent, spread, table

SOURCE = '''\
"""A rule."""


def opened(path: str) -> int:
    """The size. Raises OSError."""
    assert path
    if not path.strip():
        raise OSError(2, path)
    return len(path)


def _closed(path):
    raise ValueError


class Door:
    def silent(self) -> None:
        raise ValueError("shut")

    def again(self) -> None:
        """Try."""
        try:
            self.silent()
        except ValueError:
            raise
'''


def test_who_raises_without_a_word() -> None:
    assert list(silent(ast.parse(SOURCE))) == ["silent"]
    said = 'def f():\n    """Raise OSError."""\n    raise OSError'
    assert not list(silent(ast.parse(said)))


def test_files_functions_and_assertions_are_counted() -> None:
    measures = Measures()
    measures.add(SOURCE)
    assert measures.files == [25]
    assert measures.functions == [6, 2, 2, 6]
    assert (measures.asserts, measures.typed) == (1, 3)
    assert (measures.public, measures.documented) == (3, 2)
    assert (measures.raising, measures.saying) == (2, 1)


def test_what_has_no_body_is_no_function() -> None:
    measures = Measures()
    measures.add(
        'class Disk(Protocol):\n    def open(self) -> None: ...\n    def size(self) -> int:\n        """Bytes."""\n'
    )
    assert (measures.functions, measures.public) == ([], 0)


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ("raise ValueError(1)", ["ValueError"]),
        ("raise", []),
        ("raise problem", []),
        ("if x:\n        raise OSError", ["OSError"]),
        ("def inner():\n        raise OSError", []),
        ("raise AssertionError", []),
        ("try:\n        raise OSError\n    except OSError:\n        pass", []),
        (
            "try:\n        raise OSError\n    except (KeyError, ValueError):\n        raise KeyError",
            ["OSError", "KeyError"],
        ),
    ],
)
def test_errors_that_leave_a_function_are_found(body: str, errors: list[str]) -> None:
    function = ast.parse(f"def outer(x, problem):\n    {body}").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert list(raised(function)) == errors


@pytest.mark.parametrize(
    ("path", "room"),
    [
        ("broker/kavka_broker/core/raft/node.py", "core"),
        ("broker/kavka_broker/net/inbox.py", "shells"),
        ("broker/kavka_broker/protocol/messages/fetch_request.py", None),
        ("cli/kavka_cli/app.py", "cli"),
        ("tests/unit/tools/test_house_measures.py", "tests"),
        ("bench/large.py", None),
    ],
)
def test_a_file_has_the_room_of_its_folder(path: str, room: str | None) -> None:
    assert room_of(path) == room


def test_the_spread_is_median_ninetieth_and_longest() -> None:
    assert spread(range(1, 101)) == "50 / 91 / 100"
    assert spread([]) == "-"


def test_the_table_of_a_house(tmp_path: Path) -> None:
    for place in ("broker/kavka_broker/core", "tests"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "one.py").write_text(SOURCE)
    lines = list(table(measured(tmp_path)))
    assert lines[1].split() == ["core", "1", "25", "4", "/", "6", "/", "6", "25", "/", "25", "/", "25",
                                "0.25", "75", "%", "66", "%", "1", "of", "2"]  # fmt: skip
    assert lines[-1] == "tests : source = 1.00"
