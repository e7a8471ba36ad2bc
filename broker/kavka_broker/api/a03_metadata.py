"""Metadata (3): which brokers there are, and where the partitions of topics are led.

- No list of topics (null; in version 0 an empty one) asks for all of them.
- A name that cannot be a topic's is INVALID_TOPIC_EXCEPTION, an unknown one UNKNOWN_TOPIC_OR_PARTITION, an unknown id
  UNKNOWN_TOPIC_ID. Ids can be asked for from version 12, and then a name beside them counts for nothing.
- A topic that does not exist is created behind the answer, where both the broker (`auto.create.topics.enable`) and
  the request (from version 4) allow it (`automatic_topics`). The answer says UNKNOWN_TOPIC_OR_PARTITION, and the client
  asks again, as with Apache Kafka.
- A partition without a leader is LEADER_NOT_AVAILABLE, one whose leader has no such listener LISTENER_NOT_FOUND
  (versions before 6 have other answers: `old_metadata`).
- Where no broker serves yet, as in the first moments of a cluster, the answer waits a second for this one: clients of
  librdkafka that are told of no controller ask again only when their own request has timed out.
- While a broker is suspected to be dead the answer waits for what becomes of it (`membership.unreachable_brokers`).
- A broker that was fenced a moment ago is still shown, without leading anything (`membership.delayed_fencing`).
- Without an authorizer, whoever asks for its operations gets all of them.
Versions: flexible from 9; topic ids from 10; authorized operations of the cluster only in 8 to 10.
"""

from collections.abc import Sequence

from kavka_broker.core.metadata.image.topic_names import INTERNAL, METADATA_TOPIC, problem_with
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.metadata_answers import (
    CLUSTER_OPERATIONS,
    NOT_ASKED,
    TOPIC_OPERATIONS,
    endpoints,
    some_broker,
)
from kavka_broker.request.old_metadata import topic_as_of
from kavka_broker.request.registry import api
from kavka_broker.request.split_requests import Each

IDS_FROM_VERSION = 12
CHOICE_FROM_VERSION = 4
WAITS_FROM_PARTITIONS = 5_000
"""In a cluster of so many an answer about all topics, some 200 KB, waits for room among long answers."""


@api(
    MetadataRequest,
    MetadataResponse,
    versions=(0, 13),
    each=(Each("topics", "topics", per_turn=100, once=True),),
)
async def metadata(request: MetadataRequest, broker: Broker, client: Client) -> MetadataResponse:
    await broker.suspects.cleared()
    if all(registered.fenced for registered in broker.metadata.brokers):
        await broker.lifecycle.unfenced_within(broker.bounds.unfenced_ms_max)
    wanted = request.topics
    if wanted is None or (client.version == 0 and not wanted):
        is_of_connection = client.peer is not None
        if is_of_connection and broker.metadata.topics.partition_count >= WAITS_FROM_PARTITIONS:
            client.making = await broker.answers.turn(client.queue_name)
        answers = await broker.slices.whole(all_topics(broker, client))
        return answer(request, broker, client, answers)
    missing = [
        topic.name
        for topic in wanted
        if topic.name and topic.topic_id == ZERO and can_create(topic.name, request, broker, client)
    ]
    if missing:
        broker.create_topics(missing, client)
    return answer(request, broker, client, await broker.slices.whole(find_all(wanted, broker, client)))


def all_topics(broker: Broker, client: Client) -> Work[list[MetadataResponseTopic]]:
    answers, cost = [], Cost()
    for topic in list(broker.metadata.topics):
        shown = yield from broker.topic_answers.answer(broker.metadata, topic, client.listener, cost)
        shown = yield from topic_as_of(client.version, shown, cost)
        answers.append(shown)
    return answers


def find_all(
    wanted: Sequence[MetadataRequestTopic], broker: Broker, client: Client
) -> Work[list[MetadataResponseTopic]]:
    answers, cost = [], Cost()
    for topic in distinct(wanted):
        found = yield from find(topic, broker, client, cost)
        answers.append(found)
    return answers


def can_create(name: str, request: MetadataRequest, broker: Broker, client: Client) -> bool:
    """Whether a missing topic may be created: its name is valid, and request and configuration allow it."""
    if broker.metadata.topics.get(name) is not None or name == METADATA_TOPIC or problem_with(name) is not None:
        return False
    if client.version >= CHOICE_FROM_VERSION and not request.allow_auto_topic_creation:
        return False
    allowed: bool = broker.config["auto.create.topics.enable"]
    return allowed


def distinct(wanted: Sequence[MetadataRequestTopic]) -> list[MetadataRequestTopic]:
    """Each topic once, in the order of the request."""
    return list({(topic.name, topic.topic_id): topic for topic in wanted}.values())


def find(wanted: MetadataRequestTopic, broker: Broker, client: Client, cost: Cost) -> Work[MetadataResponseTopic]:
    topics = broker.metadata.topics
    if wanted.topic_id != ZERO or wanted.name is None:
        if client.version < IDS_FROM_VERSION or wanted.topic_id == ZERO:
            return MetadataResponseTopic(ErrorCode.INVALID_REQUEST, wanted.name or "", wanted.topic_id)
        topic = topics.by_id(wanted.topic_id)
        if topic is None:
            return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, wanted.topic_id)
    else:
        topic = topics.get(wanted.name)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if problem_with(wanted.name) is not None:
                code = ErrorCode.INVALID_TOPIC_EXCEPTION
            return MetadataResponseTopic(code, wanted.name, is_internal=wanted.name in INTERNAL)
    shown = yield from broker.topic_answers.answer(broker.metadata, topic, client.listener, cost)
    return (yield from topic_as_of(client.version, shown, cost))


def answer(
    request: MetadataRequest, broker: Broker, client: Client, topics: list[MetadataResponseTopic]
) -> MetadataResponse:
    if request.include_topic_authorized_operations:
        topics = [allowed(topic) for topic in topics]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id, endpoint.host, endpoint.port, rack)
            for node_id, endpoint, rack in endpoints(broker, client.listener)
        ],
        cluster_id=broker.cluster_id,
        controller_id=some_broker(broker.metadata, broker.node_id),
        topics=topics,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def allowed(topic: MetadataResponseTopic) -> MetadataResponseTopic:
    """A copy of a topic's answer that names the allowed operations."""
    if topic.error_code != ErrorCode.NONE:
        return topic
    return MetadataResponseTopic(
        topic.error_code, topic.name, topic.topic_id, topic.is_internal, topic.partitions, TOPIC_OPERATIONS
    )
