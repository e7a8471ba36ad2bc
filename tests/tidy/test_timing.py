"""No unit or property test depends on how long anything takes.

Who sleeps for a while and then looks passes on a quick machine and fails on a slow one, or the other way round. Tests
wait for what comes (`tests/support/waiting.py`), or play in simulated time. Limits are there for what never comes.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.test_code import dotted, imports_of, whole_name
from tests.tidy.tree import PYTHON, parsed, relative

WHERE = ("tests/unit/", "tests/property/")
SLEEPS = frozenset({"asyncio.sleep", "time.sleep"})
CLOCKS = frozenset({"time.monotonic", "time.monotonic_ns", "time.perf_counter", "time.perf_counter_ns"})
LIMITS = frozenset({"asyncio.timeout", "asyncio.wait_for"})
LIMIT_SECONDS_MIN = 30


def number_in(argument: ast.expr) -> float | None:
    """The figure that stands there, if one does."""
    match argument:
        case ast.Constant(int() | float() as value):
            return float(value)
    return None


def timed(source: str) -> Iterator[tuple[int, str]]:
    """What in a file depends on the time of day: the line, and why."""
    tree = parsed(source)
    imports = imports_of(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name, limit = whole_name(dotted(node.func), imports), number_in(node.args[-1]) if node.args else None
        if name in SLEEPS and limit != 0:
            yield node.lineno, "sleeps: wait with `until`, let `turns` go by, or `pass_seconds` of simulated time"
        elif name in CLOCKS:
            yield node.lineno, "measures: count turns or calls, or use the loop's time in a simulation"
        elif name in LIMITS and limit is not None and limit < LIMIT_SECONDS_MIN:
            yield node.lineno, f"has a limit below {LIMIT_SECONDS_MIN} s, which a slow machine may need"


def test_no_unit_test_depends_on_timing() -> None:
    found = [
        f"{relative(path)}:{line}: {why}"
        for path in PYTHON
        if relative(path).startswith(WHERE)
        for line, why in timed(path.read_text())
    ]
    assert not found, found


@pytest.mark.parametrize(
    "line",
    [
        "asyncio.sleep(0.01)",
        "asyncio.sleep(PAUSE_S)",
        "time.sleep(1)",
        "time.monotonic()",
        "asyncio.timeout(20)",
        "asyncio.wait_for(task, 1)",
    ],
)
def test_what_depends_on_timing_is_refused(line: str) -> None:
    assert [number for number, _ in timed(f"import asyncio, time\n{line}")] == [2]


@pytest.mark.parametrize(
    "line", ["asyncio.sleep(0)", "asyncio.timeout(60)", "asyncio.wait_for(task, 30)", "until(holds)"]
)
def test_what_waits_for_a_condition_is_taken(line: str) -> None:
    assert list(timed(f"import asyncio, time\n{line}")) == []
