"""What holds for every test: how much Hypothesis draws, and which tests this machine cannot run."""

import gc
import os
from collections.abc import Generator
from typing import Final

import hypothesis
import pytest

from tests.support.processor_time import ProcessorTime
from tests.support.rota import leave_to_others
from tools.prerequisites import lacking

# `default` keeps `make check` short; HYPOTHESIS_PROFILE=thorough looks longer. A failure prints the
# line that repeats it (@reproduce_failure), so that a seed found elsewhere can be replayed here: docs/how-to/replay.md.
hypothesis.settings.register_profile("default", deadline=None, print_blob=True)
hypothesis.settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=2_000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


#: Objects between two searches for garbage, which with Python's own 700 are a sixth of the time.
COLLECT_AFTER: Final = 50_000
#: Of so many tests that failed it is said how to run them alone.
ALONE_MAX: Final = 5


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write what happened into the scenarios (tests/scripts)")


def pytest_configure(config: pytest.Config) -> None:
    os.environ["KAVKA_PROFILE"] = ""  # commands take no profile of who runs the tests
    config.pluginmanager.register(ProcessorTime())


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to other commits what takes turns, and skip, by name, what needs a program that is not here."""
    leave_to_others(items)
    skips = {lack.marker: pytest.mark.skip(reason=f"{lack.name} is lacking") for lack in lacking()}
    for item in items:
        for marker in skips.keys() & {mark.name for mark in item.iter_markers()}:
            item.add_marker(skips[marker])


def pytest_collection_finish() -> None:
    """Let no search for garbage look at what the tests are made of, and look seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let no search for garbage begin while a failure is told. That parses the test's file, and so may what ends with
    the garbage, as with an error in it; Python 3.11 cannot do both at once, and ended the suite without a name.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how to run each test that failed alone, as it was drawn here."""
    failed = [one.nodeid for kind in ("failed", "error") for one in terminalreporter.stats.get(kind, ())]
    seed = getattr(config.option, "randomly_seed", None)
    drawn = "" if seed is None else f" --randomly-seed={seed}"
    for nodeid in failed[:ALONE_MAX]:
        terminalreporter.write_line(f"alone: .venv/bin/pytest '{nodeid}'{drawn}")
