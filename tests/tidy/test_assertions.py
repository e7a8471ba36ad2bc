"""What changes files asserts what it is about to do, or says here why there is nothing to assert (docs/reliability.md).

Looked at is every function of `storage` that writes, cuts, renames or removes by a disk or a file. What a disk gives
back is an error and never an assertion; what this process is about to write has no such excuse.
"""

import ast
from collections.abc import Iterator

from tests.tidy.tree import PYTHON, nodes, parsed, relative

STORAGE = "broker/kavka_broker/storage/"
#: What carries it out, and knows nothing of what it is for.
MECHANISM = f"{STORAGE}disk.py"
CHANGING = frozenset({"append", "truncate", "write_file", "rename", "remove", "remove_directory", "make_directory"})
SEAMS = frozenset({"disk", "_disk", "file", "_file"})

#: path::function: why it asserts nothing. Only fewer, please.
NOTHING_TO_ASSERT = {
    "cleaning/segment_swap.py::discard_unfinished": "it removes what has the suffix of unfinished files, nothing else",
    "cleaning/segment_swap.py::finish": "which files there are is for the disk to say; `_finish` asserts what it makes",
    "log_directory.py::_claim": "`write_meta_properties` asserts what is written",
    "log_removal.py::remove_log": "a link may lead anywhere; of a directory only files of logs are removed",
    "partition_metadata.py::mark_removed": "a file that is shorter already was cut by a loss of power",
    "producer_snapshot.py::drop": "its caller says which ones go",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def changes_files(function: Function) -> bool:
    """Whether the function calls a disk or a file for a change."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in CHANGING
        and ast.unparse(node.func.value).rpartition(".")[2] in SEAMS
        for node in ast.walk(function)
    )


def asserts(function: Function) -> bool:
    return any(isinstance(node, ast.Assert) for node in ast.walk(function))


def silent() -> Iterator[str]:
    """Functions that change files and assert nothing."""
    for path in PYTHON:
        where = relative(path)
        if where.startswith(STORAGE) and where != MECHANISM:
            for node in nodes(parsed(path.read_text(encoding="utf-8"))):
                if isinstance(node, Function) and changes_files(node) and not asserts(node):
                    yield f"{where.removeprefix(STORAGE)}::{node.name}"


def test_what_changes_files_asserts_or_says_why_not() -> None:
    assert sorted(silent()) == sorted(NOTHING_TO_ASSERT), "assert what holds there, or give the reason above"


def test_a_change_of_files_is_found() -> None:
    [quiet] = parsed("def lose(self):\n    self._disk.remove(self.path)\n").body
    [loud] = parsed("def lose(self):\n    assert self.path\n    self.segment.file.truncate(0)\n").body
    [other] = parsed("def note(self):\n    self._disks.append(1)\n").body
    assert isinstance(quiet, Function)
    assert isinstance(loud, Function)
    assert isinstance(other, Function)
    assert (changes_files(quiet), asserts(quiet)) == (True, False)
    assert (changes_files(loud), asserts(loud)) == (True, True)
    assert not changes_files(other)
