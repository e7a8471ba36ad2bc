"""Tests ask public faces. What still reaches for the inside of another object is counted, and its number only falls.

A read of a private name often hides a question that the object should answer, and a patched name one that it should be
given. Planted defects (modules `teeth` and `test_teeth`) break the inside on purpose, and do not count.
"""

import ast
from collections.abc import Callable, Iterator
from typing import Final

from tests.tidy.tree import PYTHON, nodes, parsed, relative

PRIVATE_READS_MAX: Final = 130
PATCHES_MAX: Final = 177
#: Names with an underscore that their libraries make public: those of named tuples, of `os` and `sys`.
PUBLIC: Final = {"_asdict", "_fields", "_make", "_replace", "_current_frames", "_exit", "_getframe"}
OWN: Final = {"self", "cls"}
PATCHES: Final = {"monkeypatch", "patch"}


def private_reads(tree: ast.Module) -> Iterator[int]:
    """The lines that name a private attribute of another object than the one whose method it is."""
    for node in nodes(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not is_own(node.value):
            yield node.lineno


def is_private(name: str) -> bool:
    """Whether a name is private; codes of errors, as librdkafka has them, are written in capitals."""
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC and not name[1:].isupper()


def is_own(value: ast.expr) -> bool:
    match value:
        case ast.Name(name):
            return name in OWN
        case ast.Call(ast.Name("super")):
            return True
    return False


def patches(tree: ast.Module) -> Iterator[int]:
    """The lines that put something else in the place of a name while a test runs; what a process reads is no such."""
    for node in nodes(tree):
        match node:
            case ast.Call(args=[ast.Name("sys"), ast.Constant("stdin"), *_]):
                pass
            case ast.Call(ast.Attribute(ast.Name(name), "setattr" | "delattr")) if name in PATCHES:
                yield node.lineno


def counted(found_in: Callable[[ast.Module], Iterator[int]]) -> dict[str, int]:
    """How many each module of the tests has, the most first."""
    found: dict[str, int] = {}
    for path in PYTHON:
        name = relative(path)
        if name.startswith("tests/") and not path.name.startswith(("teeth", "teething", "test_teeth")):
            found[name] = sum(1 for _ in found_in(parsed(path.read_text())))
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def judge(found: dict[str, int], most: int, what: str) -> None:
    """Raise an assertion where there are more than the bound, or fewer, so that the bound falls with them."""
    count = sum(found.values())
    first = ", ".join(f"{name} {number}" for name, number in list(found.items())[:5])
    assert count <= most, f"{count} {what}, {most} are allowed: {first}"
    assert count == most, f"{count} {what}: lower the bound from {most}"


def test_private_names_of_others_are_read_ever_less() -> None:
    judge(counted(private_reads), PRIVATE_READS_MAX, "reads of private names in tests")


def test_names_are_patched_ever_less() -> None:
    judge(counted(patches), PATCHES_MAX, "patched names in tests")


def test_what_reaches_inside_is_found() -> None:
    tree = ast.parse(
        "self._own\nsuper()._own\nother._inside\nrow._replace(a=1)\nKafkaError._PARTITION_EOF\nmodule.__name__\n"
        "monkeypatch.setattr(module, 'NAME', 1)\npatch.delattr(module, 'NAME')\nmonkeypatch.setenv('NAME', '1')\n"
        "monkeypatch.setattr(sys, 'stdin', text)"
    )
    assert (list(private_reads(tree)), list(patches(tree))) == ([3], [7, 8])
