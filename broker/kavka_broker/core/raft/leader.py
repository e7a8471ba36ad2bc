"""The leader's side: serve fetches, move the high watermark, notice when nobody listens any more.

The high watermark is what a majority of the voters has on disk, and it moves only once that includes a record of the
leader's own epoch. A record of a former epoch on a majority of disks proves nothing: a candidate with a longer log of
another epoch could still win and cut it away (Raft, figure 8). That is why an epoch begins with a record.

Followers fetch what the leader itself has not synced yet; its own disk is one vote among the others.
"""

from typing import Final

from kavka_broker.core.raft import wire
from kavka_broker.core.raft.effects import Later, Send
from kavka_broker.core.raft.log_view import Agrees, SnapshotId, standing
from kavka_broker.core.raft.member import Member
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


def problem_with_epoch(member: Member, epoch: int) -> ErrorCode:
    """What keeps this node from serving a request of that epoch as its leader."""
    if epoch < member.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > member.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if isinstance(member.role, Leader) else ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- Fetch -----------------------------------------------------------------------------------------------------------


def on_fetch(member: Member, request: FetchRequest) -> FetchResponse | Later:
    """Answer a replica, or let it wait for news."""
    if request.cluster_id not in (None, member.identity.cluster_id):
        member.warn("raft.fetch.misdirected", cluster_id=request.cluster_id, replica=wire.replica_id(request))
        return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    asked: FetchPartition | None = wire.only_partition(request.topics)
    if asked is None:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    if not _makes_sense(request, asked):
        return wire.fetch_answer(member, ErrorCode.INVALID_REQUEST)
    error = problem_with_epoch(member, asked.current_leader_epoch)
    role = member.role
    if error is not ErrorCode.NONE or not isinstance(role, Leader):
        return wire.fetch_answer(member, error)
    _count(member, role, request, asked)
    response = _news(member, role, request, asked)
    if response is None and request.max_wait_ms > 0 and len(role.parked) < PARKED_MAX:
        later = member.later()
        role.parked.append(Parked(later, request, member.after(request.max_wait_ms)))
        assert len(role.parked) <= PARKED_MAX, len(role.parked)
        return later
    return response or _nothing_new(member, role)


def _makes_sense(request: FetchRequest, asked: FetchPartition) -> bool:
    is_in_range = request.max_wait_ms >= 0 and asked.fetch_offset >= 0
    return is_in_range and 0 <= asked.last_fetched_epoch <= asked.current_leader_epoch


def _count(member: Member, role: Leader, request: FetchRequest, asked: FetchPartition) -> None:
    """Take the fetch as a sign of life and, where the logs agree, for an acknowledgement."""
    key = (wire.replica_id(request), asked.replica_directory_id)
    votes = member.has_vote(*key)
    if isinstance(standing(member.log, asked.fetch_offset, asked.last_fetched_epoch), Agrees):
        role.replicas.fetched(key, asked.fetch_offset, member.log.end_offset, member.now_ms, votes=votes)
        move_high_watermark(member, role)
    else:
        role.replicas.heard(key, member.now_ms, votes=votes)


def _news(member: Member, role: Leader, request: FetchRequest, asked: FetchPartition) -> FetchResponse | None:
    """What there is to tell, or None where the replica knows it all."""
    high_watermark = told_watermark(member, role)
    replica = role.replicas.by_key.get((wire.replica_id(request), asked.replica_directory_id))
    stands = standing(member.log, asked.fetch_offset, asked.last_fetched_epoch)
    if not isinstance(stands, Agrees):
        return wire.fetch_answer(member, ErrorCode.NONE, high_watermark=high_watermark, standing=stands)
    records = member.log.read(asked.fetch_offset, min(request.max_bytes, member.settings.fetch_bytes_max))
    if not len(records) and known_watermark(asked, replica) >= high_watermark:
        return None
    if replica is not None:
        replica.told_high_watermark = high_watermark
    return wire.fetch_answer(member, ErrorCode.NONE, high_watermark=high_watermark, records=records)


def known_watermark(asked: FetchPartition, replica: Replica | None) -> int:
    """The high watermark that a replica knows. Before version 18 it does not say, but it knows what it was told."""
    if asked.high_watermark != wire.ANY_WATERMARK or replica is None:
        return asked.high_watermark
    return replica.told_high_watermark


def _nothing_new(member: Member, role: Leader) -> FetchResponse:
    return wire.fetch_answer(member, ErrorCode.NONE, high_watermark=told_watermark(member, role))


def told_watermark(member: Member, role: Leader) -> int:
    """What others are told: nothing, until the beginning of this epoch is committed."""
    return member.high_watermark if role.is_established else -1


def wake(member: Member, role: Leader) -> None:
    """Answer whoever waits for what has come: records, or a higher watermark."""
    news = (member.log.end_offset, told_watermark(member, role))
    assert news >= role.told, f"{role.told} was told, and now it is {news}: a leader takes nothing back"
    if news == role.told:
        return
    role.told = news
    parked, role.parked = role.parked, []
    for one in parked:
        response = _news(member, role, one.request, one.request.topics[0].partitions[0])
        if response is not None:
            member.answer(one.later, response)
        else:
            role.parked.append(one)


