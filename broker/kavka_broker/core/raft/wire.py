"""The quorum's messages, of which each names a topic and a partition that are always the same.

Built and taken apart here, so that the rules speak of votes and fetches. Answers carry the leader and its address,
because every node that asks is glad to learn it, whatever it asked for.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from kavka_broker.core.raft.log_view import Agrees, Diverges, SnapshotId, Standing, TooOld
from kavka_broker.core.raft.node_state import NodeState
from kavka_broker.core.raft.quorum_state import NOBODY
from kavka_broker.core.raft.roles import Endpoints
from kavka_broker.core.raft.voters import KRAFT_VERSIONS, Voter
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Buffer, Struct
from kavka_broker.protocol.messages import (
    add_raft_voter_request,
    fetch_request,
    fetch_response,
    fetch_snapshot_request,
    fetch_snapshot_response,
    update_raft_voter_request,
    update_raft_voter_response,
    vote_request,
    vote_response,
)
from kavka_broker.protocol.messages import (
    begin_quorum_epoch_request as begin_request,
)
from kavka_broker.protocol.messages import (
    begin_quorum_epoch_response as begin_response,
)
from kavka_broker.protocol.messages import (
    end_quorum_epoch_request as end_request,
)
from kavka_broker.protocol.messages import (
    end_quorum_epoch_response as end_response,
)
from kavka_broker.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kavka_broker.protocol.uuids import ONE, ZERO

TOPIC: Final = "__cluster_metadata"
TOPIC_ID: Final = ONE
PARTITION: Final = 0
#: The watermark of a fetch that does not name one.
ANY_WATERMARK: Final = (1 << 63) - 1

NO_SNAPSHOT: Final = SnapshotId(-1, -1)

E = TypeVar("E", bound=Struct)


def only_partition(topics: Sequence[Any]) -> Any | None:
    """The only partition in a message of the quorum, or None where the message is about any other."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    topic, partition = topics[0], topics[0].partitions[0]
    if getattr(topic, "topic_id", ZERO) != ZERO:
        is_ours = topic.topic_id == TOPIC_ID
    else:
        is_ours = TOPIC in {getattr(topic, name, None) for name in ("topic", "topic_name", "name")}
    index = next(getattr(partition, name) for name in _INDEXES if hasattr(partition, name))
    return partition if is_ours and index == PARTITION else None


_INDEXES: Final = ("partition_index", "partition", "index")


def node_endpoints(node: NodeState, kind: Callable[..., E]) -> list[E]:
    """The leader's address, as answers name it."""
    peer = node.leader_peer()
    return [] if peer is None else [kind(node_id=peer.node_id, host=peer.host, port=peer.port)]


def told_endpoints(response: Any, node_id: int, listener: str) -> Endpoints:
    """The address of a node in an answer."""
    return tuple(
        (listener, endpoint.host, endpoint.port) for endpoint in response.node_endpoints if endpoint.node_id == node_id
    )


def leader_id(node: NodeState) -> int:
    leader = node.leader
    return NOBODY if leader is None else leader.node_id


# --- Vote, BeginQuorumEpoch, EndQuorumEpoch --------------------------------------------------------------------------


def ask_vote(node: NodeState, voter: Voter, *, is_pre_vote: bool) -> vote_request.VoteRequest:
    assert voter.node_id != node.node_id, "nobody asks itself for a vote"
    partition = vote_request.PartitionData(
        replica_epoch=node.epoch,
        replica_id=node.node_id,
        replica_directory_id=node.identity.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=node.log.latest_epoch,
        last_offset=node.end_offset,
        pre_vote=is_pre_vote,
    )
    return vote_request.VoteRequest(
        node.identity.cluster_id, voter.node_id, [vote_request.TopicData(TOPIC, [partition])]
    )


def begin_epoch(node: NodeState, voter: Voter) -> begin_request.BeginQuorumEpochRequest:
    partition = begin_request.PartitionData(PARTITION, voter.directory_id, node.node_id, node.epoch)
    assert voter.node_id != node.node_id, "a leader does not tell itself that it leads"
    endpoints = [begin_request.LeaderEndpoint(*endpoint) for endpoint in node.identity.endpoints]
    topics = [begin_request.TopicData(TOPIC, [partition])]
    return begin_request.BeginQuorumEpochRequest(node.identity.cluster_id, voter.node_id, topics, endpoints)


