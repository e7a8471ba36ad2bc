"""What a controller asks of the leader in its own matter: its right endpoints in the log, or a vote.

    it votes, and the log has other endpoints for it     UpdateRaftVoter
    it does not vote, and `controller.quorum.auto.join.enable` is set (KIP-1186)
        another directory of it votes: its former disk   RemoveRaftVoter of that one
        no voter has its id                              AddRaftVoter

One question at a time, the first once the leader has answered a fetch, and again after each fetch timeout for as long
as there is something to ask. Whether it was done is seen in the log, not in the answer.
"""

from kavka_broker.core.raft import wire
from kavka_broker.core.raft.effects import Send
from kavka_broker.core.raft.node_state import NodeState
from kavka_broker.core.raft.roles import NEVER_MS, Follower
from kavka_broker.core.raft.transitions import learn
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kavka_broker.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kavka_broker.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse


def drive(node: NodeState, role: Follower) -> None:
    """Ask the leader to change this node's vote, where that is due."""
    if node.now_ms < due_ms(node, role):
        return
    assert role.asked is None, f"{role.asked} is not answered"
    assert role.has_fetched, f"the leader {role.leader.node_id} is asked before it has answered a fetch"
    role.asks_at_ms = node.after(node.settings.fetch_timeout_ms)
    request = make_question(node)
    if request is not None:
        role.asked = node.effects.send(node.leader_peer(), request)


def due_ms(node: NodeState, role: Follower) -> int:
    """The time at which `drive` has something to do."""
    may_ask = role.asked is None and role.has_fetched and node.adopting is None
    is_concerned = node.is_voter or (node.identity.is_controller and node.settings.auto_join)
    return role.asks_at_ms if may_ask and is_concerned else NEVER_MS


def make_question(node: NodeState) -> Message | None:
    """Return the request that makes this node a voter, or its entry right; None where nothing is to be asked."""
    if not node.history.kraft_version or not node.identity.endpoints:
        return None
    here = next((voter for voter in node.voters if voter.node_id == node.node_id), None)
    if here is None:
        return wire.ask_to_join(node)
    if not node.is_self(here):
        return wire.ask_to_remove(node, here)
    return wire.ask_update(node) if here.endpoints != node.identity.endpoints else None


def on_answered(
    node: NodeState,
    send: Send,
    response: UpdateRaftVoterResponse | AddRaftVoterResponse | RemoveRaftVoterResponse | None,
) -> None:
    """Take the leader's answer: done, or refused for now."""
    role = node.role
    if isinstance(role, Follower) and role.asked is send:
        role.asked = None
    if response is None:
        return
    if response.error_code:
        error = ErrorCode(response.error_code).name
        node.effects.note("raft.own.vote.refused", by=send.peer.node_id, request=send.request.NAME, error=error)
    if isinstance(response, UpdateRaftVoterResponse) and response.current_leader.host:
        told = response.current_leader
        learn(node, told.leader_epoch, told.leader_id, ((node.identity.listener, told.host, told.port),))
