"""Epochs that cannot be: nobody uses them up for a quorum, and one that is written down does not end its node."""

import pytest

from kavka_broker.core.raft.quorum_state import EPOCH_HEARD_MAX, EPOCH_LEAP_MAX, EPOCH_MAX, QuorumState, is_believable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import begin_quorum_epoch_request as begin
from kavka_broker.protocol.messages import end_quorum_epoch_request as end
from kavka_broker.protocol.messages import vote_request as vote
from tests.unit.raft.world import CLUSTER, World, directory_of, voter

TOPIC = "__cluster_metadata"


def quorum(size: int, state: QuorumState | None = None) -> World:
    """Nodes that have run for a while; `state` is what the first begins with."""
    world = World()
    voters = [voter(node_id) for node_id in range(1, size + 1)]
    for one in voters:
        world.add(one.node_id, voters)
    if state is not None:
        world.processes[1].state = state
    for process in world.processes.values():
        process.start()
    world.run(3_000)
    return world


def saying(epoch: int) -> list[Message]:
    asked = vote.PartitionData(0, epoch, 3, directory_of(3), directory_of(1), 0, 10_000, False)
    began = begin.PartitionData(0, directory_of(1), 3, epoch)
    ended = end.PartitionData(0, 3, epoch, [2], [end.ReplicaInfo(2, directory_of(2))])
    return [
        vote.VoteRequest(CLUSTER, 1, [vote.TopicData(TOPIC, [asked])]),
        begin.BeginQuorumEpochRequest(
            CLUSTER, 1, [begin.TopicData(TOPIC, [began])], [begin.LeaderEndpoint("CONTROLLER", "n3", 1)]
        ),
        end.EndQuorumEpochRequest(CLUSTER, [end.TopicData(TOPIC, [ended])]),
    ]


@pytest.mark.parametrize(
    ("epoch", "own", "is_so"),
    [
        (EPOCH_HEARD_MAX, 1, True),
        (EPOCH_HEARD_MAX + 1, 1, False),
        (EPOCH_HEARD_MAX + EPOCH_LEAP_MAX, EPOCH_HEARD_MAX, True),
        (EPOCH_HEARD_MAX + EPOCH_LEAP_MAX + 1, EPOCH_HEARD_MAX, False),
        (EPOCH_MAX, EPOCH_MAX - 1, False),
    ],
)
def test_how_far_an_epoch_is_believed(epoch: int, own: int, is_so: bool) -> None:
    assert is_believable(epoch, own) is is_so


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("epoch", [EPOCH_MAX, EPOCH_MAX - 1])
def test_an_epoch_that_cannot_be_is_refused(size: int, which: int, epoch: int) -> None:
    world = quorum(size)
    answers: list[Message] = []
    world.processes[1].ask(saying(epoch)[which], answers.append)
    world.run(3_000)
    (answer,) = answers
    assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST  # type: ignore[attr-defined]
    assert all(process.node is not None and process.node.epoch < 100 for process in world.processes.values())
    assert world.leader() is not None


@pytest.mark.parametrize("epoch", [EPOCH_MAX, EPOCH_MAX - 1, EPOCH_MAX - 2])
def test_a_node_alone_forgets_an_epoch_that_cannot_be(epoch: int) -> None:
    world = quorum(1, QuorumState(epoch, 3))
    leader = world.leader()
    assert leader is not None
    assert leader.node is not None
    assert leader.node.epoch < 100


@pytest.mark.parametrize("epoch", [EPOCH_MAX, EPOCH_MAX - 1, EPOCH_MAX - 2])
def test_one_of_several_keeps_its_word_and_the_others_do_not_believe_it(epoch: int) -> None:
    world = quorum(3, QuorumState(epoch))
    first, leader = world.processes[1].node, world.leader()
    assert first is not None
    assert leader is not None
    assert leader.node is not None
    assert (first.epoch, first.is_leader) == (epoch, False) or first.epoch == epoch + 1 < EPOCH_MAX
    assert leader.node_id != 1
    assert leader.node.epoch < 100