def end_epoch(node: NodeState, successors: Sequence[Voter]) -> end_request.EndQuorumEpochRequest:
    """Tell voters that the epoch has ended; those of `successors` with the longest logs stand first."""
    assert all(voter.node_id != node.node_id for voter in successors), f"node {node.node_id} resigns: {successors}"
    partition = end_request.PartitionData(
        leader_id=node.node_id,
        leader_epoch=node.epoch,
        preferred_successors=[voter.node_id for voter in successors],
        preferred_candidates=[end_request.ReplicaInfo(voter.node_id, voter.directory_id) for voter in successors],
    )
    endpoints = [end_request.LeaderEndpoint(*endpoint) for endpoint in node.identity.endpoints]
    return end_request.EndQuorumEpochRequest(
        node.identity.cluster_id, [end_request.TopicData(TOPIC, [partition])], endpoints
    )


def vote_answer(node: NodeState, error: ErrorCode, *, is_granted: bool) -> vote_response.VoteResponse:
    assert not is_granted or error is ErrorCode.NONE, f"a vote is granted with {error.name}"
    partition = vote_response.PartitionData(PARTITION, error, leader_id(node), node.epoch, is_granted)
    topics = [vote_response.TopicData(TOPIC, [partition])]
    return vote_response.VoteResponse(0, topics, node_endpoints(node, vote_response.NodeEndpoint))


def begin_answer(node: NodeState, error: ErrorCode) -> begin_response.BeginQuorumEpochResponse:
    partition = begin_response.PartitionData(PARTITION, error, leader_id(node), node.epoch)
    topics = [begin_response.TopicData(TOPIC, [partition])]
    return begin_response.BeginQuorumEpochResponse(0, topics, node_endpoints(node, begin_response.NodeEndpoint))


def end_answer(node: NodeState, error: ErrorCode) -> end_response.EndQuorumEpochResponse:
    partition = end_response.PartitionData(PARTITION, error, leader_id(node), node.epoch)
    topics = [end_response.TopicData(TOPIC, [partition])]
    return end_response.EndQuorumEpochResponse(0, topics, node_endpoints(node, end_response.NodeEndpoint))


# --- Fetch -----------------------------------------------------------------------------------------------------------


def ask_fetch(node: NodeState, wait_max_ms: int) -> fetch_request.FetchRequest:
    """Fetch records from the log's end on, which is synced."""
    assert wait_max_ms >= 0, wait_max_ms
    partition = fetch_request.FetchPartition(
        partition=PARTITION,
        current_leader_epoch=node.epoch,
        fetch_offset=node.log.end_offset,
        last_fetched_epoch=node.log.latest_epoch,
        log_start_offset=node.log.start_offset,
        replica_directory_id=node.identity.directory_id,
        high_watermark=node.high_watermark,
    )
    return fetch_request.FetchRequest(
        cluster_id=node.identity.cluster_id,
        replica_state=fetch_request.ReplicaState(node.node_id),
        max_wait_ms=wait_max_ms,
        max_bytes=node.settings.fetch_bytes_max,
        topics=[fetch_request.FetchTopic(TOPIC, TOPIC_ID, [partition])],
    )


def replica_id(request: fetch_request.FetchRequest) -> int:
    """The id of the replica that fetches: in a field of its own since version 15."""
    return request.replica_state.replica_id if request.replica_state.replica_id >= 0 else request.replica_id


def fetch_answer(
    node: NodeState,
    error: ErrorCode,
    *,
    high_watermark: int = -1,
    standing: Standing | None = None,
    records: Buffer = b"",
) -> fetch_response.FetchResponse:
    partition = fetch_response.PartitionData(
        partition_index=PARTITION,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=node.log.start_offset,
        current_leader=fetch_response.LeaderIdAndEpoch(leader_id(node), node.epoch),
        records=records,
    )
    assert not len(records) or not isinstance(standing, Diverges | TooOld), f"records for who is at {standing}"
    assert error is ErrorCode.NONE or not (len(records) or standing), f"{error.name} comes with an answer"
    match standing:
        case Diverges(epoch, end_offset):
            partition.diverging_epoch = fetch_response.EpochEndOffset(epoch, end_offset)
        case TooOld(snapshot):
            partition.snapshot_id = fetch_response.SnapshotId(*snapshot)
        case Agrees() | None:
            pass
    return fetch_response.FetchResponse(
        responses=[fetch_response.FetchableTopicResponse(TOPIC, TOPIC_ID, [partition])],
        node_endpoints=node_endpoints(node, fetch_response.NodeEndpoint),
    )


