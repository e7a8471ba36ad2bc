"""Which replica a consumer should read from (KIP-392).

With `replica.selector.class` set to Kafka's RackAwareReplicaSelector the leader sends a consumer that names its rack to
a replica there: in sync, with the wanted offset in its log, the one that has most. It stays with the leader where the
leader is in that rack, or nobody is.
"""

from typing import Final

from kavka_broker.api.broker import Broker, Client
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.replica.leading.partition import Partition

RACK_AWARE: Final = "RackAwareReplicaSelector"
#: A client that can be sent elsewhere says where it is.
RACKS_FROM: Final = 11


def rack_of(request: FetchRequest, broker: Broker, client: Client) -> str:
    """The rack that this fetch may be sent to; empty where it is not to be sent anywhere."""
    selector = broker.config["replica.selector.class"]
    if client.version < RACKS_FROM or not request.rack_id or not selector:
        return ""
    return request.rack_id if str(selector).rpartition(".")[2] == RACK_AWARE else ""


def preferred_replica(partition: Partition, offset: int, rack: str, broker: Broker) -> int | None:
    """The broker to read from instead of this one, the leader; None to stay."""
    leadership, brokers = partition.leadership, broker.metadata.brokers
    own = brokers.get(broker.node_id)
    if leadership is None or (own is not None and own.rack == rack):
        return None
    candidates = [
        (follower.log_end_offset, follower.caught_up_ms, -broker_id)
        for broker_id, follower in leadership
        if broker_id in leadership.isr
        and follower.log_start_offset <= offset <= follower.log_end_offset
        and (registration := brokers.get(broker_id)) is not None
        and registration.rack == rack
        and not registration.fenced
    ]
    return -max(candidates)[2] if candidates else None
