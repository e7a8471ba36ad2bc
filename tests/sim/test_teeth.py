"""Every planted defect is found within its number of seeds: the simulation sees what it is for.

They judge the simulation, not the broker, and the slowest of them play ten seeds each: a commit plays a part of them in
`make test`, another commit another, and `make test-all` plays all.
"""

from collections import Counter

import pytest

from tests.sim.cluster import Outcome
from tests.sim.teeth import ALL
from tests.sim.teething import Found, Tooth, bite
from tests.support.drawn import in_turn

IN_EVERY_RUN = 10  # seeds; what takes more is for `make sim` and a patient machine
PARTS = 16  # of which a commit plays one


def name(tooth: Tooth) -> str:
    return tooth.name


@pytest.mark.parametrize("tooth", in_turn([tooth for tooth in ALL if tooth.seeds_max <= IN_EVERY_RUN], PARTS, name))
def test_a_planted_defect_is_found(tooth: Tooth, monkeypatch: pytest.MonkeyPatch) -> None:
    tooth.plant(monkeypatch)
    found = bite(tooth, tooth.seeds_to_play)
    assert found.objection, f"{tooth.what}: not found in {found.seeds} seeds"
    assert not found.accident, f"{tooth.what}: the patch fits no more: {found.outcome and found.outcome.failure}"


@pytest.mark.parametrize("tooth", ALL, ids=name)
def test_a_rare_tooth_can_be_planted(tooth: Tooth, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that take too many seeds for every run too: what they patch may have moved."""
    tooth.plant(monkeypatch)


@pytest.mark.parametrize(
    ("failure", "accident"),
    [
        ("node1.1: TypeError('f() takes 1 positional argument')", "TypeError('f() takes 1 positional argument')"),
        ("nobody caught: a task\nTraceback\nAttributeError: no 'x'\n", "AttributeError: no 'x'"),
        ("node3.60: AssertionError('alice has no credential 1 to take away')", ""),
        ("LogMatching: node1 follows t-0", ""),
        (None, ""),
    ],
)
def test_an_error_of_the_patch_itself_is_told_apart(failure: str | None, accident: str) -> None:
    nothing: Counter[str] = Counter()
    outcome = Outcome(1, failure, "", 0, 0.0, 0, nothing, nothing, nothing, ())
    assert Found(ALL[0], 1, outcome).accident == accident


def test_there_are_enough_of_them() -> None:
    assert len(ALL) >= 70
