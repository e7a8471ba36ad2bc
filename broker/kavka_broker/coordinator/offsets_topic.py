"""`__consumer_offsets`: made when the first group is looked for, by Kafka's settings."""

from typing import Final, Protocol

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode

log = get("coordinator")

OFFSETS_TOPIC: Final = "__consumer_offsets"


class Topics(Protocol):
    """Creates topics (`membership.topics`)."""

    async def create(self, names: list[str]) -> dict[str, BrokerError]:
        """Create topics; returns those that could not be made, with the reason."""
        ...


class OffsetsTopic:
    """Has the offsets topic created, and logs why it cannot be."""

    def __init__(self, config: BrokerConfig, topics: Topics, metadata: Metadata) -> None:
        self._config = config
        self._topics = topics
        self._metadata = metadata

    async def create(self) -> None:
        """Wait until the topic exists. Raises COORDINATOR_NOT_AVAILABLE where it cannot be made now."""
        error = (await self._topics.create([OFFSETS_TOPIC])).get(OFFSETS_TOPIC)
        if error is None:
            return
        factor = self._config["offsets.topic.replication.factor"]
        hint = f"offsets.topic.replication.factor={factor}; brokers={len(self._metadata.brokers)}"
        log.error("offsets_topic.refused", reason=str(error), hint=hint)
        problem = f"{OFFSETS_TOPIC} cannot be created: {error} ({hint})"
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, problem) from error
