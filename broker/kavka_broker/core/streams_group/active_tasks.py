"""Which member of a streams group runs each task.

A process gets its share by the number of its members, rounded up or down, and a member gets its share of that. Shares
are rounded up where more tasks can stay by it.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from kavka_broker.core.streams_group.processes import NO_MEMBER, Processes, Room

__all__ = ["place_active"]


def place_active(
    processes: Processes, former: Sequence[int], standbys: Sequence[Sequence[int]], dealt: Iterable[int]
) -> list[int]:
    """Return the member of each task. `former` has the last one, `standbys` the members with a copy of its state, and
    `dealt` is the order in which tasks are dealt out that can stay nowhere.
    """
    held = [0] * len(processes.of_member)
    for member in former:
        if member != NO_MEMBER:
            held[member] += 1
    room = Room(processes, active_quotas(len(former), processes, held))
    placed = [member if room.take(member) else NO_MEMBER for member in former]
    for task, member in enumerate(former):
        if placed[task] == NO_MEMBER and member != NO_MEMBER:
            placed[task] = room.take_in(processes.of_member[member])
    for task, members in enumerate(standbys):
        if placed[task] == NO_MEMBER:
            placed[task] = _first_with_room(members, processes, room)
    _deal((task for task in dealt if placed[task] == NO_MEMBER), placed, processes, room)
    return placed


def active_quotas(tasks: int, processes: Processes, held: Sequence[int]) -> list[int]:
    """Return how many tasks each member gets. `held` says how many each had."""
    shares = [divmod(tasks * len(members), len(held)) for members in processes.members]
    quotas = [share for share, _ in shares]
    parts = [process for process, (_, rest) in enumerate(shares) if rest]
    gains = [_gains(quotas[process], [held[member] for member in processes.members[process]]) for process in parts]
    by_gain = sorted(range(len(parts)), key=lambda at: gains[at], reverse=True)
    for at in by_gain[: tasks - sum(quotas)]:
        quotas[parts[at]] += 1
    of_members = [0] * len(held)
    for quota, members in zip(quotas, processes.members, strict=True):
        base, larger = divmod(quota, len(members))
        by_size = sorted(members, key=lambda member: -held[member])
        for place, member in enumerate(by_size):
            of_members[member] = base + (place < larger)
    return of_members


def _gains(quota: int, held: Sequence[int]) -> tuple[bool, bool]:
    """Whether a process can keep one task more if its quota grows by one, and whether the same member can."""
    base, larger = divmod(quota, len(held))
    return sum(held) > quota, sum(count > base for count in held) > larger


def _first_with_room(members: Iterable[int], processes: Processes, room: Room) -> int:
    """Take room of one of these members, else of another in the process of one; NO_MEMBER where there is none."""
    for member in members:
        if room.take(member):
            return member
    for member in members:
        other = room.take_in(processes.of_member[member])
        if other != NO_MEMBER:
            return other
    return NO_MEMBER


def _deal(tasks: Iterable[int], placed: list[int], processes: Processes, room: Room) -> None:
    """Deal tasks out to processes in turns, so that those of a subtopology come to different ones."""
    turns = deque(range(len(processes.members)))
    for task in tasks:
        while placed[task] == NO_MEMBER:
            process = turns.popleft()
            placed[task] = room.take_in(process)
            if placed[task] != NO_MEMBER:
                turns.append(process)
