"""Brokers that are emptied: whatever they hold goes to others, in racks as far apart as before, a few at a time."""

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from kavka_operator.domain.observed import SeenPartition, SeenQuorum, Survey
from kavka_operator.domain.plan import MoveReplicas
from kavka_operator.reconcile.drain import MOVES_MAX, held_by, moves, out_of_reach, reasons_to_stay, too_large
from kavka_operator.reconcile.scale_down import shrink

QUORUM = SeenQuorum(0, (0,), {})
LOOKS_MAX = 200


def cluster_of(random: Random) -> tuple[dict[int, str | None], tuple[SeenPartition, ...]]:
    """Brokers with their racks, and partitions with their replicas."""
    racks: dict[int, str | None] = {number: f"rack-{number % 3}" for number in range(random.randint(4, 9))}
    found = []
    for index in range(random.randint(0, 60)):
        replicas = tuple(random.sample(sorted(racks), random.randint(1, 3)))
        found.append(SeenPartition(f"t{index % 4}", index, replicas[0], replicas, replicas))
    return racks, tuple(found)


@given(st.integers(0, 2**32))
def test_brokers_are_emptied_a_few_partitions_at_a_time(seed: int) -> None:
    random = Random(seed)
    racks, partitions = cluster_of(random)
    leaving = set(random.sample(sorted(racks), random.randint(1, len(racks) - 3)))
    staying = {number: rack for number, rack in racks.items() if number not in leaving}
    survey = Survey(partitions, QUORUM)
    assert too_large(leaving, survey, len(staying)) == []
    for _ in range(LOOKS_MAX):
        if not held_by(leaving, survey):
            break
        for action in moves(leaving, survey, staying):
            survey = begun(survey, action.name, action.replicas)
        assert len(survey.moving) <= MOVES_MAX
        survey = some_done(survey, random)
    assert held_by(leaving, survey) == []
    for before, after in zip(partitions, survey.partitions, strict=True):
        assert len(after.replicas) == len(set(after.replicas)) == len(before.replicas)
        assert [a for a, b in zip(after.replicas, before.replicas, strict=True) if b not in leaving] == [
            number for number in before.replicas if number not in leaving
        ], "what stays, stays in its place"


def begun(survey: Survey, topic: str, replicas: object) -> Survey:
    assert isinstance(replicas, dict)
    moving = {**survey.moving, **{(topic, index): target for index, target in replicas.items()}}
    return Survey(survey.partitions, survey.quorum, "", moving)


def some_done(survey: Survey, random: Random) -> Survey:
    """Some of the partitions on their way have arrived."""
    left = {key: target for key, target in survey.moving.items() if random.random() < 0.5}
    partitions = tuple(
        SeenPartition(found.topic, found.index, found.leader, target, target)
        if (target := survey.moving.get(found.key)) is not None and found.key not in left
        else found
        for found in survey.partitions
    )
    return Survey(partitions, survey.quorum, "", left)


@given(st.integers(0, 2**32))
def test_where_nodes_are_gone_nothing_waits_without_a_word_and_nothing_is_given_up(seed: int) -> None:
    random = Random(seed)
    racks, whole = cluster_of(random)
    gone = random.sample(sorted(racks), random.randint(1, len(racks) - 3))
    survey = Survey(tuple(without(partition, set(gone), random) for partition in whole), QUORUM)
    plan = shrink([], survey, {number: rack for number, rack in racks.items() if number not in gone}, gone)
    held, lost = held_by(set(gone), survey), out_of_reach(set(gone), survey)
    assert (plan is None) == (not held)
    if plan is None:
        return
    actions = [action for action in plan.actions if isinstance(action, MoveReplicas)]
    moved = {(action.name, index) for action in actions for index in action.replicas}
    movable = {partition.key for partition in held if partition.leader is not None}
    assert moved <= movable
    assert (len(moved), len(actions)) == (min(MOVES_MAX, len(movable)), len(plan.actions))
    assert plan.words[0].reason == ("Shrinking" if movable else "ShrinkRefused")
    assert all(partition.name in plan.words[0].message for partition in lost[:1])


def without(partition: SeenPartition, gone: set[int], random: Random) -> SeenPartition:
    """The partition after brokers have gone, some of them as the last that had it in sync."""
    isr = tuple(number for number in partition.isr if number not in gone)
    if not gone & set(partition.isr) or (isr and random.random() < 0.5):
        return replace(partition, isr=isr, leader=isr[0])
    return replace(partition, isr=(next(number for number in partition.isr if number in gone),), leader=None)


def test_a_replica_goes_to_a_rack_of_its_own() -> None:
    partition = SeenPartition("t", 0, 0, (0, 1, 5), (0, 1, 5))
    racks: dict[int, str | None] = {0: "a", 1: "b", 2: "a", 3: "b", 4: "c"}
    (action,) = moves({5}, Survey((partition,), QUORUM), racks)
    assert action.replicas == {0: (0, 1, 4)}


def test_what_is_on_its_way_is_left_alone() -> None:
    partition = SeenPartition("t", 0, 0, (0, 1, 2), (0, 1, 2))
    assert moves({2}, Survey((partition,), QUORUM, "", {("t", 0): (0, 1)}), {0: None, 1: None}) == []


def test_more_replicas_than_brokers_that_stay_are_told() -> None:
    survey = Survey((SeenPartition("t", 3, 0, (0, 1, 2), (0, 1, 2)),), QUORUM)
    assert too_large({2}, survey, 2) == ["t-3"]
    assert moves({2}, survey, {0: None, 1: None}) == []


def test_a_node_that_is_to_get_a_replica_stays() -> None:
    partition = SeenPartition("t", 0, 0, (0, 1), (0, 1))
    survey = Survey((partition,), SeenQuorum(0, (0, 3), {}), "", {("t", 0): (0, 2)})
    assert reasons_to_stay(2, survey) == ["it holds 1 replica (t-0)"], "the list of replicas may be older than the move"
    assert (reasons_to_stay(3, survey), reasons_to_stay(4, survey)) == (["it has a vote"], [])
    assert reasons_to_stay(4, Survey((), QUORUM, "no broker tells")) == ["no broker tells"]
