"""Voters added, removed and moved while the quorum runs (KIP-853).

One at a time: two sets of voters that differ by one voter always share a member of any two majorities. So a change
has to wait until the former one is committed, and until the leader has committed something of its own epoch. The new
set counts from the moment its record is appended.

    add     the newcomer speaks the quorum's kraft.version (it is asked) and has caught up; then the record
    remove  the record; a leader that removes itself leads on, without a vote of its own, until that is committed
    update  other endpoints for a voter; answered as soon as the record is appended

With `kraft.version` 0 the voters are those of the configuration, and all of this is refused.
"""

from typing import Final

from kavka_broker.core.raft import wire
from kavka_broker.core.raft.effects import Later, Send
from kavka_broker.core.raft.leader import problem_with_epoch
from kavka_broker.core.raft.node_state import NodeState
from kavka_broker.core.raft.roles import NEVER_MS, Leader, VoterChange, endpoint_of
from kavka_broker.core.raft.transitions import become_resigned
from kavka_broker.core.raft.voters import Voter, voters_record
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kavka_broker.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kavka_broker.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kavka_broker.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kavka_broker.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kavka_broker.protocol.uuids import ZERO, to_text

FEATURE: Final = "kraft.version"
Problem = tuple[ErrorCode, str]


def find_problem(node: NodeState, role: Leader) -> Problem | None:
    """Return the reason why no change of voters can be made now, or None."""
    if role.change is not None:
        return ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is under way; try again"
    if not role.is_established:
        return ErrorCode.REQUEST_TIMED_OUT, "the leader has not committed anything yet; try again"
    if not node.history.kraft_version:
        return ErrorCode.UNSUPPORTED_VERSION, "kraft.version is 0: the voters are those of the configuration"
    if node.history.voters_offset >= node.high_watermark:
        return ErrorCode.REQUEST_TIMED_OUT, "the last change of the voters is not committed yet; try again"
    return None


