"""`__consumer_offsets`: made when the first group is looked for, by Kafka's settings."""

import asyncio

from kavka_broker.controller.controller import Controller
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.image import Metadata
from kavka_broker.core.metadata.topic_commands import Created, CreateTopic, Defaults, create_topics
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode

log = get("coordinator")

OFFSETS_TOPIC = "__consumer_offsets"


class OffsetsTopic:
    """Makes the topic once, however many ask at the same time."""

    def __init__(self, config: BrokerConfig, controller: Controller) -> None:
        self._config = config
        self._controller = controller
        self._creation: asyncio.Task[None] | None = None

    async def create(self) -> None:
        """Returns when the topic is there. Raises COORDINATOR_NOT_AVAILABLE where it cannot be made now."""
        if self._creation is None:
            self._creation = asyncio.get_running_loop().create_task(self._create(), name="create offsets topic")
        try:
            # Shielded: a client that goes away must not take the others' topic with it.
            await asyncio.shield(self._creation)
        except BrokerError as error:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from error

    async def _create(self) -> None:
        try:
            topic_id = self._controller.new_uuid()
            result = await self._controller.submit(lambda metadata, _: self._decide(metadata, topic_id))
        finally:
            self._creation = None
        if isinstance(result, BrokerError) and result.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            factor = self._config["offsets.topic.replication.factor"]
            hint = f"offsets.topic.replication.factor={factor}; brokers={len(self._controller.metadata.brokers)}"
            log.error("offsets_topic.refused", reason=str(result), hint=hint)
            raise BrokerError(result.code, f"{OFFSETS_TOPIC} cannot be created: {result} ({hint})")

    def _decide(self, metadata: Metadata, topic_id: bytes) -> Decision[Created | BrokerError]:
        config = self._config
        command = CreateTopic(
            OFFSETS_TOPIC,
            topic_id,
            partitions=config["offsets.topic.num.partitions"],
            replication_factor=config["offsets.topic.replication.factor"],
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config["offsets.topic.segment.bytes"]),
            },
        )
        decision = create_topics(metadata, [command], Defaults())
        (result,) = decision.response
        return Decision(decision.records, result)
