"""What a node of the quorum leaves behind as it goes from one role to another, and the bounds of its intervals."""

import pytest

from kavka_broker.core.raft import election, follower, leader, transitions, voter_changes
from kavka_broker.core.raft.effects import Later, NodeAddress, Respond, Send
from kavka_broker.core.raft.log_view import SnapshotId
from kavka_broker.core.raft.quorum_state import QuorumState
from kavka_broker.core.raft.roles import Download, Fetching, Follower, Leader, LeaderAt, VoterChange
from kavka_broker.core.raft.settings import Settings
from kavka_broker.core.raft.voter_history import VoterHistory
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import add_raft_voter_request as add
from kavka_broker.protocol.messages import fetch_snapshot_response as pieces
from kavka_broker.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kavka_broker.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kavka_broker.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kavka_broker.protocol.messages.vote_request import PartitionData, VoteRequest
from tests.unit.raft.test_refusals import TOPIC, leading, member
from tests.unit.raft.world import CLUSTER, directory_of, voter


@pytest.mark.parametrize(("fetch_timeout_ms", "interval_ms"), [(1, 1), (2, 1), (3, 1), (4, 2), (2_000, 1_000)])
def test_a_silent_voter_is_told_twice_within_its_patience(fetch_timeout_ms: int, interval_ms: int) -> None:
    assert leader.begin_interval_ms(member(Settings(fetch_timeout_ms=fetch_timeout_ms))) == interval_ms


def test_a_leader_that_becomes_a_follower_answers_whose_change_waits() -> None:
    node, role = leading()
    transitions.become_follower(node, 2, LeaderAt(2, voter(2).endpoints))
    assert role.change is None
    (answer,) = [effect for effect in node.drain() if isinstance(effect, Respond)]
    assert isinstance(answer.response, AddRaftVoterResponse)
    assert (answer.later, answer.response.error_code) == (Later(7), ErrorCode.NOT_LEADER_OR_FOLLOWER)


def change_of(role: Leader) -> VoterChange:
    assert role.change is not None
    return role.change


@pytest.mark.parametrize("waits", [True, False])
def test_who_asks_to_be_a_voter_waits_for_the_commit_or_for_the_append(*, waits: bool) -> None:
    node, role = leading()
    role.change = None
    listeners = [add.Listener("CONTROLLER", "node4", 9004)]
    request = add.AddRaftVoterRequest(CLUSTER, 500, 4, directory_of(4), listeners, ack_when_committed=waits)
    later = voter_changes.on_add(node, request)
    assert isinstance(later, Later)
    change = change_of(role)
    assert (change.later, change.early) == ((later, None) if waits else (None, later))
    assert (change.until_ms, change.newcomer) == (node.now_ms + 500, voter(4))


def test_a_piece_of_a_snapshot_that_names_another_leader_is_believed_in_that() -> None:
    node = member(state=QuorumState(1, leader_id=2))
    send = Send(NodeAddress(2, "node2", 9002), FetchSnapshotRequest())
    followed = LeaderAt(2, voter(2).endpoints)
    node.role = Follower(followed, 1_000, 2_000, 2_000, fetching=Fetching(send), download=Download(SnapshotId(5, 1)))
    told = pieces.PartitionSnapshot(0, ErrorCode.NONE, pieces.SnapshotId(5, 1), pieces.LeaderIdAndEpoch(3, 4))
    response = pieces.FetchSnapshotResponse(0, 0, [pieces.TopicSnapshot(TOPIC, [told])])
    response.node_endpoints = [pieces.NodeEndpoint(3, "node3", 9003)]
    follower.on_snapshot_fetched(node, send, response)
    assert node.epoch == 4
    assert isinstance(node.role, Follower)
    assert (node.role.leader.node_id, node.role.download) == (3, None)


@pytest.mark.parametrize(
    ("node_id", "code"), [(-1, ErrorCode.INVALID_REQUEST), (0, ErrorCode.NONE), (1, ErrorCode.NONE)]
)
def test_node_zero_may_stand(node_id: int, code: ErrorCode) -> None:
    asked = PartitionData(0, 2, node_id, directory_of(1), directory_of(2), 1, 10, pre_vote=False)
    assert election.find_problem(member(), VoteRequest(CLUSTER), asked) is code


def test_a_leader_that_is_heard_ends_the_elections_without_an_outcome() -> None:
    node = member(state=QuorumState(1, leader_id=2))
    role = node.role = Follower(LeaderAt(2, voter(2).endpoints), 300, 1_100, 2_000)
    node.waits.rounds = 3
    follower.note_leader(node, role)
    assert (node.waits.rounds, role.timeout_at_ms, role.has_fetched) == (0, node.now_ms + 300, True)


def test_a_piece_of_a_snapshot_is_a_sign_of_life() -> None:
    node = member(state=QuorumState(1, leader_id=2))
    send = Send(NodeAddress(2, "node2", 9002), FetchSnapshotRequest())
    download = Download(SnapshotId(5, 1))
    followed = LeaderAt(2, voter(2).endpoints)
    role = node.role = Follower(followed, 300, 1_100, 2_000, fetching=Fetching(send), download=download)
    told = pieces.PartitionSnapshot(
        0, ErrorCode.NONE, pieces.SnapshotId(5, 1), pieces.LeaderIdAndEpoch(2, 1), size=10, unaligned_records=b"12345"
    )
    follower.on_snapshot_fetched(node, send, pieces.FetchSnapshotResponse(0, 0, [pieces.TopicSnapshot(TOPIC, [told])]))
    assert role.timeout_at_ms == node.now_ms + 300


def test_a_snapshot_that_was_damaged_is_downloaded_again_with_all_patience() -> None:
    node = member(state=QuorumState(1, leader_id=2))
    role = node.role = Follower(LeaderAt(2, voter(2).endpoints), 300, 1_100, 2_000)
    node.adopting = SnapshotId(5, 1)
    follower.on_refused(node, SnapshotId(5, 1))
    assert role.timeout_at_ms == node.now_ms + 300


@pytest.mark.parametrize(
    ("offset", "records"),
    [
        (-1, ["LeaderChangeMessage", "KRaftVersionRecord", "VotersRecord"]),
        (0, ["LeaderChangeMessage"]),
        (5, ["LeaderChangeMessage"]),
    ],
)
def test_a_leader_begins_with_the_voters_where_no_record_names_them(offset: int, records: list[str]) -> None:
    node = member()
    node.history = VoterHistory.of([voter(1), voter(2), voter(3)], kraft_version=1, offset=offset)
    assert [type(record).__name__ for record in transitions.make_opening_records(node, {1, 2})] == records


def test_an_address_of_another_cluster_is_not_taken() -> None:
    node, _ = leading()
    answer = voter_changes.on_update(node, UpdateRaftVoterRequest("elsewhere"))
    assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
