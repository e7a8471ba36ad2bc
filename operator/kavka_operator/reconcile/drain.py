"""Emptying brokers that are no longer wanted: each replica of theirs goes to a broker that stays.

A few partitions at a time (`MOVES_MAX`), so that copying leaves disks and networks to clients; the next ones follow
when those are done. One without a leader has nothing to copy from: it is left alone, and takes no other's turn. A
replica keeps its place in the list, so preferred leaders stay as spread as they were. It goes to a rack that the
partition has no other replica in, as far as there is one, and there to the broker with the fewest.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from kavka_operator.domain.name_lists import counted, named, some
from kavka_operator.domain.observed import SeenPartition, Survey
from kavka_operator.domain.plan import MoveReplicas

MOVES_MAX = 8
"""Partitions that are on their way at the same time."""
GIVE_UP = "delete the topic, or let a replica that lags lead (kafka-leader-election.sh --election-type unclean)"


def held_by(leaving: AbstractSet[int], survey: Survey) -> list[SeenPartition]:
    """The partitions that have a replica on one of these nodes, or will have one."""
    return [partition for partition in survey.partitions if leaving & assigned(partition, survey)]


def assigned(partition: SeenPartition, survey: Survey) -> set[int]:
    """The brokers that a partition has replicas on, or will have them on when it has moved."""
    return {*partition.replicas, *target_of(partition, survey)}


def reasons_to_stay(node: int, survey: Survey) -> list[str]:
    """The reasons why a node that is no longer wanted may not be stopped; empty if it may."""
    if survey.doubt:
        return [survey.doubt]
    held = [partition.name for partition in held_by({node}, survey)]
    found = [f"it holds {counted(len(held), 'replica')} ({some(held)})"] if held else []
    return [*found, *(["it has a vote"] if node in survey.quorum.voters else [])]


def moves(leaving: AbstractSet[int], survey: Survey, racks: Mapping[int, str | None]) -> list[MoveReplicas]:
    """The next partitions to move, an action a topic. `racks` are those of the brokers that stay and serve."""
    load = Counter(number for partition in survey.partitions for number in target_of(partition, survey))
    room = MOVES_MAX - len(under_way(survey))
    found: dict[str, dict[int, tuple[int, ...]]] = {}
    for partition in held_by(leaving, survey):
        target = target_of(partition, survey)
        if room <= 0 or not leaving & set(target) or partition.key in survey.moving:
            continue
        if partition.leader is None or len(target) > len(racks):
            continue
        found.setdefault(partition.topic, {})[partition.index] = _replaced(target, leaving, load, racks)
        room -= 1
    return [_move(topic, partitions, leaving) for topic, partitions in found.items()]


def too_large(leaving: AbstractSet[int], survey: Survey, brokers: int) -> list[str]:
    """The partitions that have more replicas than brokers stay."""
    return [partition.name for partition in held_by(leaving, survey) if len(target_of(partition, survey)) > brokers]


def under_way(survey: Survey) -> list[SeenPartition]:
    """The partitions that are on their way to other brokers; without a leader none is."""
    return [found for found in survey.partitions if found.key in survey.moving and found.leader is not None]


def without_leader(leaving: AbstractSet[int], survey: Survey) -> list[SeenPartition]:
    """The partitions on these nodes that nothing can be copied of now."""
    return [partition for partition in held_by(leaving, survey) if partition.leader is None]


def out_of_reach(away: AbstractSet[int], survey: Survey) -> list[SeenPartition]:
    """The partitions that only these nodes may lead next, which are away, or nobody."""
    return [partition for partition in without_leader(away, survey) if set(partition.heirs) <= away]


def target_of(partition: SeenPartition, survey: Survey) -> tuple[int, ...]:
    """The replicas that a partition has, or will have when it has moved."""
    return survey.moving.get(partition.key, partition.replicas)


def _replaced(
    replicas: Sequence[int], leaving: AbstractSet[int], load: Counter[int], racks: Mapping[int, str | None]
) -> tuple[int, ...]:
    wanted = list(replicas)
    for place, number in enumerate(replicas):
        if number in leaving:
            wanted[place] = _best([other for other in wanted if other != number], load, racks)
            load[wanted[place]] += 1
            load[number] -= 1
    return tuple(wanted)


def _best(beside: Sequence[int], load: Counter[int], racks: Mapping[int, str | None]) -> int:
    """The broker for a replica beside others: in a rack of its own, with the fewest replicas."""
    in_rack = Counter(racks.get(number) for number in beside)
    rest = [number for number in sorted(racks) if number not in beside]
    return min(rest, key=lambda number: (in_rack[racks[number]], load[number], number))


def _move(topic: str, partitions: Mapping[int, tuple[int, ...]], leaving: AbstractSet[int]) -> MoveReplicas:
    names = some([f"{topic}-{index}" for index in partitions])
    factor = max(map(len, partitions.values()))
    return MoveReplicas(topic, factor, partitions, f"move replicas of {names} away from {named(sorted(leaving))}")
