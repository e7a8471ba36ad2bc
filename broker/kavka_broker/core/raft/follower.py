"""The follower's side: fetch, write, sync, fetch on. The same for observers, which merely have no vote.

A fetch says where this log ends and means that it is on the disk up to there, so nothing is fetched before the sync
is done. The leader's answer is records, or where the logs part (cut there, and ask again), or that its log begins
later (take a snapshot). What was committed is neither cut nor replaced, whatever a leader says.

Who follows, and with which patience: a leader that is silent is given up after the fetch timeout. One whose
connection has died is asked once more at once, and given up after some tens of milliseconds.
"""

from typing import Final

from kavka_broker.core.raft import wire
from kavka_broker.core.raft.control import voter_records
from kavka_broker.core.raft.effects import AdoptSnapshot, AppendFetched, NodeAddress, SaveChunk, Send, Truncate
from kavka_broker.core.raft.log_view import SnapshotId
from kavka_broker.core.raft.member import Member
from kavka_broker.core.raft.quorum_state import NOBODY
from kavka_broker.core.raft.roles import NEVER_MS, Download, Fetching, Follower, Prospective, Unattached
from kavka_broker.core.raft.transitions import become_prospective, become_unattached, learn
from kavka_broker.core.raft.voter_history import VoterHistory
from kavka_broker.protocol.errors import ErrorCode, ProtocolViolation
from kavka_broker.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kavka_broker.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kavka_broker.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kavka_broker.protocol.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.fetch_response import PartitionData as Fetched
from kavka_broker.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse
from kavka_broker.protocol.records.batch import crc_is_valid, split_batches
from kavka_broker.protocol.uuids import ZERO

# --- BeginQuorumEpoch, EndQuorumEpoch --------------------------------------------------------------------------------


def on_begin(member: Member, request: BeginQuorumEpochRequest) -> BeginQuorumEpochResponse:
    """A new leader makes itself known."""
    if request.cluster_id not in (None, member.identity.cluster_id):
        member.warn("raft.begin.misdirected", cluster_id=request.cluster_id)
        return BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    asked = wire.only_partition(request.topics)
    if asked is None:
        return BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    error = _problem(member, asked.leader_id, asked.leader_epoch)
    if error is ErrorCode.NONE:
        endpoints = tuple((one.name, one.host, one.port) for one in request.leader_endpoints)
        learn(member, asked.leader_epoch, asked.leader_id, endpoints, is_leader_itself=True)
        is_here = request.voter_id in (NOBODY, member.node_id)
        if not is_here or not any(asked.voter_directory_id == one for one in _directories(member)):
            error = ErrorCode.INVALID_VOTER_KEY
    return wire.begin_answer(member, error)


def _directories(member: Member) -> tuple[bytes, bytes]:
    return ZERO, member.identity.directory_id


def _problem(member: Member, leader_id: int, epoch: int) -> ErrorCode:
    if epoch < member.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if not member.believes(epoch):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.INVALID_REQUEST if leader_id < 0 else ErrorCode.NONE


def on_end(member: Member, request: EndQuorumEpochRequest) -> EndQuorumEpochResponse:
    """The leader gives up. The first of its candidates stands at once, the others a little later each."""
    if request.cluster_id not in (None, member.identity.cluster_id):
        member.warn("raft.end.misdirected", cluster_id=request.cluster_id)
        return EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    asked = wire.only_partition(request.topics)
    if asked is None:
        return EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    error = _problem(member, asked.leader_id, asked.leader_epoch)
    if error is ErrorCode.NONE:
        endpoints = tuple((one.name, one.host, one.port) for one in request.leader_endpoints)
        learn(member, asked.leader_epoch, asked.leader_id, endpoints)
        role = member.role
        if isinstance(role, Follower) and role.leader.node_id == asked.leader_id:
            successors = [one.candidate_id for one in asked.preferred_candidates] or asked.preferred_successors
            lose_leader(member, role, delay_ms=_turn_ms(member, successors))
    return wire.end_answer(member, error)


def _turn_ms(member: Member, successors: list[int]) -> int:
    place = successors.index(member.node_id) if member.node_id in successors else len(successors)
    return place * member.settings.lost_delay_ms[1] if place else 0