# --- FetchSnapshot ---------------------------------------------------------------------------------------------------


def on_fetch_snapshot(member: Member, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    """A piece of a snapshot, for a replica that is behind the beginning of the log."""
    if request.cluster_id not in (None, member.identity.cluster_id):
        member.warn("raft.fetch.misdirected", cluster_id=request.cluster_id, replica=request.replica_id)
        return FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)
    asked = wire.only_partition(request.topics)
    if asked is None:
        return wire.snapshot_answer(member, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = problem_with_epoch(member, asked.current_leader_epoch)
    role = member.role
    if error is not ErrorCode.NONE or not isinstance(role, Leader):
        return wire.snapshot_answer(member, error)
    wanted = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
    snapshot = next((one for one in member.log.snapshots if one == wanted and one.end_offset), None)
    if snapshot is None:
        return wire.snapshot_answer(member, ErrorCode.SNAPSHOT_NOT_FOUND)
    # Whatever is asked for: an answer is held in memory.
    wanted_bytes = max(min(request.max_bytes, member.settings.fetch_bytes_max), 1)
    piece = member.log.read_snapshot(snapshot, max(asked.position, 0), wanted_bytes)
    if piece is None:
        return wire.snapshot_answer(member, ErrorCode.SNAPSHOT_NOT_FOUND)
    size_bytes, records = piece
    if not 0 <= asked.position < size_bytes:
        return wire.snapshot_answer(member, ErrorCode.POSITION_OUT_OF_RANGE)
    key = (request.replica_id, asked.replica_directory_id)
    replica = role.replicas.heard(key, member.now_ms, votes=member.has_vote(*key))
    if replica is not None:
        replica.fetched_ms = member.now_ms
    return wire.snapshot_answer(
        member, ErrorCode.NONE, snapshot=snapshot, size_bytes=size_bytes, position=asked.position, records=records
    )


# --- high watermark --------------------------------------------------------------------------------------------------


def move_high_watermark(member: Member, role: Leader) -> bool:
    """Commit what a majority of the voters has."""
    assert role.start_offset <= member.end_offset, f"{role.start_offset} is behind the log's end"
    offset = role.replicas.committed(member.voters, member.node_id, member.log.synced_offset)
    if not covers_own_epoch(role, offset):
        return False
    role.is_established = True
    return member.commit(offset)


def covers_own_epoch(role: Leader, offset: int) -> bool:
    """Whether everything below `offset` includes a record of the leader's own epoch."""
    return offset > role.start_offset


# --- time ------------------------------------------------------------------------------------------------------------


def drive(member: Member, role: Leader) -> None:
    """Find the followers, let the fetches go that waited long enough, and give up without a majority."""
    if member.now_ms >= check_quorum_ms(member, role):
        member.warn("raft.majority.lost", epoch=member.epoch)
        become_resigned(member, is_final=False)
        return
    if member.now_ms >= role.begin_at_ms:
        role.begin_at_ms = member.after(begin_interval_ms(member))
        _begin(member, role)
    move_high_watermark(member, role)
    wake(member, role)
    for parked in [one for one in role.parked if member.now_ms >= one.until_ms]:
        role.parked.remove(parked)
        member.answer(parked.later, _nothing_new(member, role))


def _begin(member: Member, role: Leader) -> None:
    """Tell the voters that do not fetch who leads."""
    silent_since_ms = member.now_ms - begin_interval_ms(member)
    for voter in member.others:
        replica = role.replicas.of(voter)
        if replica is None or replica.fetched_ms <= silent_since_ms:
            member.send(member.peer(voter.node_id, voter.endpoints), wire.begin_epoch(member, voter))


def begin_interval_ms(member: Member) -> int:
    """How often a voter that does not fetch is told who leads."""
    return max(member.settings.fetch_timeout_ms // 2, 1)


def check_quorum_ms(member: Member, role: Leader) -> int:
    """When the lead is over unless a majority is heard of. Longer than followers wait, as in Kafka."""
    heard_ms = role.replicas.majority_heard_ms(member.voters, member.node_id, member.now_ms)
    return heard_ms + member.settings.fetch_timeout_ms * 3 // 2


def due_ms(member: Member, role: Leader) -> int:
    """When `drive` has something to do."""
    return min(check_quorum_ms(member, role), role.begin_at_ms, *(one.until_ms for one in role.parked), NEVER_MS)


def on_begun(member: Member, send: Send, response: BeginQuorumEpochResponse | None) -> None:
    """A voter has heard who leads, or knows better."""
    if response is None:
        return
    if response.error_code:
        member.warn("raft.begin.refused", by=send.peer.node_id, error=ErrorCode(response.error_code).name)
        return
    answer = wire.only_partition(response.topics)
    if answer is None:
        return
    if answer.error_code == ErrorCode.INVALID_VOTER_KEY:
        member.warn("raft.begin.refused", by=send.peer.node_id, error=ErrorCode.INVALID_VOTER_KEY.name)
    endpoints = wire.told_endpoints(response, answer.leader_id, member.identity.listener)
    learn(member, answer.leader_epoch, answer.leader_id, endpoints)
