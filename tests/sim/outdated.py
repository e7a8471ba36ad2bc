"""SentAwayRightly: a broker sends clients away as outdated only while the others lead what its image says it leads."""

from typing import Any


def is_outdated(simulation: Any, process: str) -> bool:
    """Whether the newest image has this process's broker fenced, or another registration of it, and its own has not."""
    node = next(node for node in simulation.nodes if str(node.process) == process)
    now = simulation.invariants.image.brokers.get(node.node_id)
    own = node.broker.quorum.metadata.brokers.get(node.node_id)
    if own is None or own.fenced:
        return False
    return now is None or now.fenced or now.epoch != own.epoch
