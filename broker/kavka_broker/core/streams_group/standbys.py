"""Which members of a streams group keep copies of the state of each task.

A task has its standbys in different processes, and none in that of its active task. First each process gets a quota:
one standby after the other goes where it makes the load per member least uneven. A process cannot have more than the
tasks that are not active there, and that alone bounds a quota. So quotas of the right sum can always be filled: where
a standby finds no process with room that lacks its task, another one moves there and makes room.
"""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final, NamedTuple

from kavka_broker.core.streams_group.processes import NO_MEMBER, Processes, Room

__all__ = ["place_standbys"]


def place_standbys(
    processes: Processes, active: Sequence[int], stateful: Sequence[int], hints: Sequence[Sequence[int]], replicas: int
) -> list[list[int]]:
    """Return the members with standbys of each task: as many as `replicas`, fewer where processes are. `active` has the
    member of each task, and `hints` those that have had its state, the best first.
    """
    replicas = min(replicas, len(processes.members) - 1)
    if replicas <= 0 or not stateful:
        return [[] for _ in active]
    placement = Placement(processes, active, stateful, replicas)
    placement.reserve(hints)
    for task in stateful:
        placement.keep(task, hints[task])
    placement.fill()
    return _by_member(processes, active, stateful, placement.standbys, hints)


LOOKED_AT_MAX: Final = 16
"""Tasks of which one makes room for another: rather one whose standby is new where it is."""


class Move(NamedTuple):
    """A task that gets a standby in another process, and the process that it leaves, None where it lacks one."""

    task: int
    source: int | None
    is_kept: bool


class Placement:
    """The processes of the standbys of each task, as far as they are placed."""

    def __init__(self, processes: Processes, active: Sequence[int], stateful: Sequence[int], replicas: int) -> None:
        self.standbys: list[list[int]] = [[] for _ in active]
        self._processes = processes
        self._active = [processes.of_member[member] for member in active]
        self._stateful = stateful
        self._replicas = replicas
        self._room = [0] * len(processes.members)
        self._kept = [0] * len(active)  # of each task, so many of its first standbys are where its state is
        self._next = [0] * len(processes.members)  # all stateful tasks before this one are in the process

    def _is_in(self, task: int, process: int) -> bool:
        return process == self._active[task] or process in self.standbys[task]

    def _put(self, task: int, process: int) -> None:
        self.standbys[task].append(process)
        self._room[process] -= 1

    def reserve(self, hints: Sequence[Sequence[int]]) -> None:
        """Give each process its quota. Of two with the same load it is the one that can keep a standby by it."""
        counts = [len(members) for members in self._processes.members]
        loads, most = [0] * len(counts), [len(self._stateful)] * len(counts)
        kept = [0] * len(counts)
        for process in self._active:
            loads[process] += 1
        for task in self._stateful:
            most[self._active[task]] -= 1
            for process in {self._processes.of_member[member] for member in hints[task] if member != NO_MEMBER}:
                kept[process] += process != self._active[task]

        def entry(process: int) -> tuple[float, bool, int]:
            # What one task more adds to the sum of (load * load / members): its least sum is the most even spread.
            cost = (2 * loads[process] + 1) / counts[process]
            return cost, self._room[process] >= kept[process], process

        heap = [entry(process) for process in range(len(counts)) if most[process]]
        heapify(heap)
        for _ in range(self._replicas * len(self._stateful)):
            process = heap[0][2]
            self._room[process] += 1
            loads[process] += 1
            if self._room[process] < most[process]:
                heapreplace(heap, entry(process))
            else:
                heappop(heap)

    def keep(self, task: int, members: Iterable[int]) -> None:
        """Place the standbys of a task where its state is, as far as there is room."""
        for member in members:
            if len(self.standbys[task]) == self._replicas:
                return
            if member != NO_MEMBER:
                process = self._processes.of_member[member]
                if self._room[process] and not self._is_in(task, process):
                    self._put(task, process)
                    self._kept[task] += 1

    def fill(self) -> None:
        """Place what is left where most room is."""
        heap = [(-room, process) for process, room in enumerate(self._room) if room]
        heapify(heap)
        for task in self._stateful:
            while len(self.standbys[task]) < self._replicas:
                passed = list[int]()
                while heap and self._is_in(task, heap[0][1]):
                    passed.append(heappop(heap)[1])
                if heap:
                    changed = heappop(heap)[1]
                    self._put(task, changed)
                else:
                    changed = passed.pop(0)
                    self._make_room(task, changed)
                for process in (*passed, changed):
                    if self._room[process]:
                        heappush(heap, (-self._room[process], process))

    def _make_room(self, task: int, process: int) -> None:
        """Fill a place in a process that has the task itself, so that it comes to be placed elsewhere, now or later.

        A task that is not in the process exists, as the quota is at most their number. If it has all of its standbys,
        one of them is in none of the processes that have the other task: of these there are as many at most, and this
        process is among them.
        """
        while self._is_in(self._stateful[self._next[process]], process):
            self._next[process] += 1
        first = self._next[process]
        others = self._stateful[first : first + LOOKED_AT_MAX]
        moves = [self._move(other, task) for other in others if not self._is_in(other, process)]
        other, source, _ = min(moves, key=lambda move: move.is_kept)
        if source is not None:
            self._kept[other] -= source in self.standbys[other][: self._kept[other]]
            self.standbys[other].remove(source)
            self.standbys[task].append(source)
        self._put(other, process)

    def _move(self, other: int, task: int) -> Move:
        """Find the standby of another task that would make room for one of this task."""
        placed = self.standbys[other]
        if len(placed) < self._replicas:
            return Move(other, None, is_kept=False)
        place = next(place for place in reversed(range(len(placed))) if not self._is_in(task, placed[place]))
        return Move(other, placed[place], is_kept=place < self._kept[other])


def _by_member(
    processes: Processes,
    active: Sequence[int],
    stateful: Sequence[int],
    standbys: Sequence[Sequence[int]],
    hints: Sequence[Sequence[int]],
) -> list[list[int]]:
    """Spread the standbys of each process over its members, so that the numbers of all their tasks differ little."""
    quotas = _member_quotas(processes, active, stateful, standbys, hints)
    room = Room(processes, quotas)
    placed: list[list[int]] = [[] for _ in active]
    left = list[tuple[int, int]]()
    for task in stateful:
        for process in standbys[task]:
            members = (member for member in hints[task] if member in processes.members[process])
            member = next(filter(room.take, members), NO_MEMBER)
            if member == NO_MEMBER:
                left.append((task, process))
            else:
                placed[task].append(member)
    for task, process in left:
        placed[task].append(room.take_in(process))
    return placed


def _member_quotas(
    processes: Processes,
    active: Sequence[int],
    stateful: Sequence[int],
    standbys: Sequence[Sequence[int]],
    hints: Sequence[Sequence[int]],
) -> list[int]:
    """Return how many standbys each member gets."""
    loads = [0] * len(processes.of_member)
    for member in active:
        loads[member] += 1
    kept = [0] * len(loads)
    counts = [0] * len(processes.members)
    for task in stateful:
        for process in standbys[task]:
            counts[process] += 1
            for member in hints[task]:
                kept[member] += member in processes.members[process]
    quotas = [0] * len(loads)
    for process, count in enumerate(counts):
        heap = [(loads[member], not kept[member], member) for member in processes.members[process]]
        heapify(heap)
        for _ in range(count):
            load, _, member = heap[0]
            quotas[member] += 1
            heapreplace(heap, (load + 1, quotas[member] >= kept[member], member))
    return quotas
