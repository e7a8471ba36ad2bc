"""Topics that are made because somebody asked for them: by metadata, or by a coordinator that needs its log."""

from collections.abc import Sequence

from kavka_broker.controller.controller import Controller
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.image import Metadata
from kavka_broker.core.metadata.topic_commands import Created, CreateTopic, Defaults, create_topics
from kavka_broker.protocol.errors import BrokerError, ErrorCode

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"


def defaults(config: BrokerConfig) -> Defaults:
    """What a topic gets that does not say."""
    return Defaults(config["num.partitions"], config["default.replication.factor"])


def automatic_topic(config: BrokerConfig, name: str, topic_id: bytes) -> CreateTopic:
    """A topic as it is made without being described: the coordinators' logs by their own configs, others by default."""
    if name == OFFSETS_TOPIC:
        return CreateTopic(
            name,
            topic_id,
            config["offsets.topic.num.partitions"],
            config["offsets.topic.replication.factor"],
            configs={
                "compression.type": "producer",
                "cleanup.policy": "compact",
                "segment.bytes": str(config["offsets.topic.segment.bytes"]),
            },
        )
    if name == TRANSACTIONS_TOPIC:
        return CreateTopic(
            name,
            topic_id,
            config["transaction.state.log.num.partitions"],
            config["transaction.state.log.replication.factor"],
            configs={
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "segment.bytes": str(config["transaction.state.log.segment.bytes"]),
                "min.insync.replicas": str(config["transaction.state.log.min.isr"]),
                "unclean.leader.election.enable": "false",
            },
        )
    return CreateTopic(name, topic_id)


async def create_automatically(
    controller: Controller, config: BrokerConfig, names: Sequence[str]
) -> dict[str, BrokerError]:
    """Make these topics; what could not be made, with the reason. One that is there already is fine."""
    commands = [automatic_topic(config, name, controller.new_uuid()) for name in names]

    def decide(metadata: Metadata, _: int) -> Decision[list[Created | BrokerError]]:
        return create_topics(metadata, commands, defaults(config))

    try:
        results = await controller.submit(decide)
    except BrokerError as error:
        return dict.fromkeys(names, error)
    return {
        name: result
        for name, result in zip(names, results, strict=True)
        if isinstance(result, BrokerError) and result.code is not ErrorCode.TOPIC_ALREADY_EXISTS
    }
