"""What a node of the quorum answers to requests that it must not serve, and bounds that no scenario meets."""

from typing import Any

import pytest

from kavka_broker.core.raft import auto_join, election, follower, leader, voter_changes, wire
from kavka_broker.core.raft.effects import Followed, Later, NodeAddress, Note, Respond, Send
from kavka_broker.core.raft.log_view import SnapshotId, TooOld, standing
from kavka_broker.core.raft.node import RaftNode
from kavka_broker.core.raft.node_state import NodeState
from kavka_broker.core.raft.quorum_state import EPOCH_MAX, QuorumState, UnreadableState, parse_state
from kavka_broker.core.raft.replicas import OBSERVER_SESSION_MS, Replica, Replicas
from kavka_broker.core.raft.roles import Follower, Leader, LeaderAt, Prospective, Unattached, VoterChange
from kavka_broker.core.raft.settings import Identity, Settings
from kavka_broker.core.raft.transitions import become_prospective
from kavka_broker.core.raft.voter_history import VoterHistory
from kavka_broker.core.raft.voters import Voter
from kavka_broker.core.raft.wire import ANY_WATERMARK
from kavka_broker.protocol.errors import ErrorCode, ProtocolViolation
from kavka_broker.protocol.messages import add_raft_voter_request as add
from kavka_broker.protocol.messages import update_raft_voter_request as update
from kavka_broker.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kavka_broker.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kavka_broker.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest
from kavka_broker.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest, PartitionSnapshot, TopicSnapshot
from kavka_broker.protocol.messages.fetch_snapshot_request import SnapshotId as Wanted
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kavka_broker.protocol.messages.vote_request import VoteRequest
from kavka_broker.protocol.uuids import ZERO
from tests.unit.raft.memory_log import Batch, MemoryLog
from tests.unit.raft.world import CLUSTER, Process, World, directory_of, voter

TOPIC = "__cluster_metadata"


def quorum() -> tuple[World, RaftNode]:
    """Three voters, and the one of them that leads."""
    world = World()
    for node_id in (1, 2, 3):
        world.add(node_id, [voter(1), voter(2), voter(3)])
    for process in world.processes.values():
        process.start()
    world.run(300)
    leading = world.leader()
    assert leading is not None
    assert leading.node is not None
    return world, leading.node


def member(
    settings: Settings | None = None, state: QuorumState | None = None, log: MemoryLog | None = None
) -> NodeState:
    """Node 1 of three, at time 1,000."""
    identity = Identity(1, directory_of(1), CLUSTER, endpoints=voter(1).endpoints)
    history = VoterHistory.of([voter(1), voter(2), voter(3)], kraft_version=1)
    log = log or MemoryLog()
    return NodeState(identity, settings or Settings(), state or QuorumState(), history, log, lambda low, _: low, 1_000)


# --- requests about nothing, or of another cluster --------------------------------------------------------------------


def test_a_request_about_no_partition_or_of_another_cluster_is_refused() -> None:
    world, node = quorum()
    kinds: tuple[tuple[Any, Any], ...] = (
        (VoteRequest, node.vote),
        (BeginQuorumEpochRequest, node.begin_quorum_epoch),
        (EndQuorumEpochRequest, node.end_quorum_epoch),
        (FetchRequest, node.fetch),
        (FetchSnapshotRequest, node.fetch_snapshot),
    )
    for kind, ask in kinds:
        about_nothing, _ = ask(kind(cluster_id=CLUSTER), world.now_ms)
        assert about_nothing.error_code == ErrorCode.INVALID_REQUEST
        for cluster_id in ("elsewhere", ""):
            elsewhere, _ = ask(kind(cluster_id=cluster_id), world.now_ms)
            assert elsewhere.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
        untold, _ = ask(kind(cluster_id=None), world.now_ms)
        assert untold.error_code == ErrorCode.INVALID_REQUEST, "as Apache Kafka has it, nobody's is ours"


class Sent(World):
    """A world that keeps the cluster of each request that a node has sent, by its kind."""

    def __init__(self) -> None:
        super().__init__()
        self.clusters: dict[str, set[str | None]] = {}

    def send(self, sender: Process, effect: Send) -> None:
        request: Any = effect.request
        self.clusters.setdefault(type(request).__name__, set()).add(getattr(request, "cluster_id", CLUSTER))
        super().send(sender, effect)


