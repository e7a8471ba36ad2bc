"""Who leads instead of the broker that was asked, and where that is (KIP-951): a client goes there at once."""

from collections.abc import Callable
from typing import TypeVar

from kavka_broker.core.metadata.image.metadata import Metadata

N = TypeVar("N")


def leader_of(topic: bytes | str, index: int, metadata: Metadata) -> tuple[int, int]:
    """The id and epoch of a partition's leader, as this broker knows them; -1 and -1 without a leader."""
    topics = metadata.topics
    known = topics.by_id(topic) if isinstance(topic, bytes) else topics.get(topic)
    state = None if known is None else known.partitions.get(index)
    return (-1, -1) if state is None else (state.leader, state.leader_epoch)


def endpoint_of(
    node_id: int, listener: str, metadata: Metadata, kind: Callable[[int, str, int, str | None], N]
) -> list[N]:
    """The address of a broker on this listener, as this kind of answer names it; empty if it has none."""
    known = metadata.brokers.get(node_id)
    if known is None or known.fenced or listener not in known.endpoints:
        return []
    place = known.endpoints[listener]
    return [kind(node_id, place.host, place.port, known.rack)]
