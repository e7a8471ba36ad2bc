"""What a controller asks of the leader in its own matter: its right endpoints in the log, or a vote.

    it votes, and the log has other endpoints for it     UpdateRaftVoter
    it does not vote, and `controller.quorum.auto.join.enable` is set (KIP-1186)
        another directory of it votes: its former disk   RemoveRaftVoter of that one
        nobody of its id votes                           AddRaftVoter

One question at a time, the first once the leader has answered a fetch, and again after each fetch timeout for as long
as there is something to ask. Whether it was done is seen in the log, not in the answer.
"""

from kavka_broker.core.raft import wire
from kavka_broker.core.raft.effects import Send
from kavka_broker.core.raft.member import Member
from kavka_broker.core.raft.roles import NEVER_MS, Follower
from kavka_broker.core.raft.transitions import learn
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kavka_broker.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kavka_broker.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse


def drive(member: Member, role: Follower) -> None:
    """Ask, if it is time and there is something to ask."""
    if member.now_ms < due_ms(member, role):
        return
    assert role.asked is None, f"{role.asked} is not answered"
    role.asks_at_ms = member.after(member.settings.fetch_timeout_ms)
    request = _question(member)
    if request is not None:
        role.asked = member.send(member.leader_peer(), request)


def due_ms(member: Member, role: Follower) -> int:
    """When `drive` has something to do."""
    may_ask = role.asked is None and role.has_fetched and member.adopting is None
    is_concerned = member.is_voter or (member.identity.is_controller and member.settings.auto_join)
    return role.asks_at_ms if may_ask and is_concerned else NEVER_MS


def _question(member: Member) -> Message | None:
    if not member.history.kraft_version or not member.identity.endpoints:
        return None
    here = next((voter for voter in member.voters if voter.node_id == member.node_id), None)
    if here is None:
        return wire.ask_to_join(member)
    if not member.is_self(here):
        return wire.ask_to_remove(member, here)
    return wire.ask_update(member) if here.endpoints != member.identity.endpoints else None


def on_answered(
    member: Member,
    send: Send,
    response: UpdateRaftVoterResponse | AddRaftVoterResponse | RemoveRaftVoterResponse | None,
) -> None:
    """The leader has done it, or will not yet."""
    role = member.role
    if isinstance(role, Follower) and role.asked is send:
        role.asked = None
    if response is None:
        return
    if response.error_code:
        error = ErrorCode(response.error_code).name
        member.note("raft.own.vote.refused", by=send.peer.node_id, request=send.request.NAME, error=error)
    if isinstance(response, UpdateRaftVoterResponse) and response.current_leader.host:
        told = response.current_leader
        learn(member, told.leader_epoch, told.leader_id, ((member.identity.listener, told.host, told.port),))
