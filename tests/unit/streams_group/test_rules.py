"""The rules of streams groups: joins, topologies, targets, reconciliation, ends."""

from typing import Any

import pytest

from kavka_broker.core.streams_group import heartbeat as rules
from kavka_broker.core.streams_group.checks import StreamsHeartbeat, check_heartbeat, with_owned
from kavka_broker.core.streams_group.settings import StreamsGroupSettings
from kavka_broker.core.streams_group.state import TASK_BYTES, Endpoint, MemberState, size_of
from kavka_broker.core.streams_group.statuses import StatusCode
from kavka_broker.core.streams_group.tasks import TaskTarget
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages import streams_group_heartbeat_request as sent
from kavka_broker.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from tests.unit.streams_group.world import AT_ONCE, GROUP, NOTHING, World, topology

JOIN: dict[str, Any] = {
    "group_id": "g",
    "member_id": "m",
    "rebalance_timeout_ms": 1_000,
    "topology": topology(),
    "active_tasks": [],
    "standby_tasks": [],
    "warmup_tasks": [],
}
STAY: dict[str, Any] = {"group_id": "g", "member_id": "m", "member_epoch": 3}


def codes(world: World) -> list[StatusCode]:
    return [status.code for status in world.answer.statuses]


# --- what a heartbeat may say ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({**JOIN, "instance_id": "i"}, "Static membership is not yet supported."),
        ({**JOIN, "task_offsets": []}, "TaskOffsets are not supported yet."),
        ({**JOIN, "task_end_offsets": []}, "TaskEndOffsets are not supported yet."),
        ({**STAY, "warmup_tasks": [sent.TaskIds("0", [1])]}, "WarmupTasks are not supported yet."),
        ({**JOIN, "member_id": " "}, "MemberId can't be empty."),
        ({**JOIN, "group_id": ""}, "GroupId can't be empty."),
        ({**JOIN, "rack_id": ""}, "RackId can't be empty."),
        ({**JOIN, "rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({**JOIN, "active_tasks": [sent.TaskIds("0", [1])]}, "ActiveTasks must be empty when (re-)joining."),
        ({**JOIN, "standby_tasks": [sent.TaskIds("0", [1])]}, "StandbyTasks must be empty when (re-)joining."),
        ({**JOIN, "topology": None}, "Topology must be non-null when (re-)joining."),
        ({**STAY, "topology": topology()}, "Topology can only be provided when (re-)joining."),
        ({**STAY, "member_epoch": -2}, "InstanceId can't be null."),
        ({**STAY, "member_epoch": -3}, "MemberEpoch is -3, but must be greater than or equal to -2."),
        ({**STAY, "active_tasks": []}, "If one task-type is non-null, all must be non-null."),
        ({**STAY, "client_tags": [sent.KeyValue()] * 101}, "ClientTags has 101 tags; at most 100 are allowed."),
    ],
)
def test_what_a_heartbeat_may_not_say(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(BrokerError) as refused:
        check_heartbeat(StreamsGroupHeartbeatRequest(**fields))
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REQUEST, problem)


@pytest.mark.parametrize("fields", [JOIN, STAY, {**STAY, "member_epoch": -1}])
def test_what_a_heartbeat_may_say(fields: dict[str, Any]) -> None:
    check_heartbeat(StreamsGroupHeartbeatRequest(**fields))


# --- joins and targets ----------------------------------------------------------------------------------------------


def test_a_member_gets_every_task_of_the_topology() -> None:
    world = World()
    world.join("a1")
    assert world.beat("a1") is ErrorCode.NONE
    assert world.answer.epoch == 2
    assert world.state() == "Stable"
    world.settle()
    assert world.active() == {"a1": ["0_0", "0_1", "1_0", "1_1"]}
    assert world.answer.interval_ms == 5_000
    assert rules.is_steady(
        world.group, StreamsHeartbeat(GROUP, "a1-0", 2, "a1", "/127.0.0.1"), AT_ONCE, world.topics.changes
    )


def test_tasks_move_to_a_second_process_one_step_at_a_time() -> None:
    world = World()
    world.join("a1")
    world.settle()
    world.join("b1")
    world.beat("b1")
    assert world.member("b1").state is MemberState.UNRELEASED_TASKS
    assert world.state() == "Reconciling"
    world.beat("a1", follows=False)
    assert world.member("a1").state is MemberState.UNREVOKED_TASKS
    before = world.answer.epoch
    world.beat("b1")
    assert not world.answer.assigned, "the first member still runs all tasks"
    world.beat("a1")
    assert world.answer.epoch > before
    assert world.member("a1").state is MemberState.STABLE
    world.settle()
    assert {name: len(tasks) for name, tasks in world.active().items()} == {"a1": 2, "b1": 2}
    assert world.state() == "Stable"