def lose_leader(member: Member, role: Follower, *, delay_ms: int | None = None) -> None:
    """Nothing more is heard of the leader: from now on others may have our pre-vote, and soon we ask for theirs."""
    role.has_fetched = False
    if role.lost_at_ms is None:
        member.note("raft.leader.lost", leader=role.leader.node_id, epoch=member.epoch)
    if role.lost_at_ms is None or delay_ms is not None:
        role.lost_at_ms = member.after(member.soon_ms() if delay_ms is None else delay_ms)


# --- Fetch -----------------------------------------------------------------------------------------------------------


def on_fetched(member: Member, send: Send, response: FetchResponse | None) -> None:
    """The leader, or somebody who was asked who leads, has answered."""
    fetching = _fetching(member)
    if fetching is None or fetching.in_flight is not send:
        return  # of a former role
    fetching.in_flight = None
    fetching.retry_at_ms = member.after(member.settings.retry_backoff_ms)
    if response is None:
        return
    if response.error_code:
        member.warn("raft.fetch.refused", by=send.peer.node_id, error=ErrorCode(response.error_code).name)
        return
    answer: Fetched | None = wire.only_partition(response.responses)
    if answer is None:
        return
    leader = answer.current_leader
    endpoints = wire.told_endpoints(response, leader.leader_id, member.identity.listener)
    before = member.role
    learn(member, leader.leader_epoch, leader.leader_id, endpoints)
    if member.role is not before or not isinstance(before, Follower) or leader.leader_epoch != member.epoch:
        return
    if answer.error_code:
        _refused(member, before, send, ErrorCode(answer.error_code))
        return
    fetching.retry_at_ms = member.now_ms
    _heard(member, before)
    try:
        _take(member, before, answer)
    except _ContradictionError as problem:
        # What was committed stays, and others may be asked for their votes: such a leader should not go on.
        member.warn("raft.leader.contradicted", leader=before.leader.node_id, reason=str(problem))
        lose_leader(member, before)
        fetching.retry_at_ms = member.after(member.settings.fetch_wait_max_ms)
    except ProtocolViolation as problem:
        # A damaged batch, on the way or on the leader's disk: nothing of it is written, and it is asked for again.
        member.warn("raft.fetch.damaged", leader=before.leader.node_id, reason=str(problem))
        fetching.retry_at_ms = member.after(member.settings.fetch_wait_max_ms)


class _ContradictionError(ProtocolViolation):
    """The leader would take away what was committed."""


def _fetching(member: Member) -> Fetching | None:
    return member.role.fetching if isinstance(member.role, Follower | Unattached | Prospective) else None


def _refused(member: Member, role: Follower, send: Send, error: ErrorCode) -> None:
    member.note("raft.fetch.refused", by=send.peer.node_id, error=error.name)
    if error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        # In its own epoch: it has resigned, or come back without remembering that it led.
        lose_leader(member, role)


def _heard(member: Member, role: Follower) -> None:
    role.has_fetched = True
    role.lost_at_ms = None
    role.timeout_at_ms = member.after(role.patience_ms)
    member.rounds = 0


def _take(member: Member, role: Follower, answer: Fetched) -> None:
    if answer.diverging_epoch.epoch >= 0:
        _truncate(member, answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset)
    elif answer.snapshot_id.end_offset >= 0 and answer.snapshot_id.epoch >= 0:
        _want(member, role, SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch))
    else:
        if answer.records is not None and len(answer.records):
            _append(member, memoryview(answer.records))
        member.commit(min(answer.high_watermark, member.end_offset))


def _want(member: Member, role: Follower, snapshot: SnapshotId) -> None:
    if snapshot.end_offset < member.high_watermark:
        raise _ContradictionError(
            f"the leader of epoch {member.epoch} would put a snapshot that ends at {snapshot.end_offset} in the place "
            f"of the log, of which everything below {member.high_watermark} was committed"
        )
    role.download = Download(snapshot)
    member.note("raft.snapshot.wanted", end_offset=snapshot.end_offset, epoch=snapshot.epoch)


