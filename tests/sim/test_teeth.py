"""Every planted defect is found within its number of seeds: the simulation sees what it is for."""

import pytest

from tests.sim.teeth import ALL
from tests.sim.teething import Tooth, bite

IN_EVERY_RUN = 10  # seeds; what takes more is for `make sim` and a patient machine


@pytest.mark.parametrize(
    "tooth", [tooth for tooth in ALL if tooth.seeds_max <= IN_EVERY_RUN], ids=lambda tooth: tooth.name
)
def test_a_planted_defect_is_found(tooth: Tooth, monkeypatch: pytest.MonkeyPatch) -> None:
    tooth.plant(monkeypatch)
    found = bite(tooth, tooth.seeds_to_play)
    assert found.objection, f"{tooth.what}: not found in {found.seeds} seeds"


@pytest.mark.parametrize("tooth", ALL, ids=lambda tooth: tooth.name)
def test_a_rare_tooth_can_be_planted(tooth: Tooth, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that take too many seeds for every run too: what they patch may have moved."""
    tooth.plant(monkeypatch)


def test_there_are_enough_of_them() -> None:
    assert len(ALL) >= 70
