"""The topics of coordinators: each is made when the first group, or transactional id, is looked for."""

from typing import Protocol

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode

log = get("coordinator")


class Topics(Protocol):
    """Creates topics (`membership.topic_creation`)."""

    async def create(self, names: list[str]) -> dict[str, BrokerError]:
        """Create topics; returns those that could not be made, with the reason."""
        ...


class InternalTopic:
    """Has a coordinator's topic created, and logs why it cannot be. `factor_key` is the config of its replicas."""

    def __init__(self, name: str, factor_key: str, config: BrokerConfig, topics: Topics, metadata: Metadata) -> None:
        self._name = name
        self._factor_key = factor_key
        self._config = config
        self._topics = topics
        self._metadata = metadata

    async def create(self) -> None:
        """Wait until the topic exists. Raises COORDINATOR_NOT_AVAILABLE where it cannot be made now."""
        error = (await self._topics.create([self._name])).get(self._name)
        if error is None:
            return
        hint = f"{self._factor_key}={self._config.whole(self._factor_key)}; brokers={len(self._metadata.brokers)}"
        log.error("internal_topic.refused", topic=self._name, reason=str(error), hint=hint)
        problem = f"{self._name} cannot be created: {error} ({hint})"
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, problem) from error
