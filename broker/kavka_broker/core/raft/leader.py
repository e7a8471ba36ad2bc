"""The leader's side: serve fetches, move the high watermark, notice when no majority listens any more.

The high watermark is what a majority of the voters has on disk, and it moves only once that includes a record of the
leader's own epoch. A record of a former epoch on a majority of disks proves nothing: a candidate with a longer log of
another epoch could still win and cut it away (Raft, figure 8). That is why an epoch begins with a record.

Followers fetch what the leader itself has not synced yet; its own disk is one vote among the others.
"""

from typing import Final

from kavka_broker.core.raft import wire
from kavka_broker.core.raft.effects import Later, Send
from kavka_broker.core.raft.log_view import Agrees, SnapshotId, standing
from kavka_broker.core.raft.node_state import NodeState
from kavka_broker.core.raft.replicas import Replica
from kavka_broker.core.raft.roles import NEVER_MS, Leader, Parked
from kavka_broker.core.raft.transitions import become_resigned, learn
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kavka_broker.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse

#: Fetches that wait at a time; more are answered at once.
PARKED_MAX: Final = 1_000


def problem_with_epoch(node: NodeState, epoch: int) -> ErrorCode:
    """The error for a request of that epoch, where this node is not its leader."""
    if epoch < node.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > node.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if isinstance(node.role, Leader) else ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- Fetch -----------------------------------------------------------------------------------------------------------


def on_fetch(node: NodeState, request: FetchRequest) -> FetchResponse | Later:
    """Answer a replica, or let its fetch wait for records."""
    if request.cluster_id not in (None, node.identity.cluster_id):
        node.effects.warn("raft.fetch.misdirected", cluster_id=request.cluster_id, replica=wire.replica_id(request))
        return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    asked: FetchPartition | None = wire.only_partition(request.topics)
    if asked is None:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    if not _makes_sense(request, asked):
        return wire.fetch_answer(node, ErrorCode.INVALID_REQUEST)
    error = problem_with_epoch(node, asked.current_leader_epoch)
    role = node.role
    if error is not ErrorCode.NONE or not isinstance(role, Leader):
        return wire.fetch_answer(node, error)
    _count(node, role, request, asked)
    response = _news(node, role, request, asked)
    if response is None and request.max_wait_ms > 0 and len(role.parked) < PARKED_MAX:
        later = node.effects.later()
        role.parked.append(Parked(later, request, node.after(request.max_wait_ms)))
        assert len(role.parked) <= PARKED_MAX, len(role.parked)
        return later
    return response or _nothing_new(node, role)


def _makes_sense(request: FetchRequest, asked: FetchPartition) -> bool:
    is_in_range = request.max_wait_ms >= 0 and asked.fetch_offset >= 0
    return is_in_range and 0 <= asked.last_fetched_epoch <= asked.current_leader_epoch


def _count(node: NodeState, role: Leader, request: FetchRequest, asked: FetchPartition) -> None:
    """Count the fetch as a sign of life and, where the logs agree, as an acknowledgement."""
    key = (wire.replica_id(request), asked.replica_directory_id)
    votes = node.has_vote(*key)
    if isinstance(standing(node.log, asked.fetch_offset, asked.last_fetched_epoch), Agrees):
        role.replicas.fetched(key, asked.fetch_offset, node.log.end_offset, node.now_ms, votes=votes)
        move_high_watermark(node, role)
    else:
        role.replicas.heard(key, node.now_ms, votes=votes)


