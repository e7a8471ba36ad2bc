"""What a follower does with answers that are damaged, stale or contradict each other."""

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kavka_broker.core.raft.effects import Later, Note, Persist, Respond
from kavka_broker.core.raft.log_view import SnapshotId
from kavka_broker.core.raft.quorum_state import QuorumState
from kavka_broker.core.raft.replicas import OBSERVERS_MAX
from kavka_broker.core.raft.settings import Settings
from kavka_broker.core.raft.voters import Voter
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kavka_broker.protocol.messages.begin_quorum_epoch_request import PartitionData as Begun
from kavka_broker.protocol.messages.begin_quorum_epoch_request import TopicData as BegunTopic
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kavka_broker.protocol.messages.fetch_response import EpochEndOffset, FetchResponse
from kavka_broker.protocol.messages.fetch_response import SnapshotId as ToldId
from kavka_broker.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest, PartitionSnapshot, TopicSnapshot
from kavka_broker.protocol.messages.fetch_snapshot_request import SnapshotId as WantedId
from kavka_broker.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse
from kavka_broker.protocol.records.batch import set_crc
from kavka_broker.protocol.uuids import ONE
from tests.unit.raft.world import CLUSTER, World, voter

#: Where a batch says how far its last record is from its first.
LAST_OFFSET_DELTA_AT = 23
#: And of which epoch it is.
LEADER_EPOCH_AT = 12


class Meddler(World):
    """A network on which a test changes answers."""

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__(settings=settings)
        self.meddle: Any = None

    def carried(self, message: Message) -> Message:
        arrived = super().carried(message)
        if self.meddle is not None:
            self.meddle(arrived)
        return arrived


def three(settings: Settings | None = None) -> Meddler:
    world = Meddler(settings)
    for node_id in (1, 2, 3):
        world.add(node_id, [voter(1), voter(2), voter(3)])
    for process in world.processes.values():
        process.start()
    world.run(200)
    return world


def test_a_damaged_batch_is_not_written_but_asked_for_again() -> None:
    world = three()
    leader = world.leader()
    assert leader is not None

    def damage(message: Message) -> None:
        if isinstance(message, FetchResponse) and len(message.responses[0].partitions[0].records or b""):
            records = bytearray(message.responses[0].partitions[0].records)
            records[-1] ^= 1
            message.responses[0].partitions[0].records = memoryview(records)

    world.meddle = damage
    leader.append("a")
    world.run(400)
    assert {process.log.end_offset for process in world.processes.values()} == {3, 4}
    assert any("fetch.damaged" in line and "checksum" in line for line in world.trace)
    world.meddle = None
    world.run(2_000)
    assert {process.node.high_watermark for process in world.processes.values() if process.node} == {4}
    assert leader.node is not None
    assert leader.node.epoch == 1, "nobody lost patience with a leader that answers"


def test_a_batch_that_ends_before_it_begins_is_not_written() -> None:
    """Its CRC may be right, and the end of the log would go back over what was committed."""
    world = three()
    leader = world.leader()
    assert leader is not None

    def turn_back(message: Message) -> None:
        if isinstance(message, FetchResponse) and len(message.responses[0].partitions[0].records or b""):
            records = bytearray(message.responses[0].partitions[0].records)
            struct.pack_into(">i", records, LAST_OFFSET_DELTA_AT, -3)
            set_crc(records)
            message.responses[0].partitions[0].records = memoryview(records)

    world.meddle = turn_back
    leader.append("a")
    world.run(400)
    assert {process.log.end_offset for process in world.processes.values()} == {3, 4}
    assert any("fetch.damaged" in line and "ends before it begins" in line for line in world.trace)
    world.meddle = None
    world.run(2_000)
    assert {process.node.high_watermark for process in world.processes.values() if process.node} == {4}


def test_a_batch_of_an_epoch_that_cannot_be_here_is_not_written() -> None:
    world = three()
    leader = world.leader()
    assert leader is not None

    def run_ahead(message: Message) -> None:
        if isinstance(message, FetchResponse) and len(message.responses[0].partitions[0].records or b""):
            records = bytearray(message.responses[0].partitions[0].records)
            struct.pack_into(">i", records, LEADER_EPOCH_AT, 99)
            message.responses[0].partitions[0].records = memoryview(records)

    world.meddle = run_ahead
    leader.append("a")
    world.run(400)
    assert {one.log.end_offset for one in world.processes.values()} == {3, 4}
    assert any("a batch of epoch 99 after 1, in 1" in line for line in world.trace)


def contradicted(world: Meddler, meddle: Callable[[Message], None], reason: str) -> None:
    """Both followers keep what was committed, look for another leader, and go on when there is one to believe."""
    liar = world.leader()
    assert liar is not None
    world.meddle = lambda message: meddle(message) if world.leader() is liar else None
    world.run(1_000)
    assert any("leader.contradicted" in line and reason in line for line in world.trace)
    assert world.leader() is not liar
    world.run(2_000)
    nodes = [process.node for process in world.processes.values() if process.node]
    assert len(nodes) == 3, "nobody stopped"
    assert len({(node.epoch, node.high_watermark) for node in nodes}) == 1
    assert nodes[0].high_watermark > 3