def _leading(node: NodeState, cluster_id: str | None) -> Leader | Problem:
    if cluster_id not in (None, node.identity.cluster_id):
        ours = node.identity.cluster_id
        return ErrorCode.INCONSISTENT_CLUSTER_ID, f"the cluster is {ours}, and not {cluster_id}"
    if not isinstance(node.role, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, f"node {node.node_id} does not lead the quorum"
    return node.role


# --- add -------------------------------------------------------------------------------------------------------------


def on_add(node: NodeState, request: AddRaftVoterRequest) -> AddRaftVoterResponse | Later:
    """Add a voter. First it is asked which versions it speaks."""
    role = _leading(node, request.cluster_id)
    if not isinstance(role, Leader):
        return AddRaftVoterResponse(0, *role)
    endpoints = tuple((endpoint.name, endpoint.host, endpoint.port) for endpoint in request.listeners)
    voter = Voter(request.voter_id, request.voter_directory_id, endpoints)
    problem = _not_addable(node, voter) or find_problem(node, role) or _duplicate(node, voter)
    if problem is not None:
        return AddRaftVoterResponse(0, *problem)
    later = node.effects.later()
    role.change = VoterChange(
        later if request.ack_when_committed else None,
        AddRaftVoterResponse,
        node.after(request.timeout_ms),
        (*node.voters, voter),
        newcomer=voter,
        asked=node.effects.send(node.peer(voter.node_id, endpoints), ApiVersionsRequest("kavka", "1")),
    )
    if not request.ack_when_committed:
        # A node that joins by itself does not wait: it sees in the log when it votes.
        role.change.early = later
    return later


def _not_addable(node: NodeState, voter: Voter) -> Problem | None:
    if voter.node_id < 0 or voter.directory_id == ZERO:
        return ErrorCode.INVALID_REQUEST, "a voter has a node id and a directory id"
    if endpoint_of(voter.endpoints, node.identity.listener) is None:
        return ErrorCode.INVALID_REQUEST, f"the voter names no endpoint for the listener {node.identity.listener}"
    return None


def _duplicate(node: NodeState, voter: Voter) -> Problem | None:
    known = next((other for other in node.voters if other.node_id == voter.node_id), None)
    if known is None:
        return None
    return ErrorCode.DUPLICATE_VOTER, f"node {voter.node_id} votes, with directory {to_text(known.directory_id)}"


def on_versions(node: NodeState, send: Send, response: ApiVersionsResponse | None) -> None:
    """Append the record of the new voter, if it speaks the quorum's version."""
    role = node.role
    if not isinstance(role, Leader) or role.change is None or role.change.asked is not send:
        return
    change = role.change
    change.asked = None
    assert change.offset is None, f"{change} was appended before its newcomer was heard"
    problem = cannot_join(node, role, change, response)
    if problem is not None:
        _finish(node, role, *problem)
        return
    assert len(change.voters) == len(node.voters) + 1, f"{change.voters} after {node.voters}"
    change.offset = node.append([voters_record(change.voters)])
    node.effects.flush()
    if change.early is not None:
        node.effects.answer(change.early, AddRaftVoterResponse(0, ErrorCode.NONE, None))
        change.early = None


def cannot_join(
    node: NodeState, role: Leader, change: VoterChange, response: ApiVersionsResponse | None
) -> Problem | None:
    """Return the reason why a newcomer cannot become a voter, or None. No `response`: it did not answer."""
    newcomer = change.newcomer
    assert newcomer is not None, "only a newcomer is asked for its versions"
    if response is None:
        return ErrorCode.REQUEST_TIMED_OUT, f"node {newcomer.node_id} did not answer at {newcomer.endpoints}"
    level = node.history.kraft_version
    spoken = next((feature for feature in response.supported_features if feature.name == FEATURE), None)
    if response.error_code or spoken is None or not spoken.min_version <= level <= spoken.max_version:
        return ErrorCode.INVALID_REQUEST, f"node {newcomer.node_id} does not speak kraft.version {level}"
    if not role.replicas.has_caught_up((newcomer.node_id, newcomer.directory_id), node.now_ms):
        return ErrorCode.REQUEST_TIMED_OUT, f"node {newcomer.node_id} has not caught up with the log; try again"
    return None


# --- remove ----------------------------------------------------------------------------------------------------------


def on_remove(node: NodeState, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse | Later:
    """Remove a voter; never the last one."""
    role = _leading(node, request.cluster_id)
    if not isinstance(role, Leader):
        return RemoveRaftVoterResponse(0, *role)
    if request.voter_id < 0 or request.voter_directory_id == ZERO:
        return RemoveRaftVoterResponse(0, ErrorCode.INVALID_REQUEST, "a voter has a node id and a directory id")
    leaving = (request.voter_id, request.voter_directory_id)
    voters = tuple(voter for voter in node.voters if (voter.node_id, voter.directory_id) != leaving)
    problem = find_problem(node, role) or _not_removable(node, voters, request.voter_id)
    if problem is not None:
        return RemoveRaftVoterResponse(0, *problem)
    assert len(voters) == len(node.voters) - 1, f"{voters} of {node.voters}"
    later = node.effects.later()
    role.change = VoterChange(later, RemoveRaftVoterResponse, NEVER_MS, voters)
    role.change.offset = node.append([voters_record(voters)])
    node.effects.flush()
    return later


def _not_removable(node: NodeState, voters: tuple[Voter, ...], node_id: int) -> Problem | None:
    if voters == node.voters:
        return ErrorCode.VOTER_NOT_FOUND, f"no voter has node id {node_id} and this directory id"
    if not voters:
        return ErrorCode.VOTER_NOT_FOUND, f"node {node_id} is the last voter, and a quorum has one"
    return None


# --- update ----------------------------------------------------------------------------------------------------------


def on_update(node: NodeState, request: UpdateRaftVoterRequest) -> UpdateRaftVoterResponse:
    """Update the endpoints of a voter where they differ from those in the log."""
    if request.cluster_id not in (None, node.identity.cluster_id):
        return wire.update_answer(node, ErrorCode.INCONSISTENT_CLUSTER_ID)
    error = problem_with_epoch(node, request.current_leader_epoch)
    role = node.role
    if error is not ErrorCode.NONE or not isinstance(role, Leader):
        return wire.update_answer(node, error)
    endpoints = tuple((endpoint.name, endpoint.host, endpoint.port) for endpoint in request.listeners)
    voter = Voter(request.voter_id, request.voter_directory_id, endpoints)
    spoken = request.k_raft_version_feature
    if _not_addable(node, voter) or not 0 <= spoken.min_supported_version <= spoken.max_supported_version:
        return wire.update_answer(node, ErrorCode.INVALID_REQUEST)
    problem = find_problem(node, role)
    if problem is not None:
        return wire.update_answer(node, problem[0])
    if not spoken.min_supported_version <= node.history.kraft_version <= spoken.max_supported_version:
        return wire.update_answer(node, ErrorCode.INVALID_REQUEST)
    key = (voter.node_id, voter.directory_id)
    if all((known.node_id, known.directory_id) != key for known in node.voters):
        return wire.update_answer(node, ErrorCode.VOTER_NOT_FOUND)
    voters = tuple(voter if (known.node_id, known.directory_id) == key else known for known in node.voters)
    assert len(voters) == len(node.voters), f"an update makes {voters} of {node.voters}"
    if voters != node.voters:
        node.append([voters_record(voters)])
        node.effects.flush()
    return wire.update_answer(node, ErrorCode.NONE)


# --- time ------------------------------------------------------------------------------------------------------------


def drive(node: NodeState, role: Leader) -> None:
    """Answer when a change is committed, or has taken too long; a leader that is no voter any more resigns."""
    change = role.change
    if change is not None and change.offset is not None and change.offset < node.high_watermark:
        _finish(node, role, ErrorCode.NONE, None)
    elif change is not None and node.now_ms >= change.until_ms:
        _finish(node, role, ErrorCode.REQUEST_TIMED_OUT, "the change was not committed in time; ask whether it was")
    is_settled = node.history.voters_offset < node.high_watermark
    if is_settled and not any(map(node.is_self, node.voters)):
        become_resigned(node, is_final=False)


def _finish(node: NodeState, role: Leader, error: ErrorCode, message: str | None) -> None:
    change, role.change = role.change, None
    assert change is not None, "no change is under way"
    assert change.later is None or change.early is None, f"{change} is answered twice"
    node.effects.answer(change.later or change.early, change.kind(0, error, message))


def due_ms(role: Leader) -> int:
    """The time at which `drive` has something to do."""
    return NEVER_MS if role.change is None else role.change.until_ms
