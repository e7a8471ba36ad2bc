"""Plays mutants: one process imports every test, learns which tests run which lines, and forks for each mutant.

A child gives the live function the code of its mutant, runs the tests that run that statement, the quickest first, and
ends at the first failure. Hypothesis draws the same examples each time, and time is processor time, so a mutant comes
to the same end on every machine; one that goes on for far too long counts as noticed.
"""

import ast
import copy
import gc
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final

import pytest

from tools.mutants.operators import Mutant, functions_of

CPU_SECONDS_LEAST: Final = 3
CPU_FACTOR: Final = 4
SECONDS_MAX: Final = 180
MEMORY_BYTES_MAX: Final = 4 << 30
#: Marks of tests that need another program, and of those that plant defects of their own.
LEFT_OUT: Final = ("java", "node", "go", "kcat", "promtool", "root", "slow")

NOTICED, SURVIVED, NOT_PLANTED = 1, 0, 3
#: The name under which a function finds the recorder of its statements.
PROBE: Final = "__probe__"


@dataclass(slots=True)
class Outcome:
    """The fate of each mutant."""

    killed: list[Mutant] = field(default_factory=list)
    survived: list[Mutant] = field(default_factory=list)
    not_run: list[Mutant] = field(default_factory=list)  # no test runs that statement


@dataclass(slots=True, eq=False)
class Player:
    """A pytest plugin that plays mutants instead of a session. `trees` by module, as the mutants have them."""

    root: Path
    trees: dict[str, ast.Module]
    mutants: list[Mutant]
    jobs: int
    outcome: Outcome = field(default_factory=Outcome)
    broken: list[str] = field(default_factory=list)  # tests that fail without any mutant
    _tests: dict[tuple[str, int], list[pytest.Item]] = field(default_factory=dict)  # by module and line of a statement
    _hits: set[tuple[str, int]] = field(default_factory=set)
    _seconds: dict[str, float] = field(default_factory=dict)
    _functions: dict[tuple[str, str, int], list[FunctionType]] = field(default_factory=dict)
    _caches: list[Any] = field(default_factory=list)
    _children: dict[int, Mutant] = field(default_factory=dict)
    _is_child: bool = False

    def pytest_collection(self) -> None:
        """Collect the tests, with the same examples each time; a failing one need not be the smallest."""
        import hypothesis  # pytest has to come first, to rewrite what it asserts

        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile(
            "mutants", deadline=None, database=None, derandomize=True, phases=phases, print_blob=False
        )
        hypothesis.settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self._is_child:
            os._exit(NOTICED)
        if report.failed:
            self.broken.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = [test for test in session.items if not any(test.get_closest_marker(name) for name in LEFT_OUT)]
        self._find_functions({str(self.root / name): name for name in self.trees})
        restore = self._probe()
        for item in items:
            self._learn(item)
        restore()
        if not self.broken:
            gc.collect()
            gc.freeze()
            self._play()
        return True

    def _learn(self, item: pytest.Item) -> None:
        """Run a test, and record which statements it runs."""
        self._hits.clear()
        started = time.process_time()
        run(item)
        self._seconds[item.nodeid] = time.process_time() - started
        for place in self._hits:
            self._tests.setdefault(place, []).append(item)

    def _probe(self) -> Callable[[], None]:
        """Make every function of core/ record which of its statements run; returns a function that undoes this."""
        before = [(function, function.__code__) for functions in self._functions.values() for function in functions]
        codes = {name: compile(probed(name, tree), str(self.root / name), "exec") for name, tree in self.trees.items()}
        for (module, name, first_line), functions in self._functions.items():
            for function in functions:
                function.__globals__[PROBE] = self._hits.add
                function.__code__ = code_of(codes[module], name, first_line)

        def restore() -> None:
            for function, code in before:
                function.__code__ = code

        return restore

    def _find_functions(self, modules: Mapping[str, str]) -> None:
        gc.unfreeze()  # what is frozen is not among the objects that there are
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and is_planted_in(code := one.__code__, modules):
                key = (modules[code.co_filename], code.co_qualname, code.co_firstlineno)
                self._functions.setdefault(key, []).append(one)
            elif isinstance(one, _lru_cache_wrapper):
                self._caches.append(one)

    # --- playing ------------------------------------------------------------------------------------------------

    def _play(self) -> None:
        for number, mutant in enumerate(self.mutants):
            tests = self._tests_of(mutant)
            if not tests:
                self.outcome.not_run.append(mutant)
                say(f"no test runs: {mutant.name}")
                continue
            while len(self._children) >= self.jobs:
                self._reap()
            child = os.fork()
            if not child:
                self._be(mutant, tests)
            self._children[child] = mutant
            if number % 100 == 0:
                say(f"{number} of {len(self.mutants)} mutants played")
        while self._children:
            self._reap()

    def _tests_of(self, mutant: Mutant) -> list[pytest.Item]:
        found = self._tests.get((mutant.module, mutant.line), ())
        return sorted(found, key=lambda item: self._seconds[item.nodeid])

    def _reap(self) -> None:
        child, status = os.wait()
        mutant = self._children.pop(child)
        match os.waitstatus_to_exitcode(status):
            case 0:
                self.outcome.survived.append(mutant)
                say(f"survived: {mutant.name}")
            case 3:
                pass  # the mutant cannot be planted: the function would need other variables
            case _:
                self.outcome.killed.append(mutant)

    def _be(self, mutant: Mutant, tests: Iterable[pytest.Item]) -> None:
        """Run the mutant in a child process. Ends the process."""
        self._is_child = True
        try:
            seconds = sum(self._seconds[item.nodeid] for item in tests)
            cpu_seconds = int(CPU_FACTOR * seconds) + CPU_SECONDS_LEAST
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS_MAX)
            if not self._plant(mutant):
                os._exit(NOT_PLANTED)
            for item in tests:
                run(item)
            os._exit(SURVIVED)
        except BaseException:  # noqa: BLE001 - whatever a mistake comes to, it was noticed
            os._exit(NOTICED)

    def _plant(self, mutant: Mutant) -> bool:
        mutant.plant()
        path = str(self.root / mutant.module)
        module = compile(self.trees[mutant.module], path, "exec", dont_inherit=True)
        code = code_of(module, mutant.function, mutant.first_line)
        for cache in self._caches:
            cache.cache_clear()
        try:
            for function in self._functions[mutant.module, mutant.function, mutant.first_line]:
                function.__code__ = code
        except (KeyError, ValueError):
            return False
        return True


