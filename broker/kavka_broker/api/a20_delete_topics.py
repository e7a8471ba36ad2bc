"""DeleteTopics (20): take topics away, by name or, from version 6, by id.

- Where `delete.topic.enable` is off every topic is TOPIC_DELETION_DISABLED (INVALID_REQUEST below version 3).
- An unknown name is UNKNOWN_TOPIC_OR_PARTITION, an unknown id UNKNOWN_TOPIC_ID.
- A topic with both a name and an id, with neither, or there twice, is INVALID_REQUEST.
- The partitions of each topic count in the quota controller_mutation_rate. Where it is used up, topics are
  THROTTLING_QUOTA_EXCEEDED from version 5; below they are deleted, and the client waits.
- The answer leaves when the deletion is committed and the replicas are closed; files are removed afterwards.
Versions: flexible from 4; messages from 5; ids from 6.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.topics import Take, delete_topic
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import Topic
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.mutation_quota import mutations_of
from kavka_broker.request.registry import BOTH, api
from kavka_broker.request.split_requests import Each

IDS_FROM_VERSION = 6
STRICT_FROM_VERSION = 5
DISABLED_FROM_VERSION = 3


EACH = (Each("topics", "responses", per_turn=50), Each("topic_names", "responses", per_turn=50))


@api(DeleteTopicsRequest, DeleteTopicsResponse, versions=(1, 6), on=BOTH, forwarded=True, each=EACH)
async def delete(request: DeleteTopicsRequest, broker: Broker, client: Client) -> DeleteTopicsResponse:
    wanted = request.topics
    if client.version < IDS_FROM_VERSION:
        wanted = [DeleteTopicState(name) for name in request.topic_names]
    if not broker.config["delete.topic.enable"]:
        old = client.version < DISABLED_FROM_VERSION
        code = ErrorCode.INVALID_REQUEST if old else ErrorCode.TOPIC_DELETION_DISABLED
        reason = BrokerError(code, "delete.topic.enable is false on this broker")
        return DeleteTopicsResponse(responses=[result(topic, reason) for topic in wanted])

    with mutations_of(client, broker, strict_from_version=STRICT_FROM_VERSION) as mutations:
        try:
            decide = partial(delete_all, wanted=wanted, take=mutations.record)
            return DeleteTopicsResponse(responses=await broker.active.submit(decide))
        except BrokerError as error:
            return DeleteTopicsResponse(responses=[result(topic, error) for topic in wanted])


def delete_all(
    metadata: Metadata, _: int, wanted: Sequence[DeleteTopicState], take: Take
) -> Decision[list[DeletableTopicResult]]:
    """The record that deletes each topic, or the reason why it stays."""
    found: list[tuple[DeleteTopicState, Topic | BrokerError]] = [
        (wanted_topic, find(metadata, wanted_topic)) for wanted_topic in wanted
    ]
    times = Counter(topic.topic_id for _, topic in found if isinstance(topic, Topic))
    records: list[Message] = []
    results = []
    for wanted_topic, topic in found:
        if isinstance(topic, BrokerError):
            results.append(result(wanted_topic, topic))
            continue
        match times.pop(topic.topic_id, 0):
            case 0:
                continue  # a topic named twice is answered at its first place
            case 1:
                try:
                    records += delete_topic(topic, take).records
                    results.append(DeletableTopicResult(topic.name, topic.topic_id))
                except BrokerError as reason:
                    results.append(result(wanted_topic, reason))
            case count:
                problem = f"'{topic.name}' is named {count} times; name it once"
                results.append(result(wanted_topic, BrokerError(ErrorCode.INVALID_REQUEST, problem)))
    return Decision(records, results)


def find(metadata: Metadata, wanted: DeleteTopicState) -> Topic | BrokerError:
    if wanted.name is None:
        if wanted.topic_id == ZERO:
            return BrokerError(ErrorCode.INVALID_REQUEST, "name the topic, or give its id")
        topic = metadata.topics.by_id(wanted.topic_id)
        return topic or BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic of this id")
    if wanted.topic_id != ZERO:
        return BrokerError(ErrorCode.INVALID_REQUEST, f"'{wanted.name}' comes with an id; send one of the two")
    topic = metadata.topics.get(wanted.name)
    return topic or BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{wanted.name}'")


def result(wanted: DeleteTopicState, reason: BrokerError) -> DeletableTopicResult:
    return DeletableTopicResult(wanted.name, wanted.topic_id, reason.code, reason.message)
