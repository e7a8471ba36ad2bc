"""Every planted defect is found within its number of seeds: the simulation sees what it is for."""

from collections import Counter

import pytest

from tests.sim.cluster import Outcome
from tests.sim.teeth import ALL
from tests.sim.teething import Found, Tooth, bite

IN_EVERY_RUN = 10  # seeds; what takes more is for `make sim` and a patient machine


@pytest.mark.parametrize(
    "tooth", [tooth for tooth in ALL if tooth.seeds_max <= IN_EVERY_RUN], ids=lambda tooth: tooth.name
)
def test_a_planted_defect_is_found(tooth: Tooth, monkeypatch: pytest.MonkeyPatch) -> None:
    tooth.plant(monkeypatch)
    found = bite(tooth, tooth.seeds_to_play)
    assert found.objection, f"{tooth.what}: not found in {found.seeds} seeds"
    assert not found.accident, f"{tooth.what}: the patch fits no more: {found.outcome and found.outcome.failure}"


@pytest.mark.parametrize("tooth", ALL, ids=lambda tooth: tooth.name)
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
