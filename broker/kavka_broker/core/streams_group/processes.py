"""The members of a streams group and the processes that they run in, as numbers."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Self

__all__ = ["NO_MEMBER", "Processes", "Room"]

NO_MEMBER: Final = -1


@dataclass(frozen=True, slots=True)
class Processes:
    """Members are numbered by their processes: those of a process follow each other."""

    of_member: Sequence[int]
    members: Sequence[range]  # of each process

    @classmethod
    def from_sizes(cls, sizes: Sequence[int]) -> Self:
        """Return processes with so many members each."""
        ends = accumulate(sizes)
        members = [range(end - size, end) for size, end in zip(sizes, ends, strict=True)]
        return cls([process for process, size in enumerate(sizes) for _ in range(size)], members)

    def count(self, per_member: Sequence[int]) -> list[int]:
        """Return the sums over the members of each process."""
        return [sum(per_member[member] for member in members) for members in self.members]


class Room:
    """How many more tasks each member may get."""

    def __init__(self, processes: Processes, quotas: Sequence[int]) -> None:
        self._of_member = list(quotas)
        self._turns = [deque(members) for members in processes.members]

    def take(self, member: int) -> bool:
        """Take room for a task; returns whether the member had any."""
        if member == NO_MEMBER or not self._of_member[member]:
            return False
        self._of_member[member] -= 1
        return True

    def take_in(self, process: int) -> int:
        """Take room of the members of a process in turns; returns the member, NO_MEMBER where none has any."""
        turns = self._turns[process]
        while turns:
            member = turns.popleft()
            if self.take(member):
                turns.append(member)
                return member
        return NO_MEMBER
