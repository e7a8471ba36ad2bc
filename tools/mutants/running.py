"""Plays mutants: one process imports every test, learns which tests run which lines, and forks for each mutant.

A child gives the live function the code of its mutant, runs the tests that run that statement, the quickest first, and
ends at the first failure. Hypothesis draws the same examples each time, and time is processor time, so a mutant comes
to the same end on every machine; one that goes on for far too long counts as noticed.
"""

import ast
import gc
import os
import resource
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

import pytest

from tools.mutants.operators import Mutant

CPU_SECONDS_LEAST: Final = 3
CPU_FACTOR: Final = 4
SECONDS_MAX: Final = 180
MEMORY_BYTES_MAX: Final = 4 << 30
#: Tests that need another program, and those that plant defects of their own.
LEFT_OUT: Final = ("java", "node", "go", "kcat", "promtool", "root", "slow")

NOTICED, SURVIVED, NOT_PLANTED = 1, 0, 3


@dataclass(slots=True)
class Outcome:
    """What became of each mutant."""

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
    _lines: dict[str, dict[int, list[pytest.Item]]] = field(default_factory=dict)
    _seconds: dict[str, float] = field(default_factory=dict)
    _functions: dict[tuple[str, str, int], list[FunctionType]] = field(default_factory=dict)
    _caches: list[Any] = field(default_factory=list)
    _children: dict[int, Mutant] = field(default_factory=dict)
    _is_child: bool = False

    def pytest_collection(self) -> None:
        """The same examples each time; one that fails is enough, it need not be the smallest."""
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
        items = [one for one in session.items if not any(one.get_closest_marker(name) for name in LEFT_OUT)]
        modules = {str(self.root / name): name for name in self.trees}
        for item in items:
            self._learn(item, modules)
        self._find_functions(modules)
        if not self.broken:
            gc.collect()
            gc.freeze()
            self._play()
        return True

    def _learn(self, item: pytest.Item, modules: dict[str, str]) -> None:
        """Run a test, and note which lines it runs."""
        ran: dict[str, set[int]] = {path: set() for path in modules}

        def on_call(frame: FrameType, event: str, argument: object) -> Any:
            lines = ran.get(frame.f_code.co_filename)
            if lines is None:
                return None

            def on_line(frame: FrameType, event: str, argument: object) -> Any:
                lines.add(frame.f_lineno)
                return on_line

            return on_line

        started = time.process_time()
        sys.settrace(on_call)
        try:
            run(item)
        finally:
            sys.settrace(None)
        self._seconds[item.nodeid] = time.process_time() - started
        for path, lines in ran.items():
            for line in lines:
                self._lines.setdefault(modules[path], {}).setdefault(line, []).append(item)

    def _find_functions(self, modules: dict[str, str]) -> None:
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__.co_filename in modules:
                code = one.__code__
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
        by_line = self._lines.get(mutant.module, {})
        found = {item.nodeid: item for line in mutant.lines for item in by_line.get(line, ())}
        return sorted(found.values(), key=lambda item: self._seconds[item.nodeid])

    def _reap(self) -> None:
        child, status = os.wait()
        mutant = self._children.pop(child)
        match os.waitstatus_to_exitcode(status):
            case 0:
                self.outcome.survived.append(mutant)
                say(f"survived: {mutant.name}")
            case 3:
                pass  # it cannot be: the function would need other variables
            case _:
                self.outcome.killed.append(mutant)

    def _be(self, mutant: Mutant, tests: Iterable[pytest.Item]) -> None:
        """The life of a child. Ends the process."""
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


def say(line: str) -> None:
    """How far it is, past the capture of pytest."""
    print(line, file=sys.__stderr__, flush=True)


def run(item: pytest.Item) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)


def code_of(code: CodeType, name: str, first_line: int) -> CodeType:
    """The code of a function inside of a module's."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    for one in inner:
        if one.co_qualname == name and one.co_firstlineno == first_line:
            return one
    (outer,) = [one for one in inner if name.startswith(f"{one.co_qualname}.") and "<locals>" not in one.co_qualname]
    return code_of(outer, name, first_line)
