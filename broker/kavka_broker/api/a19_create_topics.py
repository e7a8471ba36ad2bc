"""CreateTopics (19): make topics, each for itself; one that is refused does not stop the others.

- Counts of -1 (from version 4 also in Java's clients) ask for `num.partitions` and `default.replication.factor`.
- Brokers named by hand go with counts of -1 only.
- A topic named twice is refused with INVALID_REQUEST, and so is the controllers' own log.
- `validate_only` says what would happen, and nothing does.
- The partitions of each topic, validated ones too, count in the quota controller_mutation_rate. Where it is used up,
  topics are THROTTLING_QUOTA_EXCEEDED from version 6; below they are made, and the client waits.
- A node's own internal topics count for nobody: no client's quota keeps groups from their coordinator.
- A controller that loses the lead when it has made some of them asks the next for the others.
- The answer leaves when the topic is committed and its replicas are open, so `timeout_ms` is never reached.
- From version 5 the answer has the counts and every config as it will hold.
Versions: flexible from 5; topic ids in the answer from 7.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from kavka_broker.core.config.describe import Layers, describe_topic
from kavka_broker.core.config.topic_bounds import PARTITIONS_PER_REQUEST_MAX
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.topics import (
    Created,
    CreateTopic,
    Defaults,
    Take,
    create_topics,
    defaults_of,
    too_many_partitions,
    wanted_partitions,
)
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topic_names import INTERNAL
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.envelopes import ask_elsewhere
from kavka_broker.request.metadata_answers import layers
from kavka_broker.request.mutation_quota import mutations_of
from kavka_broker.request.registry import BOTH, api

DETAILS_FROM_VERSION = 5
STRICT_FROM_VERSION = 6
PARTITIONS_PER_TURN = 50
ANSWERS_PER_TURN = 50
NAMES_PER_TURN = 200
WAITS_FROM_TOPICS: Final = 100
"""An answer with the configs of so many topics, some 100 KB, waits for room among long answers."""
PARTITIONS_AT_ONCE_MAX: Final = 200
"""Partitions of a topic that the loop decides, appends and replays at once: three milliseconds."""
CONFIGS_MAX: Final = 1_000
"""Configs that a topic may name; fewer than fifty exist."""

Result = Created | BrokerError | CreatableTopicResult  # the last is another controller's answer


@api(CreateTopicsRequest, CreateTopicsResponse, versions=(2, 7), on=BOTH, forwarded=True)
async def create(request: CreateTopicsRequest, broker: Broker, client: Client) -> CreateTopicsResponse:
    wanted, refusals = await sorted_out(request.topics, broker)
    with mutations_of(client, broker, strict_from_version=STRICT_FROM_VERSION) as mutations:
        take = _take_nothing if is_for_node(wanted, client) else mutations.record
        results = await decided(wanted, request, broker, client, take)
    topics: list[CreatableTopicResult] = []
    async for refused_ones in broker.slices.in_turns(list(refusals.items()), ANSWERS_PER_TURN):
        topics += [refused(name, reason) for name, reason in refused_ones]
    is_long = len(wanted) >= WAITS_FROM_TOPICS and client.version >= DETAILS_FROM_VERSION
    if is_long and client.has_own_connection and not client.is_answered:  # the exchange gives its place back
        client.making = await broker.answers.turn(client.queue_name)
    details, answers = Details(layers(broker)), list(zip(wanted, results, strict=True))
    async for some in broker.slices.in_turns(answers, ANSWERS_PER_TURN):
        topics += [answer_of(asked, result, details, client.version) for asked, result in some]
    return CreateTopicsResponse(topics=topics)


class Details:
    """The configs of topics as they will hold; topics without any of their own share one list."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers
        self._standard: list[CreatableTopicConfigs] | None = None

    def of(self, configs: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        """Describe the configs of a topic that sets these."""
        if configs:
            return self._described(configs)
        if self._standard is None:
            self._standard = self._described(configs)
        return self._standard

    def _described(self, configs: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        return [
            CreatableTopicConfigs(config.name, config.value, config.read_only, config.source, config.sensitive)
            for config in describe_topic(configs, self._layers)
        ]


def is_for_node(wanted: Sequence[CreatableTopic], client: Client) -> bool:
    """Whether a node of the cluster asks for internal topics, in its own name."""
    is_node = client.peer is None or (client.role == "controller" and client.has_own_connection)
    return is_node and all(topic.name in INTERNAL for topic in wanted)


def _take_nothing(partitions: int) -> None:
    """Count nothing."""


async def sorted_out(
    topics: Sequence[CreatableTopic], broker: Broker
) -> tuple[list[CreatableTopic], dict[str, BrokerError]]:
    """The topics that pass the checks of the request alone, and the refusals of the others."""
    counts: Counter[str] = Counter()
    async for some in broker.slices.in_turns(topics, NAMES_PER_TURN):
        counts.update([topic.name for topic in some])
    wanted: list[CreatableTopic] = []
    refusals: dict[str, BrokerError] = {}
    async for some in broker.slices.in_turns(topics, NAMES_PER_TURN):
        for topic in some:
            reason = reason_against(topic, counts[topic.name])
            if reason is None:
                wanted.append(topic)
            else:
                refusals[topic.name] = reason
    return wanted, refusals


def reason_against(topic: CreatableTopic, count: int) -> BrokerError | None:
    if count > 1:
        return BrokerError(ErrorCode.INVALID_REQUEST, f"topic '{topic.name}' is named {count} times; name it once")
    if len(topic.configs) > CONFIGS_MAX:
        return BrokerError(ErrorCode.INVALID_CONFIG, f"{len(topic.configs)} configs; a topic has fewer")
    return None


async def decided(
    wanted: list[CreatableTopic], request: CreateTopicsRequest, broker: Broker, client: Client, take: Take
) -> list[Result]:
    """The result of each topic. Many topics are decided a portion a turn, no topic is divided."""
    standard = defaults_of(broker.config)
    partitions = 0
    async for some in broker.slices.in_turns(wanted, NAMES_PER_TURN):
        partitions += sum(partitions_of(topic, standard) for topic in some)
    if partitions > PARTITIONS_PER_REQUEST_MAX:
        return [too_many_partitions(partitions)] * len(wanted)
    results: list[Result] = []
    for portion in portions(wanted, standard):
        if results:
            await broker.slices.turn()
        try:
            results += await decide(portion, standard, broker, take, validate_only=request.validate_only)
            client.has_decided = True
        except BrokerError as error:
            if error.code is ErrorCode.NOT_CONTROLLER and not client.has_decided:
                # A client that gets this error asks for all topics again, and would get errors for those just created.
                return [error.as_value()] * len(wanted)
            results += await refused_portion(portion, error.as_value(), request, broker, client)
    return results


async def decide(
    topics: list[CreatableTopic], standard: Defaults, broker: Broker, take: Take, *, validate_only: bool
) -> list[Created | BrokerError]:
    """The results of a portion; a thread decides on a topic of very many partitions. Raises BrokerError where no topic
    is decided.
    """
    is_long = sum(partitions_of(topic, standard) for topic in topics) > PARTITIONS_AT_ONCE_MAX
    controller = broker.active
    commands = [command(topic, controller.new_uuid()) for topic in topics]

    def created(metadata: Metadata, _: int) -> Decision[list[Created | BrokerError]]:
        decision = create_topics(metadata, commands, standard, take)
        return Decision([], decision.response) if validate_only else decision

    return await (controller.submit_long if is_long else controller.submit)(created)


async def refused_portion(
    topics: list[CreatableTopic], error: BrokerError, request: CreateTopicsRequest, broker: Broker, client: Client
) -> Sequence[Result]:
    """The results of a portion that could not be decided here. If the lead was lost after an earlier portion, the
    next controller is asked: a client that asked it for all topics would get an error for those just created.
    """
    if error.code is ErrorCode.NOT_CONTROLLER and client.has_decided:
        rest = CreateTopicsRequest(topics, request.timeout_ms, request.validate_only)
        with suppress(Unreachable, BrokerError):
            answer = await ask_elsewhere(rest, CreateTopicsResponse, broker, client)
            said = {topic.name: topic for topic in answer.topics}
            return [said[topic.name] for topic in topics]
    return [error] * len(topics)


def portions(topics: list[CreatableTopic], standard: Defaults) -> Iterator[list[CreatableTopic]]:
    """The topics in order, in portions of `PARTITIONS_PER_TURN` partitions, or of one larger topic."""
    portion: list[CreatableTopic] = []
    partitions = 0
    for topic in topics:
        more = max(1, partitions_of(topic, standard))
        if portion and partitions + more > PARTITIONS_PER_TURN:
            yield portion
            portion, partitions = [], 0
        portion.append(topic)
        partitions += more
    if portion:
        yield portion


def partitions_of(topic: CreatableTopic, standard: Defaults) -> int:
    """The number of partitions that the topic would have at most."""
    return wanted_partitions(topic.num_partitions, topic.assignments, standard)


def command(topic: CreatableTopic, topic_id: bytes) -> CreateTopic:
    assignments = {assignment.partition_index: tuple(assignment.broker_ids) for assignment in topic.assignments}
    if len(assignments) < len(topic.assignments):
        assignments = {-1: ()}  # a partition is named twice: refused like partitions that are not 0, 1, 2 ...
    return CreateTopic(
        topic.name,
        topic_id,
        topic.num_partitions,
        topic.replication_factor,
        assignments,
        {config.name: config.value for config in topic.configs},
    )


def answer_of(asked: CreatableTopic, result: Result, details: Details, version: int) -> CreatableTopicResult:
    match result:
        case BrokerError():
            return refused(asked.name, result)
        case Created():
            return made(result, details, version)
    return result


def made(topic: Created, details: Details, version: int) -> CreatableTopicResult:
    result = CreatableTopicResult(topic.name, topic.topic_id, error_message=None)
    if version < DETAILS_FROM_VERSION:
        return result
    result.num_partitions = topic.partitions
    result.replication_factor = topic.replication_factor
    result.configs = details.of(topic.configs)
    return result


def refused(name: str, reason: BrokerError) -> CreatableTopicResult:
    return CreatableTopicResult(name, error_code=reason.code, error_message=reason.message)