def test_the_first_target_waits_for_more_threads() -> None:
    world = World(StreamsGroupSettings(initial_rebalance_delay_ms=3_000))
    for name in ("a1", "a2"):
        world.join(name)
        world.beat(name)
        assert codes(world) == [StatusCode.ASSIGNMENT_DELAYED]
        assert world.answer.epoch == 1
        assert world.answer.interval_ms == 500
    assert world.state() == "Assigning"
    world.advance(2_999)
    assert world.targets() == 0
    world.advance(1)
    assert world.targets() == 1
    world.settle()
    assert {name: len(tasks) for name, tasks in world.active().items()} == {"a1": 2, "a2": 2}
    assert world.targets() == 1


def test_a_later_target_waits_for_the_interval() -> None:
    world = World(StreamsGroupSettings(initial_rebalance_delay_ms=0, assignment_interval_ms=1_000))
    world.join("a1")
    world.beat("a1")
    world.join("b1")
    world.beat("b1")
    assert codes(world) == [StatusCode.ASSIGNMENT_DELAYED]
    assert world.state() == "Assigning"
    epoch = world.group.epoch
    world.beat("b1")
    assert world.group.epoch == epoch, "waiting moves nothing"
    world.advance(1_000)
    world.settle()
    assert world.targets() == 2
    assert world.state() == "Stable"


def test_the_delay_is_forgotten_with_its_coordinator() -> None:
    world = World(StreamsGroupSettings(initial_rebalance_delay_ms=3_000))
    world.join("a1")
    world.beat("a1")
    world.reload()
    world.settle()
    assert world.active() == {"a1": ["0_0", "0_1", "1_0", "1_1"]}


def test_standbys_follow_their_config() -> None:
    world = World()
    for name in ("a1", "b1"):
        world.join(name)
    world.settle()
    epoch = world.group.epoch
    world.settings = StreamsGroupSettings(assignment_interval_ms=0, initial_rebalance_delay_ms=0, standby_replicas=1)
    world.settle()
    assert world.group.epoch == epoch + 1
    standbys = [world.clients[name].owned.standby for name in ("a1", "b1")]
    assert sum(len(indexes) for tasks in standbys for indexes in tasks.values()) == 2
    assert all(set(tasks) <= {"1"} for tasks in standbys), "only tasks with state have standbys"


def test_a_full_group_refuses_more_members() -> None:
    world = World(StreamsGroupSettings(members_max=1, initial_rebalance_delay_ms=0))
    world.join("a1")
    world.beat("a1")
    world.join("b1")
    assert world.beat("b1") is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_what_members_say_is_bounded_in_bytes() -> None:
    world = World()
    with pytest.raises(BrokerError) as refused:
        rules.heartbeat(
            world.group,
            StreamsHeartbeat(GROUP, "m", 0, topology=topology()),
            world.settings,
            world.around(room_bytes=1_000),
        )
    assert refused.value.code is ErrorCode.GROUP_MAX_SIZE_REACHED
    world.join("a1")
    world.beat("a1")
    tasks = TASK_BYTES * 4
    assert world.member("a1").size_bytes > tasks
    assert world.group.size_bytes == world.member("a1").size_bytes + size_of(world.group.topology) + tasks


def test_tasks_count_among_what_is_bounded_in_bytes() -> None:
    world = World(t=1_000, r=1_000, c=1_000)
    joining, tasks = StreamsHeartbeat(GROUP, "m", 0, topology=topology()), 2 * 2_000 * TASK_BYTES
    change = rules.heartbeat(world.group, joining, world.settings, world.around(room_bytes=tasks))
    assert [status.code for status in change.statuses] == [StatusCode.ASSIGNMENT_DELAYED]
    change = rules.heartbeat(world.group, joining, world.settings, world.around(room_bytes=tasks + 10_000))
    assert not change.statuses
    assert change.growth_bytes > tasks


def test_a_full_coordinator_hears_members_all_the_same() -> None:
    world = World()
    world.join("a1")
    world.settle()
    beat_again = StreamsHeartbeat(GROUP, "a1-0", 2, "a1", "/127.0.0.1", owned=world.clients["a1"].owned)
    change = rules.heartbeat(world.group, beat_again, world.settings, world.around(room_bytes=-1_000_000))
    assert (change.epoch, change.records) == (2, [])
    world.topics.grow("t", 3)
    world.topics.grow("r", 3)
    world.topics.grow("c", 3)
    change = rules.heartbeat(world.group, beat_again, world.settings, world.around(room_bytes=-1_000_000))
    assert [status.code for status in change.statuses] == [StatusCode.ASSIGNMENT_DELAYED]
    assert change.epoch == 2