def _news(node: NodeState, role: Leader, request: FetchRequest, asked: FetchPartition) -> FetchResponse | None:
    """The answer with what the replica does not know yet, or None where it knows it all."""
    high_watermark = told_watermark(node, role)
    assert high_watermark <= node.log.end_offset, (
        f"{high_watermark} is committed, the log ends at {node.log.end_offset}"
    )
    replica = role.replicas.by_key.get((wire.replica_id(request), asked.replica_directory_id))
    stands = standing(node.log, asked.fetch_offset, asked.last_fetched_epoch)
    if not isinstance(stands, Agrees):
        return wire.fetch_answer(node, ErrorCode.NONE, high_watermark=high_watermark, standing=stands)
    records = node.log.read(asked.fetch_offset, min(request.max_bytes, node.settings.fetch_bytes_max))
    if not len(records) and known_watermark(asked, replica) >= high_watermark:
        return None
    if replica is not None:
        replica.told_high_watermark = high_watermark
    return wire.fetch_answer(node, ErrorCode.NONE, high_watermark=high_watermark, records=records)


def known_watermark(asked: FetchPartition, replica: Replica | None) -> int:
    """The high watermark that a replica knows. Before version 18 it does not send it, but it knows what it was told."""
    if asked.high_watermark != wire.ANY_WATERMARK or replica is None:
        return asked.high_watermark
    return replica.told_high_watermark


def _nothing_new(node: NodeState, role: Leader) -> FetchResponse:
    return wire.fetch_answer(node, ErrorCode.NONE, high_watermark=told_watermark(node, role))


def told_watermark(node: NodeState, role: Leader) -> int:
    """The high watermark that replicas are told: -1 until the beginning of this epoch is committed."""
    return node.high_watermark if role.is_established else -1


def wake(node: NodeState, role: Leader) -> None:
    """Answer waiting fetches where there are records or a higher watermark for them."""
    news = (node.log.end_offset, told_watermark(node, role))
    assert news >= role.told, f"{role.told} was told, and now it is {news}: a leader takes nothing back"
    if news == role.told:
        return
    role.told = news
    parked, role.parked = role.parked, []
    for waiting in parked:
        response = _news(node, role, waiting.request, waiting.request.topics[0].partitions[0])
        if response is not None:
            node.effects.answer(waiting.later, response)
        else:
            role.parked.append(waiting)


# --- FetchSnapshot ---------------------------------------------------------------------------------------------------


