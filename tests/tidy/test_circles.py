"""No file imports one that leads back to it, be it inside a function or for types only: two such files are one."""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.tidy.tree import ROOT, nodes, parsed

PACKAGE = "kavka_broker"


def imported(source: str) -> Iterator[str]:
    """The names of modules of the broker that may be imported by this text; of some only their package is there."""
    for node in nodes(parsed(source)):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith(f"{PACKAGE}."):
            module = node.module.removeprefix(f"{PACKAGE}.")
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def sources() -> dict[str, str]:
    """The text of each file of the broker, by the name of its module."""
    root = ROOT / "broker" / PACKAGE
    files = sorted(path for path in root.rglob("*.py") if path.name != "__init__.py")
    return {".".join(path.relative_to(root).with_suffix("").parts): path.read_text() for path in files}


def circle_of(texts: Mapping[str, str]) -> list[str]:
    """A circle of imports; empty where there is none."""
    graph = {name: [other for other in imported(text) if other in texts] for name, text in texts.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


def test_no_files_import_each_other() -> None:
    assert not circle_of(sources())


@pytest.mark.parametrize("where", ["", "def later():\n    ", "if TYPE_CHECKING:\n    "])
def test_a_circle_is_found_wherever_its_imports_stand(where: str) -> None:
    texts = {
        "a": f"from {PACKAGE}.b import x",
        "b": f"{where}from {PACKAGE}.d import e",
        "d.e": f"from {PACKAGE}.a import y",
    }
    assert set(circle_of(texts)) == {"a", "b", "d.e"}