def test_a_source_topic_is_read_in_one_subtopology() -> None:
    world = World()
    world.join("a1")
    twice = sent.Topology(0, [sent.Subtopology(part, ["t"]) for part in "01"])
    assert world.beat("a1", topology=twice) is ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_a_negative_rebalance_timeout_leaves_no_time() -> None:
    world = World()
    world.join("a1")
    world.beat("a1", rebalance_timeout_ms=-5)
    world.settle()
    world.join("b1")
    world.beat("b1")
    world.beat("a1", follows=False)
    assert world.member("a1").state is MemberState.UNREVOKED_TASKS
    assert world.answer.revokes_ms == 0


# --- topologies and topics ------------------------------------------------------------------------------------------


def test_a_topology_without_its_source_topic_has_no_tasks() -> None:
    world = World(x=1)
    world.join("a1")
    world.beat("a1")
    assert codes(world) == [StatusCode.MISSING_SOURCE_TOPICS]
    assert world.state() == "NotReady"
    for name in "trc":
        world.topics.put(name, 2)
    world.settle()
    assert world.state() == "Stable"
    assert len(world.active()["a1"]) == 4


def test_internal_topics_are_asked_for_until_they_exist() -> None:
    world = World(t=3)
    world.join("a1")
    world.beat("a1")
    assert codes(world) == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert [(topic.name, topic.partitions, topic.configs) for topic in world.answer.internal_topics] == [
        ("c", 3, (("cleanup.policy", "compact"),)),
        ("r", 3, ()),
    ]
    assert world.answer.interval_ms == 500
    world.beat("a1")
    world.topics.put("c", 3)
    world.topics.put("r", 3)
    world.beat("a1")
    assert codes(world) == []
    assert world.answer.internal_topics == ()
    assert world.state() == "Stable"


def test_another_topology_is_refused_and_an_older_one_is_stale() -> None:
    world = World()
    world.join("a1")
    world.beat("a1", topology=topology(1))
    world.join("b1")
    other = topology(1)
    other.subtopologies[0].source_topics = ["x"]
    assert world.beat("b1", topology=other) is ErrorCode.INVALID_REQUEST
    assert world.beat("b1", topology=topology(0)) is ErrorCode.NONE
    assert StatusCode.STALE_TOPOLOGY in codes(world)
    assert world.group.topology is not None
    assert world.group.topology.epoch == 1


def test_a_topic_that_grows_moves_the_epoch() -> None:
    world = World()
    world.join("a1")
    world.settle()
    epoch = world.group.epoch
    world.topics.put("x", 1)
    world.settle()
    assert world.group.epoch == epoch
    world.topics.grow("t", 3)
    world.beat("a1")
    assert world.group.epoch == epoch + 1


def test_a_member_may_own_only_tasks_of_the_topology() -> None:
    world = World()
    world.join("a1")
    world.settle()
    assert world.beat("a1", owned=TaskTarget({"2": frozenset({0})})) is ErrorCode.INVALID_REQUEST
    world.clients["a1"].epoch = world.member("a1").epoch
    assert world.beat("a1", owned=TaskTarget({"0": frozenset({2})})) is ErrorCode.INVALID_REQUEST


# --- lost answers, fencing, ends ------------------------------------------------------------------------------------


def test_a_member_whose_answer_was_lost_hears_of_its_tasks_again() -> None:
    world = World()
    world.join("a1")
    world.settle()
    world.join("b1")
    world.settle("a1", "b1", rounds=1)
    world.beat("a1", is_lost=True)
    world.beat("b1", is_lost=True)
    world.settle()
    assert sorted(task for tasks in world.active().values() for task in tasks) == ["0_0", "0_1", "1_0", "1_1"]


@pytest.mark.parametrize(("epoch", "owned"), [(99, NOTHING), (1, NOTHING), (2, TaskTarget({"9": frozenset({1})}))])
def test_a_member_in_another_epoch_is_fenced(epoch: int, owned: TaskTarget) -> None:
    world = World()
    world.join("a1")
    world.settle()
    world.settings = StreamsGroupSettings(assignment_interval_ms=0, initial_rebalance_delay_ms=0, standby_replicas=1)
    world.settle()  # in epoch 3 now, and in 2 before
    world.clients["a1"].epoch = epoch
    assert world.beat("a1", owned=owned) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_silent_member_is_fenced_and_its_tasks_are_free() -> None:
    world = World()
    for name in ("a1", "b1"):
        world.join(name)
    world.settle()
    world.advance(40_000)
    world.beat("a1")
    world.advance(10_000)
    assert [member.client_id for member in world.group.members.values()] == ["a1"]
    world.settle("a1")
    assert world.active() == {"a1": ["0_0", "0_1", "1_0", "1_1"], "b1": []}
    world.clients["b1"].epoch = 3
    assert world.beat("b1") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_close_its_tasks_is_fenced() -> None:
    world = World()
    world.join("a1")
    world.settle()
    world.join("b1")
    world.beat("b1")
    for _ in range(6):
        world.beat("a1", follows=False)
        world.advance(10_000)
        world.beat("b1") if "b1-0" in world.group.members else None
    assert "a1-0" not in world.group.members


