"""What several answers say about brokers and topics, from the committed image."""

from typing import Final

from kavka_broker.api.broker import Broker
from kavka_broker.core.config.describe import Layers
from kavka_broker.core.metadata.image.brokers import Endpoint, Registration
from kavka_broker.core.metadata.image.metadata import Metadata

#: Bits of the operations that exist on a resource. Without an authorizer everybody may do all of them.
TOPIC_OPERATIONS: Final = 0b1101_1111_1000
CLUSTER_OPERATIONS: Final = 0b1_1111_1010_0000
NOT_ASKED: Final = -(2**31)


def layers(broker: Broker) -> Layers:
    """The configuration of this broker, place by place."""
    configs = broker.metadata.configs
    return Layers(broker.config, configs.broker(broker.node_id), configs.all_brokers())


def endpoints(broker: Broker, listener: str) -> list[tuple[int, Endpoint, str | None]]:
    """The brokers that can be reached by a listener, or could a moment ago: id, address, rack."""
    brokers, lingering = broker.metadata.brokers, broker.lingering.ids
    shown = brokers.alive()
    if lingering:
        shown = sorted((one for one in brokers if not one.fenced or one.broker_id in lingering), key=by_id)
    return [(one.broker_id, one.endpoints[listener], one.rack) for one in shown if listener in one.endpoints]


def by_id(broker: Registration) -> int:
    return broker.broker_id


def some_broker(metadata: Metadata, preferred: int) -> int:
    """Who is named as controller: controllers have no client listener, and any broker passes requests on (KIP-590)."""
    alive = [one.broker_id for one in metadata.brokers.alive()]
    return preferred if preferred in alive else min(alive, default=-1)
