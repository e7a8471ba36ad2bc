"""What several answers say about brokers and topics, from the committed image."""

from typing import Final

from kavka_broker.core.config.describe import Layers
from kavka_broker.core.metadata.image.brokers import Endpoint, Registration
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.request.broker import Broker

#: Bits of the operations on a resource. Without an authorizer all of them are allowed.
TOPIC_OPERATIONS: Final = 0b1101_1111_1000
CLUSTER_OPERATIONS: Final = 0b1_1111_1010_0000
NOT_ASKED: Final = -(2**31)


def layers(broker: Broker) -> Layers:
    """The layers of this broker's configuration."""
    configs = broker.metadata.configs
    return Layers(broker.config, configs.broker(broker.node_id), configs.all_brokers())


def endpoints(broker: Broker, listener: str) -> list[tuple[int, Endpoint, str | None]]:
    """The brokers on a listener that are alive or were a moment ago: id, address, rack."""
    brokers, lingering = broker.metadata.brokers, broker.lingering.ids
    shown = brokers.alive()
    if lingering:
        shown = sorted(
            (registered for registered in brokers if not registered.fenced or registered.broker_id in lingering),
            key=by_id,
        )
    return [
        (registered.broker_id, registered.endpoints[listener], registered.rack)
        for registered in shown
        if listener in registered.endpoints
    ]


def by_id(broker: Registration) -> int:
    return broker.broker_id


def some_broker(metadata: Metadata, preferred: int) -> int:
    """The broker to name as controller: controllers have no client listener, any broker forwards (KIP-590)."""
    alive = [registered.broker_id for registered in metadata.brokers.alive()]
    return preferred if preferred in alive else min(alive, default=-1)