def test_the_last_member_leaves_the_topology_behind() -> None:
    world = World()
    world.join("a1")
    world.settle()
    assert world.leave("a1") is ErrorCode.NONE
    assert world.state() == "Empty"
    assert world.group.topology is not None
    assert world.leave("a1") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_request_to_shut_down_reaches_all_until_the_last_has_left() -> None:
    world = World()
    for name in ("a1", "b1"):
        world.join(name)
    world.settle()
    world.beat("a1", shuts_down=True)
    world.beat("b1")
    assert codes(world) == [StatusCode.SHUTDOWN_APPLICATION]
    assert "a1-0" in world.answer.statuses[0].detail
    world.leave("a1")
    world.beat("b1")
    assert StatusCode.SHUTDOWN_APPLICATION in codes(world)
    world.leave("b1")
    world.join("c1")
    world.beat("c1")
    assert StatusCode.SHUTDOWN_APPLICATION not in codes(world)


# --- endpoints ------------------------------------------------------------------------------------------------------


def test_endpoints_are_told_once_until_they_move() -> None:
    world = World()
    world.join("a1")
    world.beat("a1", endpoint=Endpoint("host", 1))
    assert (world.answer.tells_endpoints, world.answer.endpoint_epoch) == (True, 0)
    world.beat("a1")
    assert not world.answer.tells_endpoints
    world.join("b1")
    world.beat("b1", endpoint=Endpoint("host", 2))
    world.settle("a1", "b1", rounds=1)
    moved = world.group.endpoint_epoch
    assert moved > 0
    world.settle()
    assert not world.answer.tells_endpoints
    assert world.group.endpoints == 2


def beat(**said: Any) -> StreamsHeartbeat:
    return StreamsHeartbeat(GROUP, "m", 0, **said)


# --- sizes ----------------------------------------------------------------------------------------------------------


def test_a_large_topology_is_worked_out_in_a_thread() -> None:
    world = World()
    assert not rules.is_large(world.group, world.topics, beat(topology=topology()))
    many = sent.Topology(0, [sent.Subtopology(str(number), ["t"]) for number in range(300)])
    assert rules.is_large(world.group, world.topics, beat(topology=many))
    configs = [sent.KeyValue("k", "v")] * 200
    one = sent.Topology(0, [sent.Subtopology("0", ["t"], state_changelog_topics=[sent.TopicInfo("c", 0, 0, configs)])])
    assert rules.is_large(world.group, world.topics, beat(topology=one))
    report: tuple[list[sent.TaskIds], ...] = ([sent.TaskIds("0", list(range(300)))], [], [])
    assert rules.is_large(world.group, world.topics, beat(reported=report))
    world.topics.grow("t", 300)
    assert rules.is_large(world.group, world.topics, beat(topology=topology()))


def test_tasks_that_are_reported_in_parts_are_put_together() -> None:
    parts = [sent.TaskIds("0", [1]), sent.TaskIds("1", []), sent.TaskIds("0", [2, 1])]
    assert with_owned(beat(reported=(parts, [], []))).owned == TaskTarget({"0": frozenset({1, 2})})


# --- records --------------------------------------------------------------------------------------------------------


def test_states_of_members_have_kafkas_numbers() -> None:
    """`org.apache.kafka.coordinator.group.streams.MemberState`."""
    assert {state.name: state.value for state in MemberState} == {
        "STABLE": 1,
        "UNREVOKED_TASKS": 2,
        "UNRELEASED_TASKS": 3,
        "UNKNOWN": 127,
    }


def test_a_delay_that_passes_at_a_target_of_the_epoch_computes_none() -> None:
    """The group has come to its target before: a heartbeat was in time."""
    world = World()
    world.join("a1")
    world.settle()
    assert world.group.epoch == world.group.assignment_epoch
    change = rules.assign_delayed(world.group, world.settings, world.around())
    assert not change.has_computed
    assert not change.records
