"""CreatePartitions (37): more partitions for topics. `count` is the new total.

- A count that is not above the present one is INVALID_PARTITIONS; there is no way to fewer.
- Brokers named by hand must be one list for each new partition, each as long as the topic's replication factor.
- `__consumer_offsets` and the other topics of coordinators keep their number (INVALID_PARTITIONS): a group's
  partition follows from it. Apache Kafka lets them grow, and groups lose their offsets.
- A topic named twice is INVALID_REQUEST, an unknown one UNKNOWN_TOPIC_OR_PARTITION.
- `validate_only` says what would happen, and nothing does.
- New partitions, validated ones too, count in the quota controller_mutation_rate. Where it is used up, topics are
  THROTTLING_QUOTA_EXCEEDED from version 3; below they grow, and the client waits.
Versions: flexible from 2.
"""

from collections import Counter
from typing import Final

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.topics import GrowTopic, Take, grow_topics
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kavka_broker.protocol.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.mutation_quota import mutations_of
from kavka_broker.request.registry import BOTH, api

STRICT_FROM_VERSION = 3
TOPICS_PER_TURN = 20
NAMES_PER_TURN = 200
PARTITIONS_AT_ONCE_MAX: Final = 200
"""New partitions that the loop decides at once."""


@api(CreatePartitionsRequest, CreatePartitionsResponse, versions=(0, 3), on=BOTH, forwarded=True)
async def create_partitions(
    request: CreatePartitionsRequest, broker: Broker, client: Client
) -> CreatePartitionsResponse:
    slices = broker.slices
    counts: Counter[str] = Counter()
    async for some in slices.in_turns(request.topics, NAMES_PER_TURN):
        counts.update([topic.name for topic in some])
    wanted: list[CreatePartitionsTopic] = []
    async for some in slices.in_turns(request.topics, NAMES_PER_TURN):
        wanted += [topic for topic in some if counts[topic.name] == 1]
    with mutations_of(client, broker, strict_from_version=STRICT_FROM_VERSION) as mutations:
        outcomes = await decided(wanted, broker, mutations.record, validate_only=request.validate_only)
    twice = BrokerError(ErrorCode.INVALID_REQUEST, "the topic is named more than once; name it once")
    results: list[CreatePartitionsTopicResult] = []
    async for names in slices.in_turns(list(counts.items()), NAMES_PER_TURN):
        results += [result(name, twice) for name, count in names if count > 1]
    answers = list(zip(wanted, outcomes, strict=True))
    async for answered in slices.in_turns(answers, NAMES_PER_TURN):
        results += [result(asked.name, outcome) for asked, outcome in answered]
    return CreatePartitionsResponse(results=results)


async def decided(
    wanted: list[CreatePartitionsTopic], broker: Broker, take: Take, *, validate_only: bool
) -> list[BrokerError | None]:
    """The refusal of each topic, None where it grows. Many topics are decided a few a turn, no topic is divided; a
    thread decides on very many partitions.
    """
    outcomes: list[BrokerError | None] = []
    made = 0

    def decide(metadata: Metadata, _: int) -> Decision[list[BrokerError | None]]:
        nonlocal made
        decision = grow_topics(metadata, commands, made, take)
        made += len(decision.records)
        return Decision([], decision.response) if validate_only else decision

    async for some in broker.slices.in_turns(wanted, TOPICS_PER_TURN):
        commands = [command(topic) for topic in some]
        is_long = sum(max(topic.count, 0) for topic in commands) > PARTITIONS_AT_ONCE_MAX
        try:
            controller = broker.active
            outcomes += await (controller.submit_long if is_long else controller.submit)(decide)
        except BrokerError as error:
            outcomes += [error.as_value()] * len(some)
    return outcomes


def command(topic: CreatePartitionsTopic) -> GrowTopic:
    if topic.assignments is None:
        return GrowTopic(topic.name, topic.count)
    return GrowTopic(topic.name, topic.count, [assignment.broker_ids for assignment in topic.assignments])


def result(name: str, reason: BrokerError | None) -> CreatePartitionsTopicResult:
    if reason is None:
        return CreatePartitionsTopicResult(name)
    return CreatePartitionsTopicResult(name, reason.code, reason.message)