def test_a_follower_does_not_cut_what_was_committed() -> None:
    world = three()

    def cut(message: Message) -> None:
        if isinstance(message, FetchResponse):
            message.responses[0].partitions[0].diverging_epoch = EpochEndOffset(1, 1)

    contradicted(world, cut, "cut the log at 1, below 3, which was committed")


def test_a_follower_does_not_cut_into_the_snapshot_that_its_log_begins_behind() -> None:
    world = three()
    for process in world.processes.values():
        process.snapshot()
        process.log.trim(3)

    def cut(message: Message) -> None:
        if isinstance(message, FetchResponse):
            message.responses[0].partitions[0].diverging_epoch = EpochEndOffset(0, 0)

    contradicted(world, cut, "knows nothing behind epoch 0")


def test_a_follower_does_not_replace_what_was_committed() -> None:
    world = three()

    def replace_log(message: Message) -> None:
        if isinstance(message, FetchResponse):
            message.responses[0].partitions[0].snapshot_id = ToldId(2, 1)

    contradicted(world, replace_log, "ends at 2 in the place of the log, of which everything below 3 was committed")


def test_a_snapshot_that_does_not_go_on_is_not_asked_for_in_a_hurry() -> None:
    world = three()
    leader = world.leader()
    assert leader is not None
    late = world.processes[3 if leader.node_id != 3 else 2]
    world.crash(late.node_id)
    leader.append("a")
    world.run(50)
    leader.snapshot()
    leader.log.trim(4)
    pieces = []

    def keep(message: Message) -> None:
        if isinstance(message, FetchSnapshotResponse):
            pieces.append(message)
            message.topics[0].partitions[0].unaligned_records = b""

    world.meddle = keep
    late.start()
    world.run(1_000)
    assert 1 < len(pieces) < 1_000 / Settings().retry_backoff_ms
    world.meddle = None
    world.run(1_000)
    assert late.log.start_offset == 4


def test_a_snapshot_comes_in_pieces_and_again_where_it_is_damaged() -> None:
    world = three(Settings(snapshot_chunk_bytes=50))
    leader = world.leader()
    assert leader is not None
    late = world.processes[3 if leader.node_id != 3 else 2]
    world.crash(late.node_id)
    leader.append("a", "b")
    world.run(50)
    leader.snapshot()
    leader.log.trim(5)
    pieces = []

    def count(message: Message) -> None:
        if isinstance(message, FetchSnapshotResponse):
            pieces.append(message.topics[0].partitions[0].position)

    world.meddle = count
    late.start()
    world.run(100)
    assert pieces == [50 * place for place in range(len(pieces))]
    assert len(pieces) > 2
    assert (late.log.start_offset, late.log.end_offset, late.log.snapshots) == (5, 5, [SnapshotId(5, 1)])
    assert late.log.pieces == leader.log.pieces


def test_a_snapshot_that_goes_while_it_is_fetched_is_given_up() -> None:
    world = three(Settings(snapshot_chunk_bytes=5))
    leader = world.leader()
    assert leader is not None
    late = world.processes[3 if leader.node_id != 3 else 2]
    world.crash(late.node_id)
    leader.append("a", "b")
    world.run(50)
    first = leader.snapshot()
    leader.log.trim(5)
    late.start()
    while not late.download:
        world.run(1)
    leader.append("c")
    world.run(10)
    newest = leader.snapshot()
    del leader.log.pieces[first]
    leader.log.trim(6)
    world.run(200)
    assert late.log.snapshots == [newest]
    assert any("snapshot.refused" in line and "SNAPSHOT_NOT_FOUND" in line for line in world.trace)


def test_an_answer_that_is_nothing_but_an_error_ends_the_download() -> None:
    """Apache Kafka 4.3 has no other way to say that a snapshot is gone."""
    world = three(Settings(snapshot_chunk_bytes=5))
    leader = world.leader()
    assert leader is not None
    late = world.processes[3 if leader.node_id != 3 else 2]
    world.crash(late.node_id)
    leader.append("a")
    world.run(50)
    gone = leader.snapshot()
    leader.log.trim(4)

    def refuse(message: Message) -> None:
        if isinstance(message, FetchSnapshotResponse) and message.topics[0].partitions[0].error_code:
            message.error_code, message.topics = -1, []

    world.meddle = refuse
    late.start()
    while not late.download:
        world.run(1)
    leader.append("b")
    world.run(10)
    newest = leader.snapshot()
    del leader.log.pieces[gone]
    leader.log.trim(newest.end_offset)
    world.run(200)
    assert late.log.snapshots == [newest]


