"""A log on a disk that may lose power: what the machines that play with one have in common."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Protocol, TypeVar

from hypothesis.stateful import RuleBasedStateMachine, rule

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.storage.log import Log
from kavka_broker.storage.recovery import open_log
from tests.support.sim_disk import SimDisk

DIRECTORY = "/data/t-0"
SEEDS_A_BLOCK = 80


class LogOnADisk(RuleBasedStateMachine):
    """Its log is opened, rolled and checkpointed; subclasses write, and say what must hold."""

    CONFIG: LogConfig

    def __init__(self) -> None:
        super().__init__()
        self.disk = SimDisk()
        self.disk.make_directory("/data")
        self.disk.sync_directory("/data")
        self.checkpoint = 0
        self.log = self.open(recover=True)

    def open(self, *, recover: bool) -> Log:
        log = open_log(self.disk, DIRECTORY, self.CONFIG, recover=recover, recovery_point=self.checkpoint, now_ms=0)
        log.durability.on_recovery_point_lowered = self.write_checkpoint
        return log

    def write_checkpoint(self) -> None:
        self.checkpoint = self.log.recovery_point

    @rule()
    def checkpoint_recovery_point(self) -> None:
        self.write_checkpoint()

    @rule()
    def roll(self) -> None:
        if self.log.segments[-1].size_bytes:
            self.log.roll(0)


class Checked(Protocol):
    """A machine that can be asked at any time whether all holds."""

    def check(self) -> None: ...

    def teardown(self) -> None: ...


M = TypeVar("M", bound=Checked)
Step = tuple[str, Mapping[str, object]]


def play_by_chance(block: int, machine_of: Callable[[], M], steps: range, draw: Callable[[Random, M], Step]) -> None:
    """Plain chance finds what takes many steps in a row sooner than Hypothesis; a failure names its seed."""
    for seed in range(block * SEEDS_A_BLOCK, (block + 1) * SEEDS_A_BLOCK):
        random = Random(seed)
        machine = machine_of()
        for _ in range(random.choice(steps)):
            step, arguments = draw(random, machine)
            try:
                getattr(machine, step)(**arguments)
                machine.check()
            except (AssertionError, ValueError) as problem:
                raise AssertionError(f"seed={seed} at {step} {arguments}: {problem}") from problem
        machine.teardown()