def is_planted_in(code: CodeType, modules: Collection[str]) -> bool:
    """Whether mutants can be planted in a function: it has to be defined in a module or a class of it."""
    return code.co_filename in modules and "<" not in code.co_qualname


def probed(module: str, tree: ast.Module) -> ast.Module:
    """The module, with a recording call before each statement in a function."""
    tree = copy.deepcopy(tree)
    for function, _ in functions_of(tree, ""):
        for node in [*ast.walk(function)]:
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list):
                    setattr(node, name, [line for statement in block for line in (word(module, statement), statement)])
    return tree


def word(module: str, statement: ast.stmt) -> ast.stmt:
    """The call which records that the statement is about to run."""
    place = ast.Tuple([ast.Constant(module), ast.Constant(statement.lineno)], ast.Load())
    call = ast.Call(ast.Name(PROBE, ast.Load()), [place], [])
    return ast.fix_missing_locations(ast.copy_location(ast.Expr(call), statement))


def say(line: str) -> None:
    """Print the progress, past the capture of pytest."""
    print(line, file=sys.__stderr__, flush=True)


def run(item: pytest.Item) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)


def code_of(code: CodeType, name: str, first_line: int) -> CodeType:
    """The code of a function inside a module's."""
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    for one in inner:
        if one.co_qualname == name and one.co_firstlineno == first_line:
            return one
    (outer,) = [
        found for found in inner if name.startswith(f"{found.co_qualname}.") and "<locals>" not in found.co_qualname
    ]
    return code_of(outer, name, first_line)
