"""Gates of topics, by their names or ids.

A topic that a client may not DESCRIBE is refused by name whether it exists or not, and is not in a list of all. An id
says nothing of itself, so an unknown id is told as unknown.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kavka_broker.api.a03_metadata import IDS_FROM_VERSION, can_create
from kavka_broker.core.authorization.acl_types import CLUSTER_NAME, Operation
from kavka_broker.dispatch.access.clusters import show_operations
from kavka_broker.dispatch.access.gates import CLUSTER, ITEMS_PER_TURN, TOPIC, Access, Elements, Outcome, then
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import create_partitions_response as growth
from kavka_broker.protocol.messages import create_topics_response as creation
from kavka_broker.protocol.messages import delete_records_response as trimming
from kavka_broker.protocol.messages import describe_producers_response as producers
from kavka_broker.protocol.messages import list_offsets_response as offsets
from kavka_broker.protocol.messages import offset_for_leader_epoch_response as epochs
from kavka_broker.protocol.messages.delete_topics_response import DeletableTopicResult
from kavka_broker.protocol.messages.describe_topic_partitions_request import TopicRequest
from kavka_broker.protocol.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponseTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponseTopic
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import Answer, Api
from kavka_broker.request.split_requests import with_items

OPERATIONS_PER_TURN: Final = 50
"""Topics whose operations are worked out in one turn: eight questions each."""
CONFIGS_FROM_VERSION: Final = 5
UNTOLD: Final = -1

Check = Callable[[Any, Broker, Client, Access], BrokerError | None]


def lacks(operation: Operation, name: str, access: Access) -> BrokerError | None:
    """Return the refusal of a topic; None where the client may do this with it."""
    return None if access.may(operation, TOPIC, name) else access.refusal(operation, TOPIC, name)


def named(operation: Operation, attribute: str = "name") -> Check:
    """Return the check of an element that names its topic."""

    def refusal(item: Any, broker: Broker, client: Client, access: Access) -> BrokerError | None:
        del broker, client
        return lacks(operation, getattr(item, attribute), access)

    return refusal


def name_of(item: Any, broker: Broker) -> str | None:
    """Return the name of a topic that is named, or known by its id; None for an unknown id."""
    if item.topic_id == ZERO:
        return item.name or ""
    topic = broker.metadata.topics.by_id(item.topic_id)
    return None if topic is None else topic.name


LIST_OFFSETS = Elements(
    "topics",
    "topics",
    named(Operation.DESCRIBE),
    lambda topic, refusal: offsets.ListOffsetsTopicResponse(
        topic.name, [offsets.ListOffsetsPartitionResponse(p.partition_index, refusal.code) for p in topic.partitions]
    ),
)
DELETE_RECORDS = Elements(
    "topics",
    "topics",
    named(Operation.DELETE),
    lambda topic, refusal: trimming.DeleteRecordsTopicResult(
        topic.name,
        [trimming.DeleteRecordsPartitionResult(p.partition_index, -1, refusal.code) for p in topic.partitions],
    ),
)
OFFSET_FOR_LEADER_EPOCH = Elements(
    "topics",
    "topics",
    named(Operation.DESCRIBE, "topic"),
    lambda topic, refusal: epochs.OffsetForLeaderTopicResult(
        topic.topic, [epochs.EpochEndOffset(refusal.code, p.partition) for p in topic.partitions]
    ),
    is_open=lambda access: access.may_cluster(Operation.CLUSTER_ACTION),
)
DESCRIBE_PRODUCERS = Elements(
    "topics",
    "topics",
    named(Operation.READ),
    lambda topic, refusal: producers.TopicResponse(
        topic.name,
        [producers.PartitionResponse(index, refusal.code, refusal.message) for index in topic.partition_indexes],
    ),
)
CREATE_PARTITIONS = Elements(
    "topics",
    "results",
    named(Operation.ALTER),
    lambda topic, refusal: growth.CreatePartitionsTopicResult(topic.name, refusal.code, refusal.message),
)


# --- Metadata and DescribeTopicPartitions ---------------------------------------------------------------------------


def metadata(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Show the topics that the client may DESCRIBE, and create those that it may CREATE."""
    if request.topics is None or (client.version == 0 and not request.topics):
        return _all_topics(request, api, broker, client, access)
    gate = Elements("topics", "topics", partial(_shown, request), _hidden, asks_always=True)
    outcome = gate(request, api, broker, client, access)
    if client.version == 0:  # no topics would ask for all of them
        asked = {topic.name for topic in request.topics}
        outcome = then(outcome, lambda answer: _keep_asked(answer, asked, access))
    return then(outcome, lambda answer: _show_all_operations(answer, request, access))


