"""HandoversAreSeen: a broker that may stop after a controlled shutdown leads nothing, as every other broker knows.

Until then the broker that stops can tell clients that it leads no longer. One whose image is older would send them to a
broker that is gone. Whoever holds nothing is let go at once.
"""

from collections.abc import Mapping
from typing import Any, Final

from tests.sim.history import place_text

RELEASED: Final = "broker.released"


class Handovers:
    """Hears what controllers say of brokers that stop."""

    def __init__(self, simulation: Any) -> None:
        self._simulation = simulation
        simulation.events.listeners.setdefault(RELEASED, []).append(self._was_released)

    def _was_released(self, process: str, fields: Mapping[str, Any]) -> None:
        simulation, leaving = self._simulation, self._simulation.nodes[fields["broker"] - 1]
        controller = next((node for node in simulation.nodes if node.process.name == process), None)
        if controller is None or leaving.is_disk_faulty:
            return
        brokers = controller.broker.quorum.metadata.brokers
        known = brokers.get(leaving.node_id)
        if known is None or known.epoch != fields["epoch"] or not known.in_controlled_shutdown:
            return
        simulation.events.counts["played.handovers"] += 1
        for node in simulation.nodes:
            registration = brokers.get(node.node_id)
            if node is leaving or registration is None or not registration.usable or not node.is_alive:
                continue
            broker = getattr(node.server, "broker", None)
            if broker is None or broker.lifecycle.broker_epoch != registration.epoch:
                continue  # a life of which the controller has not heard
            for what in held_by(leaving.node_id, broker.quorum.metadata):
                simulation.fail(f"HandoversAreSeen: {leaving.process} may stop, and {node.process} believes {what}")


def held_by(broker_id: int, image: Any) -> list[str]:
    """What an image says that a broker leads, or is in sync with."""
    return [
        f"that node{broker_id} leads {place_text((topic.name, index))} in epoch {state.leader_epoch}"
        for topic in image.topics
        for index, state in topic.partitions.items()
        if state.leader == broker_id
    ]
