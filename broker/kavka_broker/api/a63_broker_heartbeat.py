"""BrokerHeartbeat (63): a broker lives, and asks to be unfenced, fenced, or to stop.

- What comes of it: `core.metadata.decide.heartbeats`. STALE_BROKER_EPOCH tells an incarnation that it was replaced.
- The session is prolonged as soon as the heartbeat arrives, and watches the connection that it came by.
- Answered when what it led to is committed.
Versions: flexible throughout; failed directories from 1, cordoned ones from 2.
"""

from kavka_broker.core.metadata.decide.heartbeats import Heartbeat
from kavka_broker.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kavka_broker.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import CONTROLLER, api


@api(BrokerHeartbeatRequest, BrokerHeartbeatResponse, versions=(0, 2), on=CONTROLLER)
async def broker_heartbeat(request: BrokerHeartbeatRequest, broker: Broker, client: Client) -> BrokerHeartbeatResponse:
    cordoned = request.cordoned_log_dirs
    standing = await broker.sessions.heartbeat(
        Heartbeat(
            broker_id=request.broker_id,
            broker_epoch=request.broker_epoch,
            metadata_offset=request.current_metadata_offset,
            wants_fence=request.want_fence,
            wants_shutdown=request.want_shut_down,
            offline_directories=tuple(request.offline_log_dirs),
            cordoned_directories=None if cordoned is None else tuple(cordoned),
        ),
        client.peer,
    )
    return BrokerHeartbeatResponse(
        is_caught_up=standing.is_caught_up, is_fenced=standing.is_fenced, should_shut_down=standing.should_shut_down
    )
