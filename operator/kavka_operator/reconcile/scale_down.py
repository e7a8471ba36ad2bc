"""Nodes that the resource no longer wants: each is emptied (`drain`), and stopped when it holds nothing.

One that is down and has something to give is started again. One that is away for good, without its volume or without a
trace, gives nothing any more: what others have in sync is copied from those, and a partition that only such nodes have
in sync is named, because its records are lost unless a person brings one of them back. Nothing is given up here.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from kavka_operator.domain.name_lists import counted, named, some
from kavka_operator.domain.observed import SeenNode, Survey
from kavka_operator.domain.plan import ClusterPlan, Plan, StartNode, StopNode, reconciling, stalled
from kavka_operator.reconcile.drain import (
    GIVE_UP,
    held_by,
    moves,
    out_of_reach,
    too_large,
    under_way,
    without_leader,
)


def gone(known: Iterable[int], here: Collection[int], survey: Survey | None) -> list[int]:
    """The nodes of before that are neither wanted nor there, and that partitions have replicas on all the same.

    `known` are the nodes of the last status, `here` those that are wanted or there. While no broker answers, any of
    them may hold something.
    """
    absent = sorted(set(known) - set(here))
    return absent if survey is None else [number for number in absent if held_by({number}, survey)]


def shrink(
    surplus: Sequence[SeenNode],
    survey: Survey | None,
    racks: Mapping[int, str | None],
    gone: Sequence[int] = (),
) -> ClusterPlan | None:
    """The plan for nodes that are no longer wanted; None if there are none, or they cannot be judged now.

    `racks` are those of the brokers that stay and serve; `gone` are nodes of which nothing is left.
    """
    if survey is None or survey.doubt:
        return None
    held = {number: len(held_by({number}, survey)) for number in [*(node.id for node in surplus), *gone]}
    if missed := [node.id for node in surplus if node.state == "Stopped" and held[node.id] and not node.lost]:
        words = f"{named(missed)}: no longer wanted, but there are replicas that only they can have"
        return Plan(tuple(map(StartNode, missed)), reconciling("Starting", words))
    there = [node for node in surplus if node.state != "Stopped" or node.lost]
    if leaving := [node.id for node in there if node.state == "Stopping"]:
        return Plan(words=reconciling("Shrinking", f"{named(leaving)} on the way down"))
    if free := [node.id for node in there if not held[node.id] and node.id not in survey.quorum.voters]:
        return Plan((StopNode(free[0]),), reconciling("Shrinking", str(StopNode(free[0]))))
    if voting := [node.id for node in there if not held[node.id]]:
        return Plan(words=stalled("ShrinkRefused", f"{named(voting)} {_have(voting)} a vote; want it again"))
    away = {number for number in gone if held[number]}
    held = {number: held[number] for number in sorted({*away, *(node.id for node in there)})}
    away |= {node.id for node in there if node.lost or node.state == "Failed"}
    return _drained(held, away, survey, racks) if held else None


def _drained(
    held: Mapping[int, int], away: AbstractSet[int], survey: Survey, racks: Mapping[int, str | None]
) -> ClusterPlan:
    """The plan that moves the replicas of nodes to others, and says how many are left.

    `held` are their numbers by node, `away` the nodes that nothing can be copied from.
    """
    leaving = set(held)
    if stuck := too_large(leaving, survey, len(racks)):
        why = f"{some(stuck)}: more replicas than brokers that stay and serve ({len(racks)})"
        return Plan(words=stalled("ShrinkRefused", f"{why}; want {named([*held])} again, or fewer replicas"))
    actions = tuple(moves(leaving, survey, racks))
    count = len(under_way(survey)) + sum(len(action.replicas) for action in actions)
    lost = out_of_reach(away, survey)
    waiting = [partition.name for partition in without_leader(leaving, survey) if partition not in lost]
    words = [
        *(f"node {number} holds {counted(replicas, 'replica')}" for number, replicas in held.items()),
        *([f"{some(waiting)}: no leader yet to copy from"] if waiting else []),
    ]
    if lost:
        nodes = sorted(away & {number for partition in lost for number in partition.replicas})
        names = some([partition.name for partition in lost])
        why = f"nobody has it in sync but {named(nodes)}, {_is_away(nodes)}"
        words.append(f"{names}: {why}; otherwise its records are lost: {GIVE_UP}")
    if lost and not count and not waiting:
        return Plan(words=stalled("ShrinkRefused", "; ".join(words)))
    words.insert(len(held), f"{counted(count, 'partition')} on the way to other brokers")
    return Plan(actions, reconciling("Shrinking", "; ".join(words)))


def _is_away(nodes: Sequence[int]) -> str:
    are, them = ("is", "it") if len(nodes) == 1 else ("are", "them")
    return f"which {are} away; want {them} again if the volume is still there"


def _have(those: Sequence[int]) -> str:
    return "has" if len(those) == 1 else "have"
