"""The assignor of tasks in stories; any groups at all are in tests/property/streams_group."""

from kavka_broker.core.streams_group.assignor import TaskMember, assignment_steps, sticky
from kavka_broker.core.streams_group.tasks import TaskTarget
from tests.unit.streams_group.tasks import (
    active_members,
    configured,
    counts,
    members,
    moved,
    standby_members,
    tasks_of,
)


def target(active: dict[str, set[int]] | None = None, standby: dict[str, set[int]] | None = None) -> TaskTarget:
    return TaskTarget(
        {name: frozenset(indexes) for name, indexes in (active or {}).items()},
        {name: frozenset(indexes) for name, indexes in (standby or {}).items()},
    )


def test_the_tasks_of_a_subtopology_come_to_different_members() -> None:
    targets = sticky(members("a1", "b1", "c1"), configured({"0": 3}, {"1": 3}), 0)
    assert targets == {name: target({"0": {at}, "1": {at}}) for at, name in enumerate(("a1", "b1", "c1"))}


def test_a_group_without_members_and_a_topology_without_tasks() -> None:
    assert sticky([], configured({"0": 3}), 1) == {}
    assert sticky(members("a1", "b1"), configured({}), 1) == {"a1": TaskTarget(), "b1": TaskTarget()}


def test_a_process_gets_tasks_by_the_number_of_its_members() -> None:
    targets = sticky(members("a1", "a2", "a3", "b1"), configured({"0": 8}), 1)
    assert counts(targets) == {"a1": 2, "a2": 2, "a3": 2, "b1": 2}
    # Each of the two processes has the standbys of what is active in the other.
    assert counts(targets, "standby") == {"a1": 1, "a2": 1, "a3": 0, "b1": 6}


def test_tasks_of_the_rounding_go_to_different_processes() -> None:
    assert counts(sticky(members("a1", "a2", "b1", "b2"), configured({"0": 6}), 0)) == {
        "a1": 2,
        "a2": 1,
        "b1": 2,
        "b2": 1,
    }


def test_a_process_that_comes_takes_its_share_and_no_more() -> None:
    topology = configured({"0": 12})
    first = sticky(members("a1", "b1", "c1"), topology, 1)
    second = sticky(members("a1", "b1", "c1", "d1", last=first), topology, 1)
    assert (counts(second), moved(first, second)) == ({"a1": 3, "b1": 3, "c1": 3, "d1": 3}, 3)
    assert counts(second, "standby") == {"a1": 3, "b1": 3, "c1": 3, "d1": 3}


def test_the_tasks_of_a_process_that_dies_become_active_where_a_standby_is() -> None:
    topology = configured({"0": 9})
    first = sticky(members("a1", "b1", "c1"), topology, 1)
    second = sticky(members("a1", "b1", last=first), topology, 1)
    standbys = standby_members(first)
    lost = [task for task, member in active_members(first).items() if member == "c1"]
    owners = active_members(second)
    assert sum(owners[task] in standbys[task] for task in lost) >= len(lost) - 1  # one for the balance at most
    assert moved(first, second) == len(lost)


def test_a_thread_that_comes_is_given_tasks_of_its_own_process() -> None:
    first = {"a1": target({"0": {0, 1, 2, 3}}), "b1": target({"0": {4, 5}}), "b2": target({"0": {6, 7}})}
    second = sticky(members("a1", "a2", "b1", "b2", last=first), configured({"0": 8}), 0)
    assert second == first | {"a1": target({"0": {0, 1}}), "a2": target({"0": {2, 3}})}


def test_an_active_task_that_moves_leaves_a_standby_behind() -> None:
    first = {"a1": target({"0": {0, 1, 2, 3}})}
    second = sticky(members("a1", "b1", "c1", "d1", last=first), configured({"0": 4}), 1)
    assert counts(second) == {"a1": 1, "b1": 1, "c1": 1, "d1": 1}
    here = {task for task, names in standby_members(second).items() if "a1" in names}
    assert here
    assert here <= {("0", 0), ("0", 1), ("0", 2), ("0", 3)} - set(tasks_of(second["a1"], "active"))


def test_a_standby_stays_though_the_first_member_with_one_runs_the_task_now() -> None:
    """KAFKA-20899: the first of the members that had a standby is not the only one that may have it again."""
    first = {
        "a1": target({"0": {1}}, {"0": {0}}),  # task 0 has lost its member, and becomes active here
        "b1": target({"0": {2, 3}}, {"0": {0}}),
        "c1": target({"0": {4, 5}}),
    }
    second = sticky(members("a1", "b1", "c1", last=first), configured({"0": 6}), 1)
    assert active_members(second)["0", 0] == "a1"
    assert standby_members(second)["0", 0] == ["b1"]


def test_no_more_standbys_than_other_processes() -> None:
    targets = sticky(members("a1", "a2", "b1"), configured({"0": 2}, {"1": 2}), 2)
    assert {task: len(names) for task, names in standby_members(targets).items()} == {("0", 0): 1, ("0", 1): 1}
    assert not standby_members(sticky(members("a1", "a2"), configured({"0": 2}), 2))


def test_what_is_last_may_name_tasks_that_are_gone_or_twice_the_same() -> None:
    last = {"a1": target({"0": {0, 7}, "9": {1}}), "b1": target({"0": {0, 1}}, {"0": {0}})}
    targets = sticky(members("a1", "b1", last=last), configured({"0": 2}), 1)
    assert active_members(targets) == {("0", 0): "a1", ("0", 1): "b1"}
    assert standby_members(targets) == {("0", 0): ["b1"], ("0", 1): ["a1"]}


def test_an_assignment_of_ten_thousand_tasks_takes_steps_by_tasks_and_members() -> None:
    topology = configured({str(name): 1_000 for name in range(10)})
    group = [TaskMember(f"m{at:03}", f"p{at % 100}") for at in range(1_000)]
    assert assignment_steps(len(group), topology) == 11_000
    targets = sticky(group, topology, 2)
    assert set(counts(targets).values()) == {10}
    assert set(counts(targets, "standby").values()) == {20}
