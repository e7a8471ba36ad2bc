"""A broker that lives in the same process as the controller registers through it, without a network between them.

It asks to be unfenced at once: there is nothing to catch up with, since its image is the controller's own.
"""

from collections.abc import Sequence

from kavka_broker.controller.controller import Controller
from kavka_broker.controller.policy import policy_of
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.listeners import Listener
from kavka_broker.core.metadata.broker_commands import Heartbeat, Register, heartbeat, leave, register
from kavka_broker.core.metadata.brokers import Endpoint
from kavka_broker.core.metadata.features import SUPPORTED_LEVELS


async def register_broker(
    controller: Controller,
    config: BrokerConfig,
    *,
    directories: Sequence[bytes],
    listeners: Sequence[Listener] | None = None,
    previous_epoch: int = -1,
) -> int:
    """Register this process and unfence it; the answer is its broker epoch.

    `listeners` are those to advertise where they differ from the configuration's, as when a port was left to choose.
    `previous_epoch` is the one that the clean shutdown file names, or -1.
    """
    advertised = config.advertised_listeners if listeners is None else listeners
    command = Register(
        broker_id=config.node_id,
        incarnation_id=controller.new_uuid(),
        endpoints=tuple(Endpoint(one.name, one.host or "localhost", one.port, one.protocol_id) for one in advertised),
        directories=tuple(directories),
        features=SUPPORTED_LEVELS,
        rack=config.rack,
        previous_epoch=previous_epoch,
    )
    policy = policy_of(config)
    epoch = await controller.submit(lambda metadata, _: register(metadata, command, policy))
    alive = Heartbeat(config.node_id, epoch, controller.metadata.offset)
    await controller.submit(lambda metadata, _: heartbeat(metadata, alive, policy))
    return epoch


async def leave_cluster(controller: Controller) -> None:
    """Fence this broker before it stops, as Apache Kafka leaves it: the next start, of either, is at once."""
    await controller.submit(lambda metadata, _: leave(metadata, controller.node_id))
