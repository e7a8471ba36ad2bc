"""CreateTopics (19): make topics, each for itself; one that is refused does not stop the others.

- Counts of -1 (from version 4 also in Java's clients) ask for `num.partitions` and `default.replication.factor`.
- Brokers named by hand go with counts of -1 only.
- A topic named twice is refused with INVALID_REQUEST, and so is the controllers' own log.
- `validate_only` says what would happen, and nothing does.
- The answer leaves when the topic is committed and its replicas are open, so `timeout_ms` is never reached.
- From version 5 the answer has the counts and every config as it will hold.
Versions: flexible from 5; topic ids in the answer from 7.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.metadata_answers import layers
from kavka_broker.api.registry import BOTH, api
from kavka_broker.controller.auto_create import defaults
from kavka_broker.core.config.describe import Layers, describe_topic
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.topics import (
    Created,
    CreateTopic,
    Defaults,
    create_topics,
    too_many,
    wanted_partitions,
)
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kavka_broker.protocol.uuids import ZERO

DETAILS_FROM_VERSION = 5
PARTITIONS_PER_TURN = 50
ANSWERS_PER_TURN = 50

Result = Created | BrokerError


@api(CreateTopicsRequest, CreateTopicsResponse, versions=(2, 7), on=BOTH, forwarded=True)
async def create(request: CreateTopicsRequest, broker: Broker, client: Client) -> CreateTopicsResponse:
    counts = Counter(topic.name for topic in request.topics)
    wanted = [topic for topic in request.topics if counts[topic.name] == 1]
    results = await decided(wanted, broker, validate_only=request.validate_only)
    topics = [
        refused(name, BrokerError(ErrorCode.INVALID_REQUEST, f"topic '{name}' is there {count} times; name it once"))
        for name, count in counts.items()
        if count > 1
    ]
    places = layers(broker)
    for number, (asked, result) in enumerate(zip(wanted, results, strict=True), 1):
        if not number % ANSWERS_PER_TURN:
            await broker.slices.turn()
        if isinstance(result, BrokerError):
            topics.append(refused(asked.name, result))
        else:
            topics.append(made(result, places, client.version))
    return CreateTopicsResponse(topics=topics)


async def decided(wanted: list[CreatableTopic], broker: Broker, *, validate_only: bool) -> list[Result]:
    """What becomes of each topic. Many are decided a portion a turn, each topic whole."""
    standard = defaults(broker.config)
    commands = [command(topic, ZERO) for topic in wanted]
    refused = too_many(commands, standard)
    if refused is not None:
        return [refused] * len(wanted)
    results: list[Result] = []
    for some in portions(commands, standard):
        if results:
            await broker.slices.turn()
        results += await decide(some, standard, broker, validate_only=validate_only)
    return results


async def decide(
    commands: list[CreateTopic], standard: Defaults, broker: Broker, *, validate_only: bool
) -> list[Result]:
    def created(metadata: Metadata, _: int) -> Decision[list[Result]]:
        named = [replace(one, topic_id=broker.active.new_uuid()) for one in commands]
        decision = create_topics(metadata, named, standard)
        return Decision([], decision.response) if validate_only else decision

    try:
        return await broker.active.submit(created)
    except BrokerError as error:
        return [error] * len(commands)


def portions(commands: list[CreateTopic], standard: Defaults) -> Iterator[list[CreateTopic]]:
    """The commands in order, `PARTITIONS_PER_TURN` at a time, or one topic that has more."""
    portion: list[CreateTopic] = []
    partitions = 0
    for one in commands:
        more = max(1, wanted_partitions(one, standard))
        if portion and partitions + more > PARTITIONS_PER_TURN:
            yield portion
            portion, partitions = [], 0
        portion.append(one)
        partitions += more
    yield portion


def command(topic: CreatableTopic, topic_id: bytes) -> CreateTopic:
    assignments = {one.partition_index: tuple(one.broker_ids) for one in topic.assignments}
    if len(assignments) < len(topic.assignments):
        assignments = {-1: ()}  # a partition twice: refused as partitions that are not 0, 1, 2
    return CreateTopic(
        topic.name,
        topic_id,
        topic.num_partitions,
        topic.replication_factor,
        assignments,
        {config.name: config.value for config in topic.configs},
    )


def made(topic: Created, places: Layers, version: int) -> CreatableTopicResult:
    result = CreatableTopicResult(topic.name, topic.topic_id, error_message=None)
    if version < DETAILS_FROM_VERSION:
        return result
    result.num_partitions = topic.partitions
    result.replication_factor = topic.replication_factor
    result.configs = [
        CreatableTopicConfigs(one.name, one.value, one.read_only, one.source, one.sensitive)
        for one in describe_topic(topic.configs, places)
    ]
    return result


def refused(name: str, reason: BrokerError) -> CreatableTopicResult:
    return CreatableTopicResult(name, error_code=reason.code, error_message=reason.message)
