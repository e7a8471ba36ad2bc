"""Which replica a consumer should read from (KIP-392).

With `replica.selector.class` set to Kafka's RackAwareReplicaSelector the leader sends a consumer that names its rack to
a replica there: in sync, with the wanted offset in its log, the one that has most. It stays with the leader where the
leader is in that rack, or nobody is.
"""

from typing import Final

from kavka_broker.core.metadata.image.brokers import Brokers
from kavka_broker.replica.leading.partition import Partition

RACK_AWARE: Final = "RackAwareReplicaSelector"


def rack_for(rack: str, selector: str | None) -> str:
    """Return the rack of a consumer that `replica.selector.class` may send elsewhere; empty where it may not."""
    return rack if selector and selector.rpartition(".")[2] == RACK_AWARE else ""


def preferred_replica(partition: Partition, offset: int, rack: str, brokers: Brokers, node_id: int) -> int | None:
    """Return the broker to read from instead of `node_id`, the leader; None to stay."""
    leadership, own = partition.leadership, brokers.get(node_id)
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