async def _all_topics(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Answer:
    outcome = api.handle(request, broker, client)
    assert outcome is not None
    answer: Any = outcome if isinstance(outcome, Message) else await outcome
    shown = []
    async for some in broker.slices.in_turns(answer.topics, OPERATIONS_PER_TURN):
        visible = [topic for topic in some if access.may(Operation.DESCRIBE, TOPIC, topic.name)]
        if request.include_topic_authorized_operations:
            _show_operations(visible, access)
        shown += visible
    answer.topics = shown
    show_operations(answer, access)
    return answer  # type: ignore[no-any-return]


def _keep_asked(answer: Any, asked: set[str | None], access: Access) -> None:
    answer.topics = [
        topic
        for topic in answer.topics
        if topic.name in asked and (topic.error_code or access.may(Operation.DESCRIBE, TOPIC, topic.name))
    ]


def _shown(request: Any, topic: Any, broker: Broker, client: Client, access: Access) -> BrokerError | None:
    if client.version < IDS_FROM_VERSION and (topic.topic_id != ZERO or topic.name is None):
        return None  # no topic is looked for: the handler refuses it, and these versions have no name that is null
    name = name_of(topic, broker)
    if name is None:
        return None
    if (refusal := lacks(Operation.DESCRIBE, name, access)) is not None:
        return refusal
    if topic.topic_id == ZERO and can_create(name, request, broker, client) and not _may_create(name, access):
        return access.refusal(Operation.CREATE, TOPIC, name)
    return None


def _may_create(name: str, access: Access) -> bool:
    return access.may_cluster(Operation.CREATE) or access.may(Operation.CREATE, TOPIC, name)


def _hidden(topic: Any, refusal: BrokerError) -> MetadataResponseTopic:
    """Return the answer about a topic without what the client did not know."""
    if topic.topic_id != ZERO:
        return MetadataResponseTopic(refusal.code, None, topic.topic_id)
    return MetadataResponseTopic(refusal.code, topic.name)


def _show_all_operations(answer: Any, request: Any, access: Access) -> None:
    if request.include_topic_authorized_operations:
        _show_operations(answer.topics, access)
    show_operations(answer, access)


def _show_operations(topics: list[Any], access: Access) -> None:
    """Put the operations on topics that are not refused; also on those that do not exist, as Kafka does."""
    for topic in topics:
        if topic.name is not None and topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            topic.topic_authorized_operations = access.operations(TOPIC, topic.name)


async def describe_partitions(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Answer:
    """Page through the topics that the client may DESCRIBE; the hidden ones leave no gap in a page."""
    names = [topic.name for topic in request.topics] or list(broker.metadata.topics.names())
    shown: list[str] = []
    hidden: list[DescribeTopicPartitionsResponseTopic] = []
    async for some in broker.slices.in_turns(names, ITEMS_PER_TURN):
        for name in some:
            if (refusal := lacks(Operation.DESCRIBE, name, access)) is None:
                shown.append(name)
            elif request.topics:
                hidden.append(DescribeTopicPartitionsResponseTopic(refusal.code, name))
    asked, cursor = request, request.cursor
    if not request.topics and cursor is not None and cursor.topic_name not in shown:
        shown = [name for name in shown if name > cursor.topic_name]
        asked = with_items(asked, "cursor", None)
    answer: Any = api.response()
    if shown:
        answer = api.handle(with_items(asked, "topics", [TopicRequest(name) for name in shown]), broker, client)
        answer = answer if isinstance(answer, api.response) else await answer
    _show_operations(answer.topics, access)
    answer.topics += hidden
    return answer  # type: ignore[no-any-return]


# --- CreateTopics and DeleteTopics ----------------------------------------------------------------------------------


def create_topics(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Create what CREATE on the cluster, or on a topic, permits; show configs where DESCRIBE_CONFIGS does."""
    gate = Elements("topics", "topics", named(Operation.CREATE), _not_created, _may_create_all)
    outcome = gate(request, api, broker, client, access)
    if client.version < CONFIGS_FROM_VERSION:
        return outcome
    return then(outcome, lambda answer: _hide_configs(answer, access))


def _may_create_all(access: Access) -> bool:
    return access.may(Operation.CREATE, CLUSTER, CLUSTER_NAME)


def _not_created(topic: Any, refusal: BrokerError) -> creation.CreatableTopicResult:
    return creation.CreatableTopicResult(topic.name, error_code=refusal.code, error_message=refusal.message)


def _hide_configs(answer: Any, access: Access) -> None:
    for topic in answer.topics:
        if not topic.error_code and not access.may(Operation.DESCRIBE_CONFIGS, TOPIC, topic.name):
            topic.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            topic.num_partitions = topic.replication_factor = UNTOLD
            topic.configs = None


def delete_topics(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Delete all topics where the client may DELETE the cluster; otherwise those that it may DELETE.

    By name the client has to DESCRIBE a topic too. By id only DELETE counts: a client with an id knows of the topic.
    """
    where = "topics" if request.topics else "topic_names"
    refused = partial(_not_deleted, broker, access)
    return Elements(where, "responses", _deletable, refused, _may_delete_all)(request, api, broker, client, access)


def _may_delete_all(access: Access) -> bool:
    return access.may_cluster(Operation.DELETE)


def _deletable(item: Any, broker: Broker, client: Client, access: Access) -> BrokerError | None:
    del client
    named, topic_id = (item, ZERO) if isinstance(item, str) else (item.name, item.topic_id)
    if (named is None) == (topic_id == ZERO):
        return None  # it names no topic, or in two ways, and the handler says so
    if named is None:
        known = broker.metadata.topics.by_id(topic_id)
        return None if known is None else lacks(Operation.DELETE, known.name, access)
    if (hidden := lacks(Operation.DESCRIBE, named, access)) is not None:
        return hidden
    if broker.metadata.topics.get(named) is None:
        return None  # the client may know that there is none: the handler says so
    return lacks(Operation.DELETE, named, access)


def _not_deleted(broker: Broker, access: Access, item: Any, refusal: BrokerError) -> DeletableTopicResult:
    """Return the answer about a topic; the name of an id is for those that may DESCRIBE it."""
    if isinstance(item, str):
        return DeletableTopicResult(item, ZERO, refusal.code, refusal.message)
    name = item.name
    if name is None and (known := name_of(item, broker)) is not None and access.may(Operation.DESCRIBE, TOPIC, known):
        name = known
    return DeletableTopicResult(name, item.topic_id, refusal.code, refusal.message)
