"""The follower's side: fetch, write, sync, fetch on. The same for observers, which merely have no vote.

A fetch says where this log ends and means that it is on the disk up to there, so nothing is fetched before the sync
is done. The leader's answer is records, or where the logs part (cut there, and ask again), or that its log begins
later (take a snapshot). What was committed is neither cut nor replaced, whatever a leader says.

Who follows, and with which patience: a leader that is silent is given up after the fetch timeout. One whose
connection has died is asked once more at once, and given up after some tens of milliseconds.
"""

from typing import Final

from kavka_broker.core.authorization.acl_types import NODE_ADVICE
from kavka_broker.core.raft import wire
from kavka_broker.core.raft.effects import AdoptSnapshot, AppendFetched, NodeAddress, SaveChunk, Send, Truncate
from kavka_broker.core.raft.log_view import SnapshotId
from kavka_broker.core.raft.node_state import NodeState
from kavka_broker.core.raft.quorum_state import NOBODY
from kavka_broker.core.raft.roles import NEVER_MS, Download, Fetching, Follower, Prospective, Unattached
from kavka_broker.core.raft.transitions import become_prospective, become_unattached, learn
from kavka_broker.core.raft.voter_history import VoterHistory
from kavka_broker.core.raft.voter_records import voter_records
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


def on_begin(node: NodeState, request: BeginQuorumEpochRequest) -> BeginQuorumEpochResponse:
    """Follow a new leader that makes itself known."""
    if request.cluster_id not in (None, node.identity.cluster_id):
        node.effects.warn("raft.begin.misdirected", cluster_id=request.cluster_id)
        return BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    asked = wire.only_partition(request.topics)
    if asked is None:
        return BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    error = _problem(node, asked.leader_id, asked.leader_epoch)
    if error is ErrorCode.NONE:
        endpoints = tuple((endpoint.name, endpoint.host, endpoint.port) for endpoint in request.leader_endpoints)
        learn(node, asked.leader_epoch, asked.leader_id, endpoints, is_leader_itself=True)
        is_here = request.voter_id in (NOBODY, node.node_id)
        if not is_here or not any(asked.voter_directory_id == directory_id for directory_id in _directories(node)):
            error = ErrorCode.INVALID_VOTER_KEY
    return wire.begin_answer(node, error)


def _directories(node: NodeState) -> tuple[bytes, bytes]:
    return ZERO, node.identity.directory_id


def _problem(node: NodeState, leader_id: int, epoch: int) -> ErrorCode:
    if epoch < node.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if not node.believes(epoch):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.INVALID_REQUEST if leader_id < 0 else ErrorCode.NONE


def on_end(node: NodeState, request: EndQuorumEpochRequest) -> EndQuorumEpochResponse:
    """Stand for election as the leader resigns: the first of its candidates at once, the others a little later each."""
    if request.cluster_id not in (None, node.identity.cluster_id):
        node.effects.warn("raft.end.misdirected", cluster_id=request.cluster_id)
        return EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    asked = wire.only_partition(request.topics)
    if asked is None:
        return EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
    error = _problem(node, asked.leader_id, asked.leader_epoch)
    if error is ErrorCode.NONE:
        endpoints = tuple((endpoint.name, endpoint.host, endpoint.port) for endpoint in request.leader_endpoints)
        learn(node, asked.leader_epoch, asked.leader_id, endpoints)
        role = node.role
        if isinstance(role, Follower) and role.leader.node_id == asked.leader_id:
            successors = [
                candidate.candidate_id for candidate in asked.preferred_candidates
            ] or asked.preferred_successors
            lose_leader(node, role, delay_ms=_turn_ms(node, successors))
    return wire.end_answer(node, error)


def _turn_ms(node: NodeState, successors: list[int]) -> int:
    place = successors.index(node.node_id) if node.node_id in successors else len(successors)
    return place * node.settings.lost_delay_ms[1] if place else 0


def lose_leader(node: NodeState, role: Follower, *, delay_ms: int | None = None) -> None:
    """Lose the leader: other voters may now have this node's pre-vote, and soon this node asks for theirs."""
    assert node.role is role, f"node {node.node_id} loses the leader of a former role"
    role.has_fetched = False
    if role.lost_at_ms is None:
        node.effects.note("raft.leader.lost", leader=role.leader.node_id, epoch=node.epoch)
    if role.lost_at_ms is None or delay_ms is not None:
        role.lost_at_ms = node.after(node.waits.soon_ms() if delay_ms is None else delay_ms)