def test_a_second_leader_of_an_epoch_is_not_believed() -> None:
    world = three()
    leader = world.leader()
    assert leader is not None
    assert leader.node is not None
    follower = world.processes[2 if leader.node_id != 2 else 3]
    assert follower.node is not None
    pretender = next(one for one in (1, 2, 3) if one not in {leader.node_id, follower.node_id})
    topics = [
        BegunTopic("__cluster_metadata", [Begun(0, follower.identity.directory_id, pretender, leader.node.epoch)])
    ]
    request = BeginQuorumEpochRequest(CLUSTER, follower.node_id, topics)
    _, effects = follower.node.begin_quorum_epoch(request, world.now_ms)
    assert follower.node.leader_id == leader.node_id
    assert [effect.event for effect in effects if isinstance(effect, Note)] == ["raft.leader.disputed"]
    assert not any(isinstance(effect, Persist) for effect in effects)


def test_a_leader_that_resigns_as_it_parks_a_fetch_answers_it() -> None:
    """It was stopped for longer than the others wait, and a fetch is the first that it hears."""
    world = three()
    leader = world.leader()
    assert leader is not None
    assert leader.node is not None
    partition = FetchPartition(current_leader_epoch=1, fetch_offset=3, last_fetched_epoch=1, high_watermark=3)
    topics = [FetchTopic(topic_id=ONE, partitions=[partition])]
    request = FetchRequest(CLUSTER, replica_state=ReplicaState(9), max_wait_ms=500, topics=topics)
    response, effects = leader.node.fetch(request, world.now_ms + 60_000)
    assert isinstance(response, Later)
    answers: list[Any] = [effect for effect in effects if isinstance(effect, Respond) and effect.later == response]
    assert answers[0].response.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_directory_id_is_part_of_a_voter() -> None:
    world = three()
    process = world.processes[2]
    process.crash()
    process.identity = replace(process.identity, directory_id=b"\x99" * 16)
    process.start()
    assert process.node is not None
    assert (process.node.role, process.node.is_voter) == ("Observer", False)


def test_an_unknown_error_code_is_an_error_like_others() -> None:
    """A newer controller has more of them."""
    world = three()

    def refuse(message: Message) -> None:
        if isinstance(message, FetchResponse) and message.responses:
            message.responses[0].partitions[0].error_code = 999

    world.meddle = refuse
    world.run(1_000)
    assert any("fetch.refused" in line and "UNKNOWN_SERVER_ERROR" in line for line in world.trace)
    world.meddle = None
    world.run(5_000)
    assert world.leader() is not None


def test_more_observers_than_are_remembered_keep_no_voter_from_being_counted() -> None:
    world = three()
    leader = world.leader()
    assert leader is not None
    for process in world.processes.values():
        if process is not leader:
            world.crash(process.node_id)
    leader.crash()
    leader.start()
    follower = world.processes[2 if leader.node_id != 2 else 3]
    follower.start()
    while world.leader() is None:
        world.run(1)
    leader = world.leader()
    assert leader is not None
    node = leader.node
    assert node is not None
    for node_id in range(100, 100 + OBSERVERS_MAX):
        node.fetch(fetch_by(node_id, node.epoch), world.now_ms)
    leader.append("a")
    world.run(200)
    assert node.high_watermark == leader.log.end_offset


def fetch_by(node_id: int, epoch: int, *, bytes_max: int = 1) -> FetchRequest:
    partition = FetchPartition(current_leader_epoch=epoch, last_fetched_epoch=0, replica_directory_id=bytes([7]) * 16)
    topics = [FetchTopic(topic_id=ONE, partitions=[partition])]
    return FetchRequest(CLUSTER, replica_state=ReplicaState(node_id), max_bytes=bytes_max, topics=topics)


def test_an_answer_is_bounded_whatever_is_asked_for() -> None:
    world = three(Settings(fetch_bytes_max=1_000))
    leader = world.leader()
    assert leader is not None
    for _ in range(50):
        leader.append("x" * 100)
    world.run(50)
    node = leader.node
    assert node is not None
    answer, _ = node.fetch(fetch_by(9, node.epoch, bytes_max=1 << 30), world.now_ms)
    assert isinstance(answer, FetchResponse)
    assert 0 < len(answer.responses[0].partitions[0].records or b"") <= 1_000
    leader.log.pieces[SnapshotId(5, 1)] = bytes(5_000)
    wanted = PartitionSnapshot(0, node.epoch, snapshot_id=WantedId(5, 1))
    request = FetchSnapshotRequest(CLUSTER, 9, 1 << 30, [TopicSnapshot("__cluster_metadata", [wanted])])
    piece, _ = node.fetch_snapshot(request, world.now_ms)
    assert piece.topics[0].partitions[0].size == 5_000
    assert len(piece.topics[0].partitions[0].unaligned_records or b"") == 1_000


def test_a_leader_without_an_address_is_looked_for() -> None:
    """The voters were named for another listener; `World.run` objects to a node that has something to do at once."""
    world = World()
    nowhere = Voter(2, voter(2).directory_id, (("ELSEWHERE", "node2", 9002),))
    process = world.add(1, [voter(1), nowhere])
    process.state = QuorumState(leader_epoch=3, leader_id=2)
    process.start()
    world.run(5_000)
    assert process.node is not None
    assert process.node.leader_id == -1
