"""CreatePartitions (37): more partitions for topics. `count` is the new total.

- A count that is not above the present one is INVALID_PARTITIONS; there is no way to fewer.
- Brokers named by hand must be one list for each new partition, each as long as the topic's replication factor.
- A topic named twice is INVALID_REQUEST, an unknown one UNKNOWN_TOPIC_OR_PARTITION.
- `validate_only` says what would happen, and nothing does.
Versions: flexible from 2; 3 may answer THROTTLING_QUOTA_EXCEEDED.
"""

from collections import Counter

from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.registry import BOTH, api
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.topics import GrowTopic, grow_topics
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kavka_broker.protocol.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

TOPICS_PER_TURN = 20


@api(CreatePartitionsRequest, CreatePartitionsResponse, versions=(0, 3), on=BOTH, forwarded=True)
async def create_partitions(
    request: CreatePartitionsRequest, broker: Broker, client: Client
) -> CreatePartitionsResponse:
    del client
    counts = Counter(topic.name for topic in request.topics)
    commands = [command(topic) for topic in request.topics if counts[topic.name] == 1]
    outcomes = await decided(commands, broker, validate_only=request.validate_only)
    twice = BrokerError(ErrorCode.INVALID_REQUEST, "the topic is there more than once; name it once")
    results = [result(name, twice) for name, count in counts.items() if count > 1]
    results += [result(asked.name, outcome) for asked, outcome in zip(commands, outcomes, strict=True)]
    return CreatePartitionsResponse(results=results)


async def decided(commands: list[GrowTopic], broker: Broker, *, validate_only: bool) -> list[BrokerError | None]:
    """Why topics stay as they are, None where they grow. Many are decided some a turn, each topic whole."""
    outcomes: list[BrokerError | None] = []
    made = 0

    def decide(metadata: Metadata, _: int) -> Decision[list[BrokerError | None]]:
        nonlocal made
        decision = grow_topics(metadata, some, made)
        made += len(decision.records)
        return Decision([], decision.response) if validate_only else decision

    for start in range(0, len(commands), TOPICS_PER_TURN):
        some = commands[start : start + TOPICS_PER_TURN]
        if start:
            await broker.slices.turn()
        try:
            outcomes += await broker.active.submit(decide)
        except BrokerError as error:
            outcomes += [error] * len(some)
    return outcomes


def command(topic: CreatePartitionsTopic) -> GrowTopic:
    if topic.assignments is None:
        return GrowTopic(topic.name, topic.count)
    return GrowTopic(topic.name, topic.count, [tuple(one.broker_ids) for one in topic.assignments])


def result(name: str, reason: BrokerError | None) -> CreatePartitionsTopicResult:
    if reason is None:
        return CreatePartitionsTopicResult(name)
    return CreatePartitionsTopicResult(name, reason.code, reason.message)