# --- Fetch -----------------------------------------------------------------------------------------------------------


def on_fetched(node: NodeState, send: Send, response: FetchResponse | None) -> None:
    """Take the answer of the leader, or of a node that was asked for the leader."""
    fetching = _fetching(node)
    if fetching is None or fetching.in_flight is not send:
        return  # the fetch is of a former role
    fetching.in_flight = None
    fetching.retry_at_ms = node.after(node.settings.retry_backoff_ms)
    if response is None:
        return
    if response.error_code:
        error = ErrorCode(response.error_code)
        node.effects.warn("raft.fetch.refused", by=send.peer.node_id, error=error.name, **_advice(error))
        return
    answer: Fetched | None = wire.only_partition(response.responses)
    if answer is None:
        return
    leader = answer.current_leader
    endpoints = wire.told_endpoints(response, leader.leader_id, node.identity.listener)
    before = node.role
    learn(node, leader.leader_epoch, leader.leader_id, endpoints)
    if node.role is not before or not isinstance(before, Follower) or leader.leader_epoch != node.epoch:
        return
    if answer.error_code:
        _refused(node, before, send, ErrorCode(answer.error_code))
        return
    fetching.retry_at_ms = node.now_ms
    note_leader(node, before)
    try:
        _take(node, before, answer)
    except _ContradictionError as problem:
        # Committed records stay, and other voters may be asked for their votes: such a leader should not go on.
        node.effects.warn("raft.leader.contradicted", leader=before.leader.node_id, reason=str(problem))
        lose_leader(node, before)
        fetching.retry_at_ms = node.after(node.settings.fetch_wait_max_ms)
    except ProtocolViolation as problem:
        # A batch is damaged, on the way or on the leader's disk: none of it is written, and it is fetched again.
        node.effects.warn("raft.fetch.damaged", leader=before.leader.node_id, reason=str(problem))
        fetching.retry_at_ms = node.after(node.settings.fetch_wait_max_ms)


class _ContradictionError(ProtocolViolation):
    """The leader would take away committed records."""


def _fetching(node: NodeState) -> Fetching | None:
    return node.role.fetching if isinstance(node.role, Follower | Unattached | Prospective) else None


def _advice(error: ErrorCode) -> dict[str, str]:
    return {"fix": NODE_ADVICE} if error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED else {}


def _refused(node: NodeState, role: Follower, send: Send, error: ErrorCode) -> None:
    node.effects.note("raft.fetch.refused", by=send.peer.node_id, error=error.name)
    if error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        # The leader of this epoch has resigned, or was restarted without remembering that it led.
        lose_leader(node, role)


def note_leader(node: NodeState, role: Follower) -> None:
    """Note that the leader lives: patience begins again."""
    assert node.role is role, f"node {node.node_id} hears the leader of a former role"
    role.has_fetched = True
    role.lost_at_ms = None
    role.timeout_at_ms = node.after(role.patience_ms)
    node.waits.rounds = 0


def _take(node: NodeState, role: Follower, answer: Fetched) -> None:
    assert role.leader.node_id != node.node_id, f"node {node.node_id} follows itself"
    if answer.diverging_epoch.epoch >= 0:
        _truncate(node, answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset)
    elif answer.snapshot_id.end_offset >= 0 and answer.snapshot_id.epoch >= 0:
        want_snapshot(node, role, SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch))
    else:
        if answer.records is not None and len(answer.records):
            _append(node, memoryview(answer.records))
        node.commit(min(answer.high_watermark, node.end_offset))


def want_snapshot(node: NodeState, role: Follower, snapshot: SnapshotId) -> None:
    """Begin to download a snapshot. Raises ProtocolViolation where it ends before what was committed."""
    assert node.adopting is None, f"{node.adopting} is being adopted, and {snapshot} is wanted"
    assert role.download is None, f"{role.download} is under way, and {snapshot} is wanted"
    if snapshot.end_offset < node.high_watermark:
        raise _ContradictionError(
            f"the leader of epoch {node.epoch} would put a snapshot that ends at {snapshot.end_offset} in the place "
            f"of the log, of which everything below {node.high_watermark} was committed"
        )
    role.download = Download(snapshot)
    node.effects.note("raft.snapshot.wanted", end_offset=snapshot.end_offset, epoch=snapshot.epoch)