def _truncate(member: Member, epoch: int, end_offset: int) -> None:
    own_epoch, own_end = member.log.epoch_end(epoch)
    assert own_epoch <= epoch, f"epoch {own_epoch} was asked for as {epoch}"
    offset = own_end if own_epoch != epoch else min(own_end, end_offset)
    if offset < member.high_watermark:
        raise _ContradictionError(
            f"the leader of epoch {member.epoch} would cut the log at {offset}, "
            f"below {member.high_watermark}, which was committed"
        )
    if offset < member.end_offset:
        member.note("raft.log.truncated", from_offset=member.end_offset, to_offset=offset)
        member.emit(Truncate(offset))
        member.history.truncate(offset)
        member.moved_to(offset)
        member.flush()


def _append(member: Member, records: memoryview) -> None:
    """Write whole batches, after a look at every one."""
    assert member.adopting is None, f"the log is being replaced by {member.adopting}"
    size_bytes, end_offset, epoch = 0, member.end_offset, member.log.latest_epoch
    control = []
    for header, batch in split_batches(records):
        if header.base_offset != end_offset:
            raise ProtocolViolation(f"a batch at offset {header.base_offset} does not follow on {end_offset}")
        if header.last_offset_delta < 0:
            raise ProtocolViolation(f"the batch at offset {header.base_offset} ends before it begins")
        if not epoch <= header.leader_epoch <= member.epoch:
            raise ProtocolViolation(f"a batch of epoch {header.leader_epoch} after {epoch}, in {member.epoch}")
        if not crc_is_valid(batch):
            raise ProtocolViolation(f"the batch at offset {header.base_offset} has a broken checksum")
        if header.is_control:
            control += list(voter_records(batch))
        size_bytes += len(batch)
        end_offset, epoch = header.next_offset, header.leader_epoch
    if not size_bytes:
        return
    assert end_offset > member.end_offset, f"batches of {size_bytes} bytes end at {end_offset}"
    member.emit(AppendFetched(records[:size_bytes], end_offset))
    member.moved_to(end_offset)
    for offset, record in control:
        member.learn_control(offset, record)
    member.flush()


# --- FetchSnapshot ---------------------------------------------------------------------------------------------------


def on_snapshot_fetched(member: Member, send: Send, response: FetchSnapshotResponse | None) -> None:
    """A piece of the snapshot has come."""
    role = member.role
    if not isinstance(role, Follower) or role.fetching.in_flight is not send or role.download is None:
        return
    role.fetching.in_flight = None
    role.fetching.retry_at_ms = member.after(member.settings.retry_backoff_ms)
    if response is None:
        return
    if response.error_code:
        # Apache Kafka cannot say what is wrong with a piece, only that something is: see what a fetch says.
        member.warn("raft.snapshot.refused", by=send.peer.node_id, error=ErrorCode(response.error_code).name)
        role.download = None
        return
    answer = wire.only_partition(response.topics)
    if answer is None:
        return
    leader = answer.current_leader
    endpoints = wire.told_endpoints(response, leader.leader_id, member.identity.listener)
    learn(member, leader.leader_epoch, leader.leader_id, endpoints)
    if member.role is not role or leader.leader_epoch != member.epoch:
        return
    wanted = role.download
    told = SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch)
    piece = answer.unaligned_records if answer.unaligned_records is not None else b""
    is_next = told == wanted.snapshot and answer.position == wanted.position and len(piece) > 0
    if answer.error_code or not is_next:
        # It may be gone: begin again with a fetch, which names the newest.
        member.note("raft.snapshot.refused", by=send.peer.node_id, error=ErrorCode(answer.error_code).name)
        role.download = None
        return
    _heard(member, role)
    role.fetching.retry_at_ms = member.now_ms
    member.emit(SaveChunk(wanted.snapshot, wanted.position, piece))
    wanted.position += len(piece)
    assert member.adopting is None, f"{member.adopting} is being adopted already"
    if wanted.position >= answer.size:
        role.download = None
        member.adopting = wanted.snapshot
        member.emit(AdoptSnapshot(wanted.snapshot))


def on_adopted(member: Member, snapshot: SnapshotId, history: VoterHistory) -> None:
    """The log begins behind the snapshot now, and what it says of the voters holds."""
    assert member.adopting == snapshot, f"{snapshot} was adopted, {member.adopting} was asked for"
    member.adopting = None
    member.history = history
    member.commit(snapshot.end_offset)
    _wait_anew(member)


