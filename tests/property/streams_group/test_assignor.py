"""Any group whatever, after any history: its tasks are each active once, have their standbys, are even, and stay."""

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.streams_group.assignor import TaskMember, sticky
from kavka_broker.core.streams_group.configured_topology import ConfiguredTopology
from kavka_broker.core.streams_group.tasks import TaskTarget
from tests.unit.streams_group.tasks import (
    Targets,
    active_members,
    as_last,
    configured,
    counts,
    standby_members,
    tasks_of,
)

Group = tuple[list[TaskMember], ConfiguredTopology, int]


@st.composite
def topologies(draw: st.DrawFn) -> ConfiguredTopology:
    stateful = draw(st.dictionaries(st.sampled_from("012"), st.integers(1, 9)))
    stateless = draw(st.dictionaries(st.sampled_from("345"), st.integers(1, 9)))
    return configured(stateful, stateless)


@st.composite
def groups(draw: st.DrawFn) -> Group:
    """Members that have any tasks by their last targets, also of another topology, and of no valid assignment."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    names = [(f"{process}-{thread}", f"p{process}") for process, size in enumerate(sizes) for thread in range(size)]
    topology = draw(topologies())
    free = [(name, index) for name in "0123" for index in range(9)]
    random = draw(st.randoms(use_true_random=False))
    random.shuffle(free)
    members = [
        TaskMember(name, process, TaskTarget(_some(free, random, is_once=True), _some(free, random, is_once=False)))
        for name, process in names
    ]
    return members, topology, draw(st.integers(0, 3))


def _some(free: list[tuple[str, int]], random: Random, *, is_once: bool) -> dict[str, frozenset[int]]:
    count = random.randint(0, min(len(free), 6))
    chosen = [free.pop() for _ in range(count)] if is_once else random.sample(free, count)
    return {part: frozenset(index for name, index in chosen if name == part) for part in {name for name, _ in chosen}}


@given(groups())
def test_each_task_is_active_once_and_has_its_standbys_in_other_processes(group: Group) -> None:
    members, topology, replicas = group
    targets = sticky(members, topology, replicas)
    assert targets.keys() == {member.member_id for member in members}
    process_of = {member.member_id: member.process_id for member in members}
    parts = topology.subtopologies.values()
    active, standbys = active_members(targets), standby_members(targets)
    assert active.keys() == {(part.subtopology_id, index) for part in parts for index in range(part.tasks)}
    wanted = min(replicas, len(set(process_of.values())) - 1)
    for task, member in active.items():
        processes = [process_of[one] for one in standbys.get(task, ())]
        assert len(processes) == (wanted if topology.subtopologies[task[0]].is_stateful else 0)
        assert len({*processes, process_of[member]}) == len(processes) + 1
    assert not any(target.warmup for target in targets.values())


@given(groups())
def test_active_tasks_are_even_over_processes_and_members(group: Group) -> None:
    members, topology, replicas = group
    targets = sticky(members, topology, replicas)
    of_member = counts(targets)
    assert max(of_member.values()) - min(of_member.values()) <= 1
    total = sum(of_member.values())
    for process, size in _sizes(members).items():
        count = sum(of_member[one.member_id] for one in members if one.process_id == process)
        assert total * size // len(members) <= count <= -(-total * size // len(members))


@given(groups())
def test_no_standby_has_a_better_place(group: Group) -> None:
    members, topology, replicas = group
    targets = sticky(members, topology, replicas)
    sizes, loads, has = _sizes(members), dict.fromkeys(_sizes(members), 0), dict[str, set[tuple[str, int]]]()
    for member in members:
        loads[member.process_id] += targets[member.member_id].count
        for role in ("active", "standby"):
            has.setdefault(member.process_id, set()).update(tasks_of(targets[member.member_id], role))
    process_of = {member.member_id: member.process_id for member in members}
    for task, holders in standby_members(targets).items():
        for source in map(process_of.__getitem__, holders):
            for other in sizes:
                gain = (2 * loads[source] - 1) / sizes[source] - (2 * loads[other] + 1) / sizes[other]
                assert task in has[other] or gain < 1e-9, f"{task} would be better at {other} than at {source}"
    for one in members:  # and none has a better member in its process
        for beside in members:
            if one.process_id == beside.process_id and targets[one.member_id].standby:
                assert targets[one.member_id].count - targets[beside.member_id].count < 2


@given(groups(), st.randoms(use_true_random=False))
def test_the_order_of_members_is_nothing_to_the_assignment(group: Group, random: Random) -> None:
    members, topology, replicas = group
    targets = sticky(members, topology, replicas)
    random.shuffle(members)
    assert sticky(members, topology, replicas) == targets


@given(groups())
def test_nothing_moves_where_nothing_has_changed(group: Group) -> None:
    members, topology, replicas = group
    targets = sticky(members, topology, replicas)
    assert sticky(as_last(members, targets), topology, replicas) == targets


@given(groups())
def test_as_many_tasks_stay_as_even_shares_allow(group: Group) -> None:
    members, topology, replicas = group
    targets = sticky(members, topology, replicas)
    owners = active_members(targets)
    process_of = {member.member_id: member.process_id for member in members}
    held, kept = dict.fromkeys(_sizes(members), 0), 0
    for member in members:
        mine = [task for task in tasks_of(member.last, "active") if task in owners]
        held[member.process_id] += len(mine)
        kept += sum(process_of[owners[task]] == member.process_id for task in mine)
        stayed = sum(owners[task] == member.member_id for task in mine)
        assert stayed == min(len(mine), counts(targets)[member.member_id])
    shares = {process: divmod(len(owners) * size, len(members)) for process, size in _sizes(members).items()}
    spare = len(owners) - sum(share for share, _ in shares.values())
    can_gain = sum(held[process] > share for process, (share, rest) in shares.items() if rest)
    most = sum(min(held[process], share) for process, (share, _) in shares.items()) + min(spare, can_gain)
    assert kept == most


@given(groups(), st.lists(st.integers(0, 30), min_size=1, max_size=4))
def test_members_that_come_and_go_move_only_what_they_have_to(group: Group, changes: list[int]) -> None:
    """With one member a process, a member that comes takes its share, and one that goes leaves what it had."""
    members, topology, replicas = group
    history: list[Targets] = []
    present = [TaskMember(member.member_id, member.member_id) for member in members]
    for change in [-1, *changes]:
        if change % 2 or len(present) == 1:
            present.append(TaskMember(f"new-{change}-{len(history)}", f"new-{change}-{len(history)}"))
        elif change >= 0:
            present.pop(change % len(present))
        present = as_last(present, history[-1] if history else {})
        history.append(sticky(present, topology, replicas))
    for before, after in pairwise(history):
        owners, total = active_members(before), len(active_members(after))
        stayed = sum(owners[task] == member for task, member in active_members(after).items())
        least = total // len(after)
        new = len(after.keys() - before.keys())
        gone = sum(count for member, count in counts(before).items() if member not in after)
        assert stayed >= total - gone - new * (least + 1)


def _sizes(members: list[TaskMember]) -> dict[str, int]:
    sizes = dict[str, int]()
    for member in members:
        sizes[member.process_id] = sizes.get(member.process_id, 0) + 1
    return sizes