def _truncate(node: NodeState, epoch: int, end_offset: int) -> None:
    own_epoch, own_end = node.log.epoch_end(epoch)
    assert node.adopting is None, f"the log is cut while {node.adopting} replaces it"
    if own_epoch > epoch:
        raise _ContradictionError(
            f"the leader of epoch {node.epoch} knows nothing behind epoch {epoch}, "
            f"and the log begins behind a snapshot of epoch {own_epoch}"
        )
    offset = own_end if own_epoch != epoch else min(own_end, end_offset)
    if offset < node.high_watermark:
        raise _ContradictionError(
            f"the leader of epoch {node.epoch} would cut the log at {offset}, "
            f"below {node.high_watermark}, which was committed"
        )
    if offset < node.end_offset:
        node.effects.note("raft.log.truncated", from_offset=node.end_offset, to_offset=offset)
        node.effects.emit(Truncate(offset))
        node.history.truncate(offset)
        node.moved_to(offset)
        node.effects.flush()


def _append(node: NodeState, records: memoryview) -> None:
    """Append whole batches, after a check of each. Raises ProtocolViolation."""
    assert node.adopting is None, f"the log is being replaced by {node.adopting}"
    size_bytes, end_offset, epoch = 0, node.end_offset, node.log.latest_epoch
    control = []
    for header, batch in split_batches(records):
        if header.base_offset != end_offset:
            raise ProtocolViolation(f"a batch at offset {header.base_offset} does not follow on {end_offset}")
        if header.last_offset_delta < 0:
            raise ProtocolViolation(f"the batch at offset {header.base_offset} ends before it begins")
        if not epoch <= header.leader_epoch <= node.epoch:
            raise ProtocolViolation(f"a batch of epoch {header.leader_epoch} after {epoch}, in {node.epoch}")
        if not crc_is_valid(batch):
            raise ProtocolViolation(f"the batch at offset {header.base_offset} has a broken checksum")
        if header.is_control:
            control += list(voter_records(batch))
        size_bytes += len(batch)
        end_offset, epoch = header.next_offset, header.leader_epoch
    if not size_bytes:
        return
    assert end_offset > node.end_offset, f"batches of {size_bytes} bytes end at {end_offset}"
    node.effects.emit(AppendFetched(records[:size_bytes], end_offset))
    node.moved_to(end_offset)
    for offset, record in control:
        node.learn_control(offset, record)
    node.effects.flush()


# --- FetchSnapshot ---------------------------------------------------------------------------------------------------


def on_snapshot_fetched(node: NodeState, send: Send, response: FetchSnapshotResponse | None) -> None:
    """Take a piece of the snapshot."""
    role = node.role
    if not isinstance(role, Follower) or role.fetching.in_flight is not send or role.download is None:
        return
    role.fetching.in_flight = None
    role.fetching.retry_at_ms = node.after(node.settings.retry_backoff_ms)
    if response is None:
        return
    if response.error_code:
        # Apache Kafka reports only that a piece is wrong, and not its fault: see how a refused fetch is handled.
        node.effects.warn("raft.snapshot.refused", by=send.peer.node_id, error=ErrorCode(response.error_code).name)
        role.download = None
        return
    answer = wire.only_partition(response.topics)
    if answer is None:
        return
    leader = answer.current_leader
    endpoints = wire.told_endpoints(response, leader.leader_id, node.identity.listener)
    learn(node, leader.leader_epoch, leader.leader_id, endpoints)
    if node.role is not role or leader.leader_epoch != node.epoch:
        return
    wanted = role.download
    told = SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch)
    piece = answer.unaligned_records if answer.unaligned_records is not None else b""
    is_next = told == wanted.snapshot and answer.position == wanted.position and len(piece) > 0
    if answer.error_code or not is_next:
        # The snapshot may be deleted: begin again with a fetch, which names the newest.
        node.effects.note("raft.snapshot.refused", by=send.peer.node_id, error=ErrorCode(answer.error_code).name)
        role.download = None
        return
    note_leader(node, role)
    role.fetching.retry_at_ms = node.now_ms
    node.effects.emit(SaveChunk(wanted.snapshot, wanted.position, piece))
    wanted.position += len(piece)
    assert node.adopting is None, f"{node.adopting} is being adopted already"
    if wanted.position >= answer.size:
        role.download = None
        node.adopting = wanted.snapshot
        node.effects.emit(AdoptSnapshot(wanted.snapshot))


