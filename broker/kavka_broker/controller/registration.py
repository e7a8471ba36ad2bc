"""A broker that lives in the same process as the controller registers through it, without a network between them.

It comes unfenced at once: there is nothing to catch up with, since its image is the controller's own.
"""

from collections.abc import Sequence

from kavka_broker.controller.controller import Controller
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.listeners import Listener
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.broker_commands import Register, leave, register
from kavka_broker.core.metadata.brokers import Endpoint
from kavka_broker.core.metadata.features import SUPPORTED_LEVELS
from kavka_broker.core.metadata.image import Metadata


async def register_broker(
    controller: Controller,
    config: BrokerConfig,
    *,
    directories: Sequence[bytes],
    listeners: Sequence[Listener] | None = None,
) -> int:
    """Register this process; the answer is its broker epoch.

    `listeners` are those to advertise where they differ from the configuration's, as when a port was left to choose.
    """
    advertised = config.advertised_listeners if listeners is None else listeners
    command = Register(
        broker_id=config.node_id,
        incarnation_id=controller.new_uuid(),
        endpoints=tuple(Endpoint(one.name, one.host or "localhost", one.port, one.protocol_id) for one in advertised),
        directories=tuple(directories),
        features=SUPPORTED_LEVELS,
        rack=config.rack,
    )

    def decide(metadata: Metadata, _: int) -> Decision[int]:
        return register(metadata, command)

    return await controller.submit(decide)


async def leave_cluster(controller: Controller) -> None:
    """Fence this broker before it stops, as Apache Kafka leaves it: the next start, of either, is at once."""

    def decide(metadata: Metadata, _: int) -> Decision[None]:
        return leave(metadata, controller.node_id)

    await controller.submit(decide)
