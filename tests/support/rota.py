"""Files of tests that take turns. Each tells a long story with real processes, and seldom changes.

`make test` plays one group of them, which the commit draws, and `make test-all` plays all. A file weighs what each run
says of it, in seconds of a processor (`tests/support/processor_time.py`); the groups weigh about the same.
"""

from typing import Final

import pytest

from tests.support.drawn import is_turn

GROUPS: Final[tuple[tuple[str, ...], ...]] = (
    (
        "tests/kube/test_dying.py",
        "tests/kube/test_drain.py",
        "tests/kube/test_many.py",
    ),
    (
        "tests/kube/test_ephemeral.py",
        "tests/kube/test_resizing.py",
        "tests/kube/test_api_faults.py",
    ),
)


def resting() -> frozenset[str]:
    """The files that this commit leaves to others."""
    return frozenset(file for number, group in enumerate(GROUPS) if not is_turn(number, len(GROUPS)) for file in group)


def leave_to_others(items: list[pytest.Item]) -> None:
    """Mark the tests of resting files `extended`."""
    files = resting()
    for item in items:
        if item.nodeid.partition("::")[0] in files:
            item.add_marker(pytest.mark.extended)
