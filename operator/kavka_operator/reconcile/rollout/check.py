"""May these nodes go down now?

Two promises hold at every moment of a roll. Every partition keeps as many in-sync replicas as its `min.insync.replicas`
asks for, so that acks=all goes on. The controllers keep a majority that has all that was decided, so that leaders can
still be moved.

Where a promise cannot be kept whatever one waits for (one replica, a lone controller), waiting would be forever: such
partitions are named before the roll begins, and the next best is kept: every other replica in sync, every other
controller caught up.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from kavka_operator.domain.name_lists import counted, some
from kavka_operator.domain.observed import SeenPartition, SeenQuorum, Survey

PARTITIONS_SHOWN_MAX = 512
"""Characters, of one topic."""


def obstacles(nodes: AbstractSet[int], survey: Survey, *, serving: bool = True) -> list[str]:
    """The reasons why nodes may not go down now; empty if they may.

    A node that is not `serving` takes away only what still counts on it. Nothing is taken from a partition that has no
    leader and that none of them may lead.
    """
    if survey.doubt:
        return [survey.doubt]
    found = [
        _short_of(partition)
        for partition in survey.partitions
        if nodes & set(partition.replicas if serving else partition.isr)
        and not _is_lost_anyway(partition, nodes)
        and len(set(partition.isr) - nodes) < needed(partition)
    ]
    return [*found, *_quorum_obstacles(nodes, survey.quorum)]


def _is_lost_anyway(partition: SeenPartition, nodes: AbstractSet[int]) -> bool:
    """Whether a partition has no leader, and waits for none of these nodes."""
    return partition.leader is None and not nodes & set(partition.complete)


def needed(partition: SeenPartition) -> int:
    """The number of in-sync replicas that a partition needs while nodes are down: at most all but one."""
    return min(partition.in_sync_min, len(partition.replicas) - 1)


def at_risk(nodes: Sequence[int], survey: Survey) -> list[str]:
    """The partitions that will be unavailable while one of the nodes is down, whatever the roll waits for."""
    partitions: dict[str, list[int]] = {}
    for partition in survey.partitions:
        count = len(partition.replicas)
        if set(nodes) & set(partition.replicas) and count - 1 < min(partition.in_sync_min, count):
            partitions.setdefault(partition.topic, []).append(partition.index)
    voters = survey.quorum.voters
    alone = len(voters) - 1 < _majority(voters) and bool(set(nodes) & set(voters))
    return [*(["the controllers"] if alone else []), *(_together(*found) for found in partitions.items())]


def _together(topic: str, indexes: Sequence[int]) -> str:
    """The partitions of one topic in one word: orders-7, or orders-0,3..5."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1][1:] = [index]
        else:
            runs.append([index])
    return f"{topic}-" + ",".join("..".join(map(str, run)) for run in runs)[:PARTITIONS_SHOWN_MAX]


def _short_of(partition: SeenPartition) -> str:
    there = len(partition.isr)
    missing = [str(replica) for replica in partition.replicas if replica not in partition.isr]
    lacking = f" (missing {', '.join(missing)})" if missing else ""
    return (
        f"{partition.name} has {there} of {counted(len(partition.replicas), 'replica')} in sync{lacking}"
        f" and needs {needed(partition)} without it"
    )


def _majority(voters: Sequence[int]) -> int:
    return len(voters) // 2 + 1


def _quorum_obstacles(nodes: AbstractSet[int], quorum: SeenQuorum) -> Iterator[str]:
    if not nodes & set(quorum.voters):
        return
    others = [voter for voter in quorum.voters if voter not in nodes]
    behind = [str(voter) for voter in others if not quorum.is_caught_up(voter)]
    wanted = min(_majority(quorum.voters), len(quorum.voters) - 1)  # all but one, where that is no majority
    if len(others) - len(behind) < wanted:
        lagging = f" (behind: {some(behind)})" if behind else ""
        yield f"of {counted(len(others), 'other controller')} {wanted} must have all that was decided{lagging}"
