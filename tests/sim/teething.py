"""How a planted defect is looked for: what is played, and which objection counts.

Each defect replaces one rule of the broker by what somebody might have written instead, in the test's process only;
nothing in the broker can be switched. `seeds_max` is how many seeds we allow for the finding, of those that `storm`
draws from the kinds of fault named here: the test fails when the tooth has become blunt.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol

from tests.sim.cluster import Outcome, Simulation
from tests.sim.former_decisions import ONE_DECISION
from tests.sim.handing_over import HANDOVERS_A_TURN
from tests.sim.playbook import settings as settings_of
from tests.sim.shapes import shape_of
from tests.sim.storm import storm


class Patch(Protocol):
    """pytest's `monkeypatch`, or what stands in for it."""

    def setattr(self, target: Any, name: str, value: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Tooth:
    """A planted defect. `topic` and `settings` make its place likely to be visited."""

    name: str
    what: str
    plant: Callable[[Patch], None]
    kinds: tuple[str, ...]
    seeds_max: int
    is_synced: bool | None = None  # None: as the seed draws it
    settings: tuple[tuple[str, str], ...] = ()
    changes: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    is_besieged: bool = False
    directories: int = 1
    is_hectic: bool = False  # clients never rest for long; else as the seed draws it
    handovers_a_turn: int = HANDOVERS_A_TURN
    is_strained: bool = False
    min_isr: int = 2  # with 3 whoever stops is an eligible leader at once
    has_foreign: bool = False
    has_releases: bool = False
    seeds: tuple[int, ...] = ()  # seeds as they are that visit its place; else those from 1 on are played

    @property
    def seeds_to_play(self) -> Sequence[int]:
        """Return the seeds within which it has to be found."""
        return self.seeds or range(1, self.seeds_max + 1)


TEETH: Final[list[Tooth]] = []


def tooth(
    what: str,
    kinds: str,
    seeds_max: int = 0,
    *,
    seeds: str = "",
    is_synced: bool | None = None,
    changes: str = "",
    workloads: str = "",
    besieged: bool = False,
    directories: int = 1,
    hectic: bool = False,
    handovers_a_turn: int = HANDOVERS_A_TURN,
    strained: bool = False,
    min_isr: int = 2,
    foreign: bool = False,
    releases: bool = False,
    **settings: str,
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """Register a defect, to be found within `seeds_max` seeds, or these `seeds`; settings with underscores for dots."""

    def register(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
        pairs = tuple((key.replace("_", "."), value) for key, value in settings.items())
        played = (
            tuple(changes.split()),
            tuple(workloads.split()),
            besieged,
            directories,
            hectic,
            handovers_a_turn,
            strained,
            min_isr,
            foreign,
            releases,
            tuple(map(int, seeds.split())),
        )
        name, count = plant.__name__.replace("_", " "), seeds_max or len(seeds.split())
        TEETH.append(Tooth(name, what, plant, tuple(kinds.split()), count, is_synced, pairs, *played))
        return plant

    return register


# --- finding them -----------------------------------------------------------------------------------------------------


#: What a patch raises that does not fit the code any more. It says nothing of what the simulation sees.
ACCIDENT: Final = re.compile(r"\b(TypeError|AttributeError|NameError|UnboundLocalError)\b[:(].*")


@dataclass(frozen=True, slots=True)
class Found:
    """How a tooth was found, if it was."""

    tooth: Tooth
    seeds: int
    outcome: Outcome | None

    @property
    def objection(self) -> str:
        """Which invariant or rule objected."""
        failure = None if self.outcome is None else self.outcome.failure
        if failure is None:
            return ""
        objection = failure.partition(":")[0]
        return "an unexpected error" if objection.startswith("node") else objection

    @property
    def accident(self) -> str:
        """The error of the patch itself, if it fell by that, and neither by an invariant nor by an assertion."""
        failure = None if self.outcome is None else self.outcome.failure
        found = ACCIDENT.search(failure or "")
        return "" if found is None else found.group()


def bite(tooth: Tooth, seeds: Sequence[int]) -> Found:
    """Play these seeds, with the defect planted already, until one fails."""
    for count, seed in enumerate(seeds, 1):
        outcome = play(tooth, seed)
        if outcome.failure is not None:
            return Found(tooth, count, outcome)
    return Found(tooth, len(seeds), None)


def play(tooth: Tooth, seed: int) -> Outcome:
    if not tooth.kinds:  # a seed as it is
        return Simulation(seed, shape_of(seed), storm).run()
    shape = shape_of(seed, 3)
    of_workloads = settings_of(seed, tooth.workloads)
    of_faults = ONE_DECISION if "former_decision" in tooth.kinds else {}
    configs = dict(shape.topic_configs)
    if tooth.is_synced is not None:
        configs.pop("flush_messages", None)
    if tooth.is_synced:
        configs["flush_messages"] = "1"
    shape = replace(
        shape,
        settings={**shape.settings, **of_faults, **of_workloads, **dict(tooth.settings)},
        topic_configs=configs,
        changes=tooth.changes,
        workloads=tooth.workloads,
        is_besieged=tooth.is_besieged,
        directories=tooth.directories,
        pace=1 if tooth.is_hectic else shape.pace,
        min_isr=tooth.min_isr,
        has_foreign=tooth.has_foreign,
        has_releases=tooth.has_releases,
        has_voters_in_log=False,
        handovers_a_turn=tooth.handovers_a_turn,
        is_strained=tooth.is_strained,
    )
    return Simulation(seed, shape, partial(storm, kinds=tooth.kinds)).run()


class Planted:
    """What `monkeypatch` does, for one defect after the other."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def setattr(self, target: Any, name: str, value: Any) -> None:
        self._before.append((target, name, target.__dict__[name]))
        setattr(target, name, value)

    def undo(self) -> None:
        for target, name, value in reversed(self._before):
            setattr(target, name, value)
        self._before.clear()
