"""A seed is the same world on any machine: of 32 bits or 64, with whatever order of hashes and addresses."""

import ast
import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sim.loop import SimLoop
from tests.sim.node import SimClock
from tests.sim.test_loop import play

ROOT = Path(__file__).parents[2]
CODE = [*sorted((ROOT / "broker" / "kavka_broker").rglob("*.py")), *sorted((ROOT / "tests" / "sim").glob("*.py"))]
BYTE_ORDERS = ("<", ">", "!")
SAME_EVERYWHERE = tuple("bBqQfd")  # the types of `array` that are as wide on any machine
OF_STRUCT = ("Struct", "calcsize", "pack", "pack_into", "unpack", "unpack_from", "iter_unpack")


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """By the last part of the name; those within `__hash__` are somebody's own."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "__hash__":
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield (node.func.id if isinstance(node.func, ast.Name) else node.func.attr), node
        yield from calls(node)


def leftmost(node: ast.expr) -> str | None:
    while isinstance(node, ast.BinOp):
        node = node.left
    if isinstance(node, ast.JoinedStr):
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def has_arrays(tree: ast.AST) -> bool:
    return any(isinstance(node, ast.ImportFrom) and node.module == "array" for node in ast.walk(tree))


def foreign(tree: ast.AST) -> Iterator[str]:
    """What depends on the machine: addresses, hashes, sizes of its own types."""
    knows_arrays = has_arrays(tree)
    for name, call in calls(tree):
        if knows_arrays and name == "array" and (kind := leftmost(call.args[0])) not in SAME_EVERYWHERE:
            yield f"{call.lineno}: array({kind!r})"
        if name in ("id", "hash") and isinstance(call.func, ast.Name):
            yield f"{call.lineno}: {name}()"
        layout = leftmost(call.args[0]) if call.args and name in OF_STRUCT else None
        if layout is not None and not layout.startswith(BYTE_ORDERS):
            yield f"{call.lineno}: {name}({layout!r}) without a byte order"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("maxsize", "byteorder"):
            yield f"{node.lineno}: {node.attr}"
        if isinstance(node, ast.Import) and "array" in [alias.name for alias in node.names]:
            yield f"{node.lineno}: array, whose name hides which of its types are used"


def test_nothing_that_is_simulated_depends_on_the_machine() -> None:
    found = [f"{path.relative_to(ROOT)}:{what}" for path in CODE for what in foreign(ast.parse(path.read_text()))]
    assert not found


@pytest.mark.parametrize(
    "line",
    [
        *("x = id(y)", "x = hash(y)", "Struct('ii')", "struct.pack('l', 1)", "calcsize('q' + x)", "sys.maxsize"),
        *("from array import array; array('l')", "from array import array; array(kind)", "import array"),
    ],
)
def test_a_line_that_reaches_another_machine_is_found(line: str) -> None:
    assert list(foreign(ast.parse(line)))


def test_times_are_whole_nanoseconds() -> None:
    """Their last bits would be those of the machine's own arithmetic."""
    chance = random.Random(1)
    moments: list[tuple[float, float]] = []

    async def scenario(loop: SimLoop) -> None:
        clock = SimClock(loop)
        clock.run_at(1.0003)
        for _ in range(1_000):
            await asyncio.sleep(chance.uniform(0.05, 2.0) / 1000)
            moments.append((loop.time(), clock.monotonic_ms()))
            assert loop.after(third := chance.random() / 3) == round(loop.time() + third, 9)

    play(scenario)
    assert all(seconds == round(seconds, 9) and ms == round(ms, 6) for seconds, ms in moments)
