"""The shape of the code, as far as a linter does not hold it.

Lengths may only shrink: a function that is too long is listed with its length, and the list fails as soon as the
function is shorter than it says. So an exception is granted once, by a line in a diff, and never grows. Files have no
bound: one concern a file, whatever its length.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.tidy.tree import PYTHON, files, nodes, parsed, relative
from tools.house_measures import silent

FUNCTION_LINES_MAX = 70
LINE_MAX = 120

# path::function: lines. Only smaller figures, please.
LONG_FUNCTIONS: dict[str, int] = {}

MARKERS = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def unused(test: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The functions that are defined in a test and never named again: a scenario that nothing runs cannot fail."""
    made = [node for node in test.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    named = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    return [node.name for node in made if not node.decorator_list and node.name not in named]


def test_what_a_test_defines_it_runs() -> None:
    found = {
        f"{relative(path)}::{function.name}": names
        for path in PYTHON
        if path.name.startswith("test_")
        for function in functions(parsed(path.read_text()))
        if (names := unused(function))
    }
    assert found == {}, "never run: asyncio.run(scenario())"


def test_a_scenario_that_nothing_runs_is_found() -> None:
    lines = "def test_it():\n    async def scenario():\n        assert False\n"
    test = next(functions(ast.parse(lines)))
    assert unused(test) == ["scenario"]
    run = next(functions(ast.parse(f"{lines}    asyncio.run(scenario())")))
    assert unused(run) == []


def test_functions_are_short() -> None:
    too_long = {
        f"{relative(path)}::{node.name}": lines_of(node)
        for path in PYTHON
        for node in functions(parsed(path.read_text()))
        if lines_of(node) > FUNCTION_LINES_MAX
    }
    assert too_long == LONG_FUNCTIONS, (
        f"more than {FUNCTION_LINES_MAX} lines: split the function; the list only shrinks"
    )


def test_lines_are_short() -> None:
    too_long = [
        f"{relative(path)}:{number}: {len(line)}"
        for path in PYTHON
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > LINE_MAX
    ]
    assert not too_long, f"more than {LINE_MAX} characters"


def test_nothing_is_left_for_later() -> None:
    left = [
        f"{relative(path)}:{number}: {marker}"
        for path in PYTHON
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for marker in MARKERS
        if re.search(rf"\b{marker}\b", line)
    ]
    assert not left, "do it, or open an issue"


BROKER = "broker/kavka_broker/"
BANNED = (
    # (call, where, where it may stand, what to write instead)
    ("print", BROKER, (f"{BROKER}cli.py",), "the logger of kavka_broker.logs"),
    ("time.time", BROKER, (f"{BROKER}runtime/",), "the clock that is handed in (kavka_broker.interfaces.Clock)"),
    (
        "time.time_ns",
        BROKER,
        (f"{BROKER}runtime/",),
        "the clock that is handed in (kavka_broker.interfaces.Clock)",
    ),
    (
        "time.monotonic",
        BROKER,
        (f"{BROKER}runtime/",),
        "the clock that is handed in (kavka_broker.interfaces.Clock)",
    ),
    (
        "time.perf_counter",
        BROKER,
        (f"{BROKER}runtime/",),
        "the clock that is handed in (kavka_broker.interfaces.Clock)",
    ),
    ("time.sleep", BROKER, (), "timers.after, or asyncio.sleep"),
    ("asyncio.wait", "", (), "asyncio.TaskGroup: a set of tasks has no order that a seed could repeat"),
    ("uuid.uuid4", BROKER, (f"{BROKER}runtime/", f"{BROKER}cli.py"), "an id that is handed in"),
    ("os._exit", "", (f"{BROKER}runtime/", "tests/", "tools/mutants/"), "raise InvariantViolation, or SystemExit"),
    ("breakpoint", "", (), "nothing"),
)


def dotted(node: ast.expr) -> str:
    """`a.b.c` of a call; an empty string for anything less plain."""
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(value, attribute) if inner := dotted(value):
            return f"{inner}.{attribute}"
    return ""


def whole_name(name: str, imports: Mapping[str, str]) -> str:
    """The name with what stands for a module, or for a part of one, written out."""
    first, dot, rest = name.partition(".")
    return f"{imports.get(first, first)}{dot}{rest}"


def imports_of(tree: ast.Module) -> dict[str, str]:
    """Which name of a file stands for what: `from time import monotonic as now` makes `now` time.monotonic."""
    found: dict[str, str] = {}
    for node in nodes(tree):
        match node:
            case ast.Import(names):
                found |= {one.asname: one.name for one in names if one.asname}
            case ast.ImportFrom(str(module), names, 0):
                found |= {one.asname or one.name: f"{module}.{one.name}" for one in names}
    return found


def calls_in(source: str) -> list[tuple[str, int]]:
    """Each plain call with its whole name, and its line."""
    tree = parsed(source)
    imports = imports_of(tree)
    calls = [node for node in nodes(tree) if isinstance(node, ast.Call)]
    return [(whole_name(dotted(node.func), imports), node.lineno) for node in calls]


@cache
def calls_of(path: Path) -> list[tuple[str, int]]:
    return calls_in(path.read_text())


@pytest.mark.parametrize(
    "source",
    ["import time\ntime.monotonic()", "import time as t\nt.monotonic()", "from time import monotonic\nmonotonic()",
     "from time import monotonic as now\nnow()"],
)  # fmt: skip
def test_a_call_is_known_by_any_of_its_names(source: str) -> None:
    assert calls_in(source) == [("time.monotonic", 2)]


@pytest.mark.parametrize(("call", "where", "allowed", "instead"), BANNED, ids=[ban[0] for ban in BANNED])
def test_a_banned_call_stands_nowhere(call: str, where: str, allowed: tuple[str, ...], instead: str) -> None:
    found = [
        f"{relative(path)}:{line}"
        for path in PYTHON
        if relative(path).startswith(where) and not (allowed and relative(path).startswith(allowed))
        for name, line in calls_of(path)
        if name == call
    ]
    assert not found, f"{call}: write {instead}"


def test_every_task_is_kept() -> None:
    """A task that nobody holds may be collected while it runs, and its exception is seen by nobody."""
    dropped = [
        f"{relative(path)}:{node.lineno}"
        for path in PYTHON
        for node in nodes(parsed(path.read_text()))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and dotted(node.value.func).endswith("create_task")
        and dotted(node.value.func).split(".")[0] in {"asyncio", "loop", "self"}
    ]
    assert not dropped, "keep the task: use a TaskGroup, or put it where its end is seen"


def test_the_broker_starts_every_module_with_its_theory() -> None:
    silent = [
        relative(path)
        for path in PYTHON
        if relative(path).startswith(f"{BROKER}core/") and not ast.get_docstring(parsed(path.read_text()))
    ]
    assert not silent, "a module of the core says its rule at its head"


def test_no_directory_of_the_machine_is_named() -> None:
    """Neither this machine's paths nor a package registry's host belong in the project."""
    hosts = (
        "pypi." + "org",
        "files.python" + "hosted",
        "registry." + "npmjs",
        "repo1." + "maven",
        "repo.maven." + "apache",
    )
    paths = ("/" + "work/", "/" + "root/", "/tmp/" + "kavka", "sha" + "red/")
    found = [
        f"{relative(path)}: {name}"
        for path in files()
        for name in (*hosts, *paths)
        if name in path.read_text(errors="replace")
    ]
    assert not found


def test_public_functions_say_what_they_raise() -> None:
    """The rule of CONTRIBUTING, as `tools.house_measures` counts it; what another function raises is not seen."""
    paths = [path for path in PYTHON if relative(path).startswith(("broker/", "operator/", "cli/"))]
    assert paths
    found = [f"{relative(path)}: {name}" for path in paths for name in silent(parsed(path.read_text()))]
    assert not found, "say 'Raises X' in the docstring"


def nameless(source: str) -> list[int]:
    """The lines with a variable that is called `each` or `one`, and not as the thing that it holds."""
    names = [node for node in nodes(parsed(source)) if isinstance(node, ast.Name | ast.arg)]
    return sorted(
        node.lineno for node in names if (node.id if isinstance(node, ast.Name) else node.arg) in {"each", "one"}
    )


def test_variables_carry_the_name_of_the_thing() -> None:
    assert nameless("[each for each in nodes]\ndef f(one): pass\nnode = 1") == [1, 1, 2]
    rooms = ("broker/", "operator/", "cli/", "tests/sim/")
    # In `@api(..., each=...)` it is the noun: how a request divides into its elements.
    paths = [path for path in PYTHON if relative(path).startswith(rooms) and path.name != "registry.py"]
    assert paths
    assert not [f"{relative(path)}:{line}" for path in paths for line in nameless(path.read_text())]