def test_each_request_of_a_node_says_which_cluster_it_means() -> None:
    """A node behind the beginning of the log, and a leader that resigns, have all kinds sent."""
    world = Sent()
    for node_id in (1, 2, 3):
        world.add(node_id, [voter(1), voter(2), voter(3)]).start()
    world.run(300)
    leading = world.leader()
    assert leading is not None
    late = next(process for process in world.processes.values() if process is not leading)
    world.crash(late.node_id)
    leading.append("a", "b")
    world.run(300)
    leading.append("c")
    world.run(300)
    leading.log.trim(leading.snapshot().end_offset)
    late.start()
    world.run(500)
    leading.handle(lambda node: node.resign(world.now_ms))
    world.run(500)
    kinds = {"VoteRequest", "BeginQuorumEpochRequest", "EndQuorumEpochRequest", "FetchRequest", "FetchSnapshotRequest"}
    assert kinds <= {*world.clusters}
    assert {name: {CLUSTER} for name in world.clusters} == world.clusters


def snapshot_code(node: RaftNode, topic: str, epoch: int, wanted: SnapshotId, position: int) -> int:
    asked = PartitionSnapshot(0, epoch, Wanted(*wanted), position, directory_of(2))
    response, _ = node.fetch_snapshot(FetchSnapshotRequest(CLUSTER, 2, 100, [TopicSnapshot(topic, [asked])]), 300)
    return response.topics[0].partitions[0].error_code


def test_a_piece_of_a_snapshot_is_refused_where_there_is_none() -> None:
    world, node = quorum()
    leading = world.leader()
    assert leading is not None
    snapshot = SnapshotId(2, node.epoch)
    leading.log.pieces[snapshot] = b"12345"
    assert snapshot_code(node, "t", node.epoch, snapshot, 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert snapshot_code(node, TOPIC, node.epoch - 1, snapshot, 0) == ErrorCode.FENCED_LEADER_EPOCH
    assert snapshot_code(node, TOPIC, node.epoch, SnapshotId(1, node.epoch), 0) == ErrorCode.SNAPSHOT_NOT_FOUND
    for position, code in (
        (-1, ErrorCode.POSITION_OUT_OF_RANGE),
        (0, ErrorCode.NONE),
        (4, ErrorCode.NONE),
        (5, ErrorCode.POSITION_OUT_OF_RANGE),
    ):
        assert snapshot_code(node, TOPIC, node.epoch, snapshot, position) == code


# --- changes of the voters --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node_id", "directory", "code"),
    [
        (-1, directory_of(2), ErrorCode.INVALID_REQUEST),
        (2, ZERO, ErrorCode.INVALID_REQUEST),
        (0, directory_of(2), ErrorCode.VOTER_NOT_FOUND),
        (2, directory_of(3), ErrorCode.VOTER_NOT_FOUND),
    ],
)
def test_a_voter_that_cannot_be_removed(node_id: int, directory: bytes, code: ErrorCode) -> None:
    world, node = quorum()
    response, _ = node.remove_voter(RemoveRaftVoterRequest(CLUSTER, node_id, directory), world.now_ms)
    assert not isinstance(response, Later)
    assert response.error_code == code


@pytest.mark.parametrize(
    ("node_id", "directory", "listener", "code"),
    [
        (-1, directory_of(4), "CONTROLLER", ErrorCode.INVALID_REQUEST),
        (4, ZERO, "CONTROLLER", ErrorCode.INVALID_REQUEST),
        (4, directory_of(4), "OTHER", ErrorCode.INVALID_REQUEST),
        (2, directory_of(4), "CONTROLLER", ErrorCode.DUPLICATE_VOTER),
    ],
)
def test_a_voter_that_cannot_be_added(node_id: int, directory: bytes, listener: str, code: ErrorCode) -> None:
    world, node = quorum()
    request = add.AddRaftVoterRequest(CLUSTER, 1_000, node_id, directory, [add.Listener(listener, "n4", 9004)])
    response, _ = node.add_voter(request, world.now_ms)
    assert isinstance(response, AddRaftVoterResponse)
    assert response.error_code == code


