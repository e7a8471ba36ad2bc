"""The parts of a broker that serve share groups (KIP-932), apart from the groups themselves."""

from dataclasses import dataclass

from kavka_broker.coordinator.internal_topic import InternalTopic
from kavka_broker.coordinator.share.share_coordinator import ShareCoordinator
from kavka_broker.coordinator.share.share_fetches import ShareFetches
from kavka_broker.coordinator.share.share_state_client import ShareStateClient


@dataclass(frozen=True, slots=True)
class Sharing:
    """The share coordinator of this broker, the way to those of others, and the share partitions that it leads."""

    coordinator: ShareCoordinator
    states: ShareStateClient
    topic: InternalTopic
    fetches: ShareFetches

    def start(self) -> None:
        """Begin the periodic work."""
        self.coordinator.start()

    def close(self) -> None:
        """Stop, with this broker: others go on."""
        self.fetches.close()
        self.coordinator.close()
        self.states.close()