def on_refused(member: Member, snapshot: SnapshotId) -> None:
    """It was damaged: begin again."""
    assert member.adopting == snapshot, f"{snapshot} was refused, {member.adopting} was asked for"
    member.adopting = None
    member.warn("raft.snapshot.damaged", end_offset=snapshot.end_offset, epoch=snapshot.epoch)
    _wait_anew(member)


def _wait_anew(member: Member) -> None:
    if isinstance(member.role, Follower):
        member.role.timeout_at_ms = member.after(member.role.patience_ms)


# --- time ------------------------------------------------------------------------------------------------------------


def drive(member: Member, role: Follower) -> None:
    """Give the leader up, or go on fetching."""
    assert member.adopting is None or role.download is None, "what is adopted was downloaded before"
    if member.adopting is None and member.now_ms >= patience_ends_ms(role):
        if member.may_stand:
            become_prospective(member, role.leader)
        else:
            become_unattached(member, member.epoch)
        return
    if member.now_ms < role.fetching.retry_at_ms or role.fetching.in_flight is not None:
        return
    peer = member.leader_peer()
    if role.download is not None:
        request = wire.ask_snapshot(member, role.download.snapshot, role.download.position)
        role.fetching.in_flight = member.send(peer, request)
    elif _is_synced(member):
        # The first fetch of an epoch comes back at once: it is what shows that the leader lives.
        wait_max_ms = patient_ms(member) if role.has_fetched else 0
        role.fetching.in_flight = member.send(peer, wire.ask_fetch(member, wait_max_ms))


def patient_ms(member: Member) -> int:
    """How long a leader may keep a fetch: not until its answer would be too late."""
    settings = member.settings
    return min(settings.fetch_wait_max_ms, settings.request_timeout_ms // 2, settings.fetch_timeout_ms // 4)


def _is_synced(member: Member) -> bool:
    """Whether the log is as it is on disk; not within a call whose effects still have to change it."""
    return member.adopting is None and member.log.synced_offset == member.end_offset == member.log.end_offset


def discover(member: Member, role: Unattached | Prospective) -> None:
    """Ask somebody who leads. Whoever is asked may be the leader, and takes the question for an acknowledgement."""
    if member.now_ms < discovery_due_ms(member, role):
        return
    peers = _who_may_know(member, role)
    assert peers, "nobody can be asked who leads, and it is time to"
    role.fetching.retry_at_ms = member.after(DISCOVERY_INTERVAL_MS)
    peer = peers[member.random(0, len(peers) - 1)]
    role.fetching.in_flight = member.send(peer, wire.ask_fetch(member, 0))


def _who_may_know(member: Member, role: Unattached | Prospective) -> list[NodeAddress]:
    """The voters are where the log says, or have moved since. Whoever asks for votes asks them anyhow."""
    servers = [NodeAddress(-2 - index, *server) for index, server in enumerate(member.settings.bootstrap_servers)]
    if isinstance(role, Prospective):
        return servers
    voters = [member.peer(voter.node_id, voter.endpoints) for voter in member.others]
    return [*(peer for peer in voters if peer is not None), *servers]


def discovery_due_ms(member: Member, role: Unattached | Prospective) -> int:
    """When `discover` has something to do."""
    may_ask = role.fetching.in_flight is None and _is_synced(member) and _who_may_know(member, role)
    return role.fetching.retry_at_ms if may_ask else NEVER_MS


#: Between two questions who leads.
DISCOVERY_INTERVAL_MS: Final = 50


def patience_ends_ms(role: Follower) -> int:
    """When the leader is given up."""
    return role.timeout_at_ms if role.lost_at_ms is None else min(role.lost_at_ms, role.timeout_at_ms)


def due_ms(member: Member, role: Follower) -> int:
    """When `drive` has something to do."""
    due = [patience_ends_ms(role)] if member.adopting is None else []
    if role.fetching.in_flight is None and (role.download is not None or _is_synced(member)):
        due.append(role.fetching.retry_at_ms)
    return min(due, default=NEVER_MS)
