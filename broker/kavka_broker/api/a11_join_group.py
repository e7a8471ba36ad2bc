"""JoinGroup (11): take part in a group's next generation.

- The first join of a dynamic member is refused with MEMBER_ID_REQUIRED and the id to come back with (KIP-394, from 4).
- A static member (from 5) takes the place of its predecessor; a stable group does not rebalance for it.
- Answered when the generation is formed; the leader's answer lists the members and their metadata.
- A member that names more than `PROTOCOLS_MAX` protocols is refused with INVALID_REQUEST.
- A protocol type of more than 249 characters is INCONSISTENT_GROUP_PROTOCOL. Names of groups with more than 249 take
  32 MiB for one partition of `__consumer_offsets`, beyond which one is POLICY_VIOLATION.
- Where the members of all groups of one partition of `__consumer_offsets` take 64 MiB, one that would take more is
  refused with GROUP_MAX_SIZE_REACHED.
- In a consumer group (KIP-848) it is answered at once: no member leads, and the generation is the member's epoch.
- What waits is the answer: the bytes of the request do not count in `queued.max.request.bytes` any more.
- Versions 0 and 1 of consumers have no rebalance timeout: it is the session's.
Versions: flexible from 6, protocol type in the answer from 7, where no protocol is null, a reason from 8,
skip_assignment from 9.
"""

import asyncio

from kavka_broker.core.group.join import Join
from kavka_broker.core.group.settings import PROTOCOLS_MAX
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.join_group_request import JoinGroupRequest
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api

KNOWN_ID_VERSION = 4
NO_PROTOCOL_VERSION = 7
SKIP_ASSIGNMENT_VERSION = 9

Token = asyncio.Future[JoinGroupResponse]


@api(JoinGroupRequest, JoinGroupResponse, versions=(0, 9))
def join_group(request: JoinGroupRequest, broker: Broker, client: Client) -> JoinGroupResponse | Token:
    if not request.group_id:
        return JoinGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID, member_id=request.member_id)
    if len(request.protocols) > PROTOCOLS_MAX:
        return JoinGroupResponse(error_code=ErrorCode.INVALID_REQUEST, member_id=request.member_id)
    shard = broker.groups.shard(request.group_id)
    token: Token = asyncio.get_running_loop().create_future()
    if client.version >= NO_PROTOCOL_VERSION:
        token.add_done_callback(without_protocol)
    shard.join(request.group_id, command_of(request, token, broker, client))
    client.forget_request()
    if not token.done():
        return token
    if client.version >= NO_PROTOCOL_VERSION:
        without_protocol(token)
    return token.result()


def without_protocol(token: Token) -> None:
    """Say in an answer without a protocol that there is none: that is null, and "" in older versions."""
    if not token.cancelled():
        token.result().protocol_name = token.result().protocol_name or None


def command_of(request: JoinGroupRequest, token: Token, broker: Broker, client: Client) -> Join:
    session_timeout_ms, rebalance_timeout_ms = request.session_timeout_ms, request.rebalance_timeout_ms
    name = request.group_instance_id or client.client_id
    return Join(
        token=token,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=client.client_id,
        client_host=f"/{client.address}",
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=session_timeout_ms if rebalance_timeout_ms < 0 else rebalance_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        new_member_id="" if request.member_id else f"{name}-{broker.groups.new_member_suffix()}",
        needs_known_id=client.version >= KNOWN_ID_VERSION,
        can_skip_assignment=client.version >= SKIP_ASSIGNMENT_VERSION,
    )
