"""Classes of one subject, and functions that a caller can call without a manual.

A class has at most 25 methods and a function at most 7 parameters. What has more is listed with its number, and the
list only shrinks: nothing new enters it, no number grows, and what has come below the bound leaves it.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.tidy.tree import PYTHON, nodes, parsed, relative

METHODS_MAX: Final = 25
PARAMETERS_MAX: Final = 7
ROOMS: Final = ("broker/", "operator/", "cli/", "audit/")
GENERATED: Final = "broker/kavka_broker/protocol/messages/"
LARGE_CLASSES: Final = {
    "connection.py::Connection": 38,
    "durability.py::Durability": 28,
    "fetcher.py::Fetcher": 34,
    "log.py::Log": 31,
    "node.py::RaftNode": 36,
    "open_logs.py::OpenLogs": 35,
    "partition.py::Partition": 38,
    "segment.py::Segment": 38,
}
LONG_SIGNATURES: Final = {
    "durability.py::Durability.__init__": 8,
    "impact.py::forecast": 8,
    "listener.py::Listener.__init__": 9,
    "log.py::Log.__init__": 11,
    "node.py::RaftNode.__init__": 8,
    "partition.py::Partition.__init__": 8,
    "record.py::build_batch": 11,
    "recovery.py::open_log": 10,
    "registry.py::api": 12,
    "run.py::refresh": 9,
    "offset_expiration.py::OffsetExpiration.__init__": 8,
    "wiring.py::Wiring.__init__": 9,
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def methods(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Each class with the number of its methods."""
    for node in nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, sum(isinstance(part, Function) for part in node.body)


def parameters(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Each function with the number of its parameters, without the one that a method is called on."""
    for node in nodes(tree):
        for function in getattr(node, "body", ()) if isinstance(node, ast.Module | ast.ClassDef) else ():
            if isinstance(function, Function):
                found = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
                owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
                yield f"{owner}{function.name}", len(found) - (bool(owner) and found[:1] != [])


def above(bound: int, count: Mapping[str, int]) -> dict[str, int]:
    return {name: number for name, number in count.items() if number > bound}


def counted(count: str) -> dict[str, int]:
    """The largest number for each `file.py::name`."""
    found: dict[str, int] = {}
    for path in PYTHON:
        if relative(path).startswith(ROOMS) and not relative(path).startswith(GENERATED):
            tree = parsed(path.read_text())
            for name, number in methods(tree) if count == "methods" else parameters(tree):
                key = f"{Path(path).name}::{name}"
                found[key] = max(number, found.get(key, 0))
    return found


def grown(found: Mapping[str, int], listed: Mapping[str, int]) -> dict[str, int]:
    return {name: number for name, number in found.items() if number > listed.get(name, 0)}


def test_classes_have_one_subject() -> None:
    found = above(METHODS_MAX, counted("methods"))
    assert not grown(found, LARGE_CLASSES), f"more than {METHODS_MAX} methods: find the second object"
    assert not LARGE_CLASSES.keys() - found.keys(), "these are small enough: take them off the list"


def test_functions_have_few_parameters() -> None:
    found = above(PARAMETERS_MAX, counted("parameters"))
    assert not grown(found, LONG_SIGNATURES), f"more than {PARAMETERS_MAX} parameters: which of them are one thing?"
    assert not LONG_SIGNATURES.keys() - found.keys(), "these are short enough: take them off the list"


def test_what_is_too_large_is_found() -> None:
    names = "abcdefgh"
    tree = ast.parse(f"class C:\n def f(self, {', '.join(names)}): pass\ndef g({', '.join(names)}): pass")
    assert list(methods(tree)) == [("C", 1)]
    assert sorted(parameters(tree)) == [("C.f", len(names)), ("g", len(names))]
    assert grown({"C": 3, "D": 2}, {"D": 2}) == {"C": 3}