def on_adopted(node: NodeState, snapshot: SnapshotId, history: VoterHistory) -> None:
    """Go on with a log that begins behind the snapshot; the snapshot's voters are in force."""
    assert node.adopting == snapshot, f"{snapshot} was adopted, {node.adopting} was asked for"
    node.adopting = None
    node.history = history
    node.commit(snapshot.end_offset)
    assert node.high_watermark >= snapshot.end_offset, f"{snapshot} is committed as a whole"
    _wait_anew(node)


def on_refused(node: NodeState, snapshot: SnapshotId) -> None:
    """Download again after a snapshot that was damaged."""
    assert node.adopting == snapshot, f"{snapshot} was refused, {node.adopting} was asked for"
    node.adopting = None
    node.effects.warn("raft.snapshot.damaged", end_offset=snapshot.end_offset, epoch=snapshot.epoch)
    _wait_anew(node)


def _wait_anew(node: NodeState) -> None:
    if isinstance(node.role, Follower):
        node.role.timeout_at_ms = node.after(node.role.patience_ms)


# --- time ------------------------------------------------------------------------------------------------------------


def drive(node: NodeState, role: Follower) -> None:
    """Give the leader up, or go on fetching."""
    assert node.adopting is None or role.download is None, "what is adopted was downloaded before"
    if node.adopting is None and node.now_ms >= patience_ends_ms(role):
        if node.may_stand:
            become_prospective(node, role.leader)
        else:
            become_unattached(node, node.epoch)
        return
    if node.now_ms < role.fetching.retry_at_ms or role.fetching.in_flight is not None:
        return
    peer = node.leader_peer()
    if role.download is not None:
        request = wire.ask_snapshot(node, role.download.snapshot, role.download.position)
        role.fetching.in_flight = node.effects.send(peer, request)
    elif is_synced(node):
        # The first fetch of an epoch does not wait: its answer shows that the leader lives.
        wait_max_ms = patient_ms(node) if role.has_fetched else 0
        role.fetching.in_flight = node.effects.send(peer, wire.ask_fetch(node, wait_max_ms))


def patient_ms(node: NodeState) -> int:
    """Milliseconds that a leader may hold a fetch: its answer must not come too late."""
    settings = node.settings
    return min(settings.fetch_wait_max_ms, settings.request_timeout_ms // 2, settings.fetch_timeout_ms // 4)


def is_synced(node: NodeState) -> bool:
    """Whether the log is as it is on disk; not within a call whose effects still have to change it."""
    return node.adopting is None and node.log.synced_offset == node.end_offset == node.log.end_offset


def discover(node: NodeState, role: Unattached | Prospective) -> None:
    """Ask a node for the leader. If it leads itself, it takes this fetch as an acknowledgement."""
    if node.now_ms < discovery_due_ms(node, role):
        return
    peers = _who_may_know(node, role)
    assert peers, "nobody can be asked who leads, and it is time to"
    assert role.fetching.in_flight is None, f"{role.fetching.in_flight} is not answered"
    role.fetching.retry_at_ms = node.after(DISCOVERY_INTERVAL_MS)
    peer = peers[node.random(0, len(peers) - 1)]
    role.fetching.in_flight = node.effects.send(peer, wire.ask_fetch(node, 0))


def _who_may_know(node: NodeState, role: Unattached | Prospective) -> list[NodeAddress]:
    """Nodes that may know the leader: voters may have moved, and a prospective node asks them for votes anyhow."""
    servers = [NodeAddress(-2 - index, *server) for index, server in enumerate(node.settings.bootstrap_servers)]
    if isinstance(role, Prospective):
        return servers
    voters = [node.peer(voter.node_id, voter.endpoints) for voter in node.others]
    return [*(peer for peer in voters if peer is not None), *servers]


def discovery_due_ms(node: NodeState, role: Unattached | Prospective) -> int:
    """The time at which `discover` has something to do."""
    may_ask = role.fetching.in_flight is None and is_synced(node) and _who_may_know(node, role)
    return role.fetching.retry_at_ms if may_ask else NEVER_MS


#: The time between two searches for the leader.
DISCOVERY_INTERVAL_MS: Final = 50


def patience_ends_ms(role: Follower) -> int:
    """The time at which the leader is given up."""
    return role.timeout_at_ms if role.lost_at_ms is None else min(role.lost_at_ms, role.timeout_at_ms)


def due_ms(node: NodeState, role: Follower) -> int:
    """The time at which `drive` has something to do."""
    due = [patience_ends_ms(role)] if node.adopting is None else []
    if role.fetching.in_flight is None and (role.download is not None or is_synced(node)):
        due.append(role.fetching.retry_at_ms)
    return min(due, default=NEVER_MS)