# --- FetchSnapshot ---------------------------------------------------------------------------------------------------


def ask_snapshot(node: NodeState, snapshot: SnapshotId, position: int) -> fetch_snapshot_request.FetchSnapshotRequest:
    assert position >= 0, position
    partition = fetch_snapshot_request.PartitionSnapshot(
        PARTITION,
        node.epoch,
        fetch_snapshot_request.SnapshotId(*snapshot),
        position,
        node.identity.directory_id,
    )
    return fetch_snapshot_request.FetchSnapshotRequest(
        node.identity.cluster_id,
        node.node_id,
        node.settings.snapshot_chunk_bytes,
        [fetch_snapshot_request.TopicSnapshot(TOPIC, [partition])],
    )


def snapshot_answer(
    node: NodeState,
    error: ErrorCode,
    *,
    snapshot: SnapshotId = NO_SNAPSHOT,
    size_bytes: int = 0,
    position: int = 0,
    records: Buffer = b"",
) -> fetch_snapshot_response.FetchSnapshotResponse:
    assert error is ErrorCode.NONE or not len(records), f"{error.name} comes with bytes of {snapshot}"
    assert position + len(records) <= size_bytes, f"{len(records)} bytes at {position} of {size_bytes}"
    partition = fetch_snapshot_response.PartitionSnapshot(
        PARTITION,
        error,
        fetch_snapshot_response.SnapshotId(*snapshot),
        fetch_snapshot_response.LeaderIdAndEpoch(leader_id(node), node.epoch),
        size_bytes,
        position,
        records,
    )
    topics = [fetch_snapshot_response.TopicSnapshot(TOPIC, [partition])]
    endpoints = node_endpoints(node, fetch_snapshot_response.NodeEndpoint)
    return fetch_snapshot_response.FetchSnapshotResponse(0, 0, topics, endpoints)


# --- voters ----------------------------------------------------------------------------------------------------------


def ask_update(node: NodeState) -> update_raft_voter_request.UpdateRaftVoterRequest:
    """Tell the leader the addresses of this voter as they are now."""
    assert node.is_voter, f"node {node.node_id} would update a vote that it has not"
    return update_raft_voter_request.UpdateRaftVoterRequest(
        node.identity.cluster_id,
        node.epoch,
        node.node_id,
        node.identity.directory_id,
        [update_raft_voter_request.Listener(*endpoint) for endpoint in node.identity.endpoints],
        update_raft_voter_request.KRaftVersionFeature(*KRAFT_VERSIONS),
    )


def ask_to_join(node: NodeState) -> add_raft_voter_request.AddRaftVoterRequest:
    """Ask to join; answered when the record is appended, because this node is needed for its commit."""
    return add_raft_voter_request.AddRaftVoterRequest(
        node.identity.cluster_id,
        node.settings.request_timeout_ms,
        node.node_id,
        node.identity.directory_id,
        [add_raft_voter_request.Listener(*endpoint) for endpoint in node.identity.endpoints],
        ack_when_committed=False,
    )


def ask_to_remove(node: NodeState, voter: Voter) -> RemoveRaftVoterRequest:
    assert not node.is_self(voter), "nobody asks for its own removal"
    return RemoveRaftVoterRequest(node.identity.cluster_id, voter.node_id, voter.directory_id)


def update_answer(node: NodeState, error: ErrorCode) -> update_raft_voter_response.UpdateRaftVoterResponse:
    peer = node.leader_peer()
    host, port = (peer.host, peer.port) if peer is not None else ("", 0)
    leader = update_raft_voter_response.CurrentLeader(leader_id(node), node.epoch, host, port)
    return update_raft_voter_response.UpdateRaftVoterResponse(0, error, leader)