@pytest.mark.parametrize(
    ("epoch", "node_id", "versions", "code"),
    [
        (0, 2, (0, 1), ErrorCode.NONE),
        (0, 2, (1, 1), ErrorCode.NONE),
        (0, 2, (0, 0), ErrorCode.INVALID_REQUEST),
        (0, 2, (2, 1), ErrorCode.INVALID_REQUEST),
        (0, 2, (-1, 1), ErrorCode.INVALID_REQUEST),
        (0, 9, (0, 1), ErrorCode.VOTER_NOT_FOUND),
        (-1, 2, (0, 1), ErrorCode.FENCED_LEADER_EPOCH),
        (1, 2, (0, 1), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_which_addresses_of_a_voter_are_taken(
    epoch: int, node_id: int, versions: tuple[int, int], code: ErrorCode
) -> None:
    world, node = quorum()
    before = node.voters
    response, _ = node.update_voter(
        update.UpdateRaftVoterRequest(
            CLUSTER,
            node.epoch + epoch,
            node_id,
            directory_of(2),
            [update.Listener("CONTROLLER", "moved", 9002)],
            update.KRaftVersionFeature(*versions),
        ),
        world.now_ms,
    )
    assert response.error_code == code
    moved = Voter(2, directory_of(2), (("CONTROLLER", "moved", 9002),))
    assert (moved in node.voters) is (code is ErrorCode.NONE)
    assert len(node.voters) == len(before)


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_a_replica_at_the_start_of_a_log_without_a_snapshot_there_is_too_old() -> None:
    log = MemoryLog(5, 0, [Batch(5, 9, 4, b"")], {SnapshotId(7, 4): b"all of it"})
    assert standing(log, 5, 3) == TooOld(SnapshotId(7, 4))


@pytest.mark.parametrize(("epoch", "may"), [(EPOCH_MAX - 2, True), (EPOCH_MAX - 1, False)])
def test_no_node_stands_for_an_epoch_after_the_last(epoch: int, may: bool) -> None:
    node = member(state=QuorumState(epoch))
    role = node.role
    assert isinstance(role, Unattached)
    assert (election.due_ms(node, role) == role.election_at_ms) is may


@pytest.mark.parametrize(
    ("settings", "patient_ms"),
    [
        (Settings(fetch_wait_max_ms=500, request_timeout_ms=2000, fetch_timeout_ms=2000), 500),
        (Settings(fetch_wait_max_ms=500, request_timeout_ms=600, fetch_timeout_ms=2000), 300),
        (Settings(fetch_wait_max_ms=500, request_timeout_ms=2000, fetch_timeout_ms=800), 200),
    ],
)
def test_a_fetch_waits_no_longer_than_its_answer_is_of_use(settings: Settings, patient_ms: int) -> None:
    assert follower.patient_ms(member(settings)) == patient_ms


def test_who_knows_no_leader_asks_once_in_a_while() -> None:
    node = member(log=MemoryLog())
    role = node.role
    assert isinstance(role, Unattached)
    follower.discover(node, role)
    assert [type(one) for one in node.drain()] == [Send]
    role.fetching.in_flight = None
    follower.discover(node, role)
    assert node.drain() == []
    node.now_ms += follower.DISCOVERY_INTERVAL_MS
    follower.discover(node, role)
    assert [type(one) for one in node.drain()] == [Send]


@pytest.mark.parametrize(("end_offset", "is_taken"), [(4, False), (5, True), (6, True)])
def test_a_snapshot_that_ends_before_what_was_committed_is_not_taken(end_offset: int, is_taken: bool) -> None:
    node = member(log=MemoryLog(0, 9, [Batch(0, 9, 1, b"")]))
    node.high_watermark = 5
    role = Follower(LeaderAt(2, voter(2).endpoints), 100, 2_000, 2_000)
    if is_taken:
        follower.want_snapshot(node, role, SnapshotId(end_offset, 1))
        assert role.download is not None
    else:
        with pytest.raises(ProtocolViolation, match="would put a snapshot that ends at 4"):
            follower.want_snapshot(node, role, SnapshotId(end_offset, 1))


def test_a_replica_knows_the_watermark_that_it_names_or_was_told() -> None:
    replica = Replica(2, directory_of(2), told_high_watermark=7)
    assert leader.known_watermark(FetchPartition(high_watermark=5), replica) == 5
    assert leader.known_watermark(FetchPartition(high_watermark=ANY_WATERMARK), replica) == 7
    assert leader.known_watermark(FetchPartition(high_watermark=ANY_WATERMARK), None) == ANY_WATERMARK


def test_only_a_silent_voter_is_told_the_leader_again() -> None:
    node = member()
    role = Leader(0, Replicas(0), 0)
    interval_ms = leader.begin_interval_ms(node)
    role.replicas.by_key[2, directory_of(2)] = Replica(2, directory_of(2), fetched_ms=1_000 - interval_ms)
    role.replicas.by_key[3, directory_of(3)] = Replica(3, directory_of(3), fetched_ms=1_001 - interval_ms)
    leader.announce_leader(node, role)
    assert [one.peer.node_id for one in node.drain() if isinstance(one, Send)] == [2]


def test_an_observer_is_forgotten_once_its_session_is_over() -> None:
    replicas, key = Replicas(0), (9, directory_of(9))
    replicas.fetched(key, 0, 0, 1_000)
    replicas.forget_silent(999 + OBSERVER_SESSION_MS)
    assert key in replicas.by_key
    assert replicas.listed(999 + OBSERVER_SESSION_MS)
    assert not replicas.listed(1_000 + OBSERVER_SESSION_MS)
    replicas.forget_silent(1_000 + OBSERVER_SESSION_MS)
    assert key not in replicas.by_key


def test_a_version_takes_the_place_of_those_that_are_cut_away() -> None:
    history = VoterHistory.of([voter(1)], kraft_version=0)
    history.add_version(5, 1)
    history.add_version(5, 0)
    assert history.versions == [(-1, 0), (5, 0)]
    history.truncate(5)
    assert (history.versions, history.kraft_version) == ([(-1, 0)], 0)


def test_no_record_is_committed_before_a_leader_says_so() -> None:
    node = member(log=MemoryLog(0, 9, [Batch(0, 9, 1, b"")]))
    assert node.high_watermark == 0
    assert node.commit(1)
    assert not node.commit(1)
    assert not [one for one in node.drain() if isinstance(one, Note)]


# --- single steps -----------------------------------------------------------------------------------------------------


def test_a_state_of_a_newer_kafka_is_told_as_such() -> None:
    with pytest.raises(UnreadableState) as problem:
        parse_state('{"data_version": 2}')
    assert str(problem.value) == "data_version 2 is of a newer Kafka"


def test_a_voter_that_cannot_be_reached_has_refused() -> None:
    node = member()
    node.history = VoterHistory.of([voter(1), Voter(2, directory_of(2)), voter(3)], kraft_version=1)
    become_prospective(node, None)
    assert isinstance(node.role, Prospective)
    assert node.role.tally.refused == {2}
    assert [send.peer.node_id for send in node.role.tally.asked] == [3]


@pytest.mark.parametrize("followed", [None, LeaderAt(2, voter(2).endpoints)])
def test_a_prospective_node_reports_that_it_follows_no_leader(followed: LeaderAt | None) -> None:
    node = member()
    become_prospective(node, followed)
    told = [one for one in node.drain() if isinstance(one, Followed)]
    assert told == ([] if followed else [Followed(-1, 0)])


def test_a_follower_names_where_its_leader_is() -> None:
    world, node = quorum()
    for process in world.processes.values():
        assert process.node is not None
        assert process.node.leader_endpoint == (f"node{node.leader_id}", 9000 + node.leader_id)


def test_the_log_ends_behind_records_that_the_leader_is_about_to_append() -> None:
    node = member(state=QuorumState(1, leader_id=1))
    assert node.append([KRaftVersionRecord(0, 1), KRaftVersionRecord(0, 1)]) == 0
    assert (node.end_offset, node.log.end_offset) == (2, 0)


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (None, ErrorCode.REQUEST_TIMED_OUT),
        (ApiVersionsResponse(35), ErrorCode.INVALID_REQUEST),
        (ApiVersionsResponse(0), ErrorCode.INVALID_REQUEST),
        (
            ApiVersionsResponse(0, supported_features=[SupportedFeatureKey("kraft.version", 2, 3)]),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            ApiVersionsResponse(35, supported_features=[SupportedFeatureKey("kraft.version", 0, 1)]),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            ApiVersionsResponse(0, supported_features=[SupportedFeatureKey("kraft.version", 0, 1)]),
            ErrorCode.REQUEST_TIMED_OUT,
        ),
    ],
)
def test_a_newcomer_that_cannot_vote(response: ApiVersionsResponse | None, code: ErrorCode) -> None:
    node, role = member(), Leader(0, Replicas(0), 0)
    change = VoterChange(None, AddRaftVoterResponse, 2_000, (), newcomer=voter(4))
    problem = voter_changes.cannot_join(node, role, change, response)
    assert problem is not None
    assert problem[0] is code


def test_voters_that_are_not_committed_keep_others_from_being_changed() -> None:
    node, role = member(), Leader(0, Replicas(0), 0, is_established=True)
    node.history.add_voters(5, node.voters)
    for high_watermark, is_refused in ((5, True), (6, False)):
        node.high_watermark = high_watermark
        assert (voter_changes.find_problem(node, role) is not None) is is_refused


@pytest.mark.parametrize(("version", "has_address"), [(0, True), (1, False)])
def test_a_node_that_cannot_be_a_voter_asks_the_leader_for_nothing(version: int, has_address: bool) -> None:
    identity = Identity(4, directory_of(4), CLUSTER, endpoints=voter(4).endpoints if has_address else ())
    history = VoterHistory.of([voter(1)], kraft_version=version)
    node = NodeState(identity, Settings(), QuorumState(), history, MemoryLog(), lambda low, _: low, 0)
    assert auto_join.make_question(node) is None


def leading(
    until_ms: int = 2_000, *, asked: Send | None = None, early: Later | None = None
) -> tuple[NodeState, Leader]:
    """A leader that is adding node 4, which has caught up."""
    node = member(state=QuorumState(1, leader_id=1))
    role = node.role = Leader(0, Replicas(0), 9_000, is_established=True)
    role.replicas.fetched((4, directory_of(4)), 0, 0, 1_000)
    role.replicas.fetched((2, directory_of(2)), 0, 0, 1_000)
    later = None if early else Later(7)
    voters = (*node.voters, voter(4))
    role.change = VoterChange(later, AddRaftVoterResponse, until_ms, voters, early, voter(4), asked)
    return node, role


def answer_of(node: NodeState) -> tuple[Later, int]:
    """Who was answered, and with which code."""
    (answer,) = [one for one in node.drain() if isinstance(one, Respond)]
    assert isinstance(answer.response, AddRaftVoterResponse)
    return answer.later, answer.response.error_code


def test_a_change_that_takes_too_long_is_answered() -> None:
    node, role = leading()
    voter_changes.drive(node, role)
    assert node.drain() == []
    node.now_ms = 2_000
    voter_changes.drive(node, role)
    assert role.change is None
    assert answer_of(node) == (Later(7), ErrorCode.REQUEST_TIMED_OUT)


def test_who_joins_by_itself_is_answered_once_its_record_is_appended() -> None:
    asked = Send(NodeAddress(4, "node4", 9004), VoteRequest())
    node, _ = leading(asked=asked, early=Later(8))
    spoken = ApiVersionsResponse(0, supported_features=[SupportedFeatureKey("kraft.version", 0, 1)])
    voter_changes.on_versions(node, Send(asked.peer, VoteRequest()), spoken)
    assert len(node.voters) == 3, "the answer to another question"
    voter_changes.on_versions(node, asked, spoken)
    assert [one.node_id for one in node.voters] == [1, 2, 3, 4]
    assert answer_of(node) == (Later(8), ErrorCode.NONE)


def test_an_answer_about_versions_that_nobody_waits_for_changes_nothing() -> None:
    node = member()
    voter_changes.on_versions(node, Send(NodeAddress(4, "node4", 9004), VoteRequest()), None)
    assert node.drain() == []


def test_who_joins_by_itself_does_not_wait_for_the_commit() -> None:
    assert wire.ask_to_join(member()).ack_when_committed is False


def test_node_zero_is_a_node() -> None:
    assert Replicas(0).heard((0, directory_of(1)), 5) is not None
    assert Replicas(0).heard((-1, directory_of(1)), 5) is None


def test_a_warning_is_one() -> None:
    node = member()
    node.effects.warn("vote.refused")
    node.effects.note("vote.granted")
    assert [one.is_warning for one in node.drain() if isinstance(one, Note)] == [True, False]