def on_fetch_snapshot(node: NodeState, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    """Answer with a piece of a snapshot, for a replica that is behind the beginning of the log."""
    if request.cluster_id not in (None, node.identity.cluster_id):
        node.effects.warn("raft.fetch.misdirected", cluster_id=request.cluster_id, replica=request.replica_id)
        return FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)
    asked = wire.only_partition(request.topics)
    if asked is None:
        return wire.snapshot_answer(node, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = problem_with_epoch(node, asked.current_leader_epoch)
    role = node.role
    if error is not ErrorCode.NONE or not isinstance(role, Leader):
        return wire.snapshot_answer(node, error)
    wanted = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
    snapshot = next((kept for kept in node.log.snapshots if kept == wanted and kept.end_offset), None)
    if snapshot is None:
        return wire.snapshot_answer(node, ErrorCode.SNAPSHOT_NOT_FOUND)
    # The bytes are bounded whatever the request asks for: an answer is held in memory.
    wanted_bytes = max(min(request.max_bytes, node.settings.fetch_bytes_max), 1)
    piece = node.log.read_snapshot(snapshot, max(asked.position, 0), wanted_bytes)
    if piece is None:
        return wire.snapshot_answer(node, ErrorCode.SNAPSHOT_NOT_FOUND)
    size_bytes, records = piece
    if not 0 <= asked.position < size_bytes:
        return wire.snapshot_answer(node, ErrorCode.POSITION_OUT_OF_RANGE)
    assert asked.position + len(records) <= size_bytes, f"{len(records)} bytes at {asked.position} of {size_bytes}"
    key = (request.replica_id, asked.replica_directory_id)
    replica = role.replicas.heard(key, node.now_ms, votes=node.has_vote(*key))
    if replica is not None:
        assert replica.fetched_ms <= node.now_ms, f"{key} was heard of at {replica.fetched_ms}, it is {node.now_ms}"
        replica.fetched_ms = node.now_ms
    return wire.snapshot_answer(
        node, ErrorCode.NONE, snapshot=snapshot, size_bytes=size_bytes, position=asked.position, records=records
    )


# --- high watermark --------------------------------------------------------------------------------------------------


def move_high_watermark(node: NodeState, role: Leader) -> bool:
    """Commit the records that a majority of the voters has."""
    assert role.start_offset <= node.end_offset, f"{role.start_offset} is behind the log's end"
    assert node.log.synced_offset <= node.end_offset, f"{node.log.synced_offset} of {node.end_offset} is synced"
    offset = role.replicas.committed(node.voters, node.node_id, node.log.synced_offset)
    if not covers_own_epoch(role, offset):
        return False
    role.is_established = True
    return node.commit(offset)


def covers_own_epoch(role: Leader, offset: int) -> bool:
    """Whether everything below `offset` includes a record of the leader's own epoch."""
    return offset > role.start_offset


# --- time ------------------------------------------------------------------------------------------------------------


def drive(node: NodeState, role: Leader) -> None:
    """Notify the voters, answer fetches that waited long enough, and resign without a majority."""
    if node.now_ms >= check_quorum_ms(node, role):
        node.effects.warn("raft.majority.lost", epoch=node.epoch)
        become_resigned(node, is_final=False)
        return
    if node.now_ms >= role.begin_at_ms:
        role.begin_at_ms = node.after(begin_interval_ms(node))
        announce_leader(node, role)
    move_high_watermark(node, role)
    wake(node, role)
    for parked in [waiting for waiting in role.parked if node.now_ms >= waiting.until_ms]:
        role.parked.remove(parked)
        node.effects.answer(parked.later, _nothing_new(node, role))
    assert all(node.now_ms < waiting.until_ms for waiting in role.parked), "a fetch waits for longer than it may"


def announce_leader(node: NodeState, role: Leader) -> None:
    """Tell voters that do not fetch which node leads."""
    silent_since_ms = node.now_ms - begin_interval_ms(node)
    for voter in node.others:
        replica = role.replicas.of(voter)
        if replica is None or replica.fetched_ms <= silent_since_ms:
            node.effects.send(node.peer(voter.node_id, voter.endpoints), wire.begin_epoch(node, voter))


def begin_interval_ms(node: NodeState) -> int:
    """Milliseconds between two such notices to a voter that does not fetch."""
    return max(node.settings.fetch_timeout_ms // 2, 1)


def check_quorum_ms(node: NodeState, role: Leader) -> int:
    """The time at which the lead ends unless a majority is heard of. Longer than followers wait, as in Kafka."""
    heard_ms = role.replicas.majority_heard_ms(node.voters, node.node_id, node.now_ms)
    assert heard_ms <= node.now_ms, f"a majority is heard at {heard_ms}, and it is {node.now_ms}"
    return heard_ms + node.settings.fetch_timeout_ms * 3 // 2


def due_ms(node: NodeState, role: Leader) -> int:
    """The time at which `drive` has something to do."""
    return min(check_quorum_ms(node, role), role.begin_at_ms, *(waiting.until_ms for waiting in role.parked), NEVER_MS)


def on_begun(node: NodeState, send: Send, response: BeginQuorumEpochResponse | None) -> None:
    """Take a voter's answer: it has heard of this leader, or knows a newer epoch."""
    if response is None:
        return
    if response.error_code:
        node.effects.warn("raft.begin.refused", by=send.peer.node_id, error=ErrorCode(response.error_code).name)
        return
    answer = wire.only_partition(response.topics)
    if answer is None:
        return
    if answer.error_code == ErrorCode.INVALID_VOTER_KEY:
        node.effects.warn("raft.begin.refused", by=send.peer.node_id, error=ErrorCode.INVALID_VOTER_KEY.name)
    endpoints = wire.told_endpoints(response, answer.leader_id, node.identity.listener)
    learn(node, answer.leader_epoch, answer.leader_id, endpoints)
