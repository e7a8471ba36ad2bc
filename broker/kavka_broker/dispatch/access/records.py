"""Gates of records: Produce, Fetch, and the ids of producers."""

from typing import Any

from kavka_broker.api.a01_fetch import follower_of
from kavka_broker.core.authorization.acl_types import CLUSTER_NAME, Operation, ResourceType
from kavka_broker.core.metadata.image.topic_names import INTERNAL
from kavka_broker.dispatch.access.gates import CLUSTER, TOPIC, Access, Elements, Outcome
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.protocol.messages.produce_response import PartitionProduceResponse, TopicProduceResponse
from kavka_broker.replica.writing.produce import name_of
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.produce_policy import ADMIN_CLIENT_ID
from kavka_broker.request.registry import Api

TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID


def produce(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Append to the topics that the client may WRITE; a transactional id takes WRITE too, an internal topic the
    CLUSTER_ACTION of nodes.

    Raises ProtocolViolation where acks=0 leaves no other way to tell a refusal.
    """
    transactional_id = request.transactional_id
    gate = _WRITE
    if transactional_id is not None and not access.may(Operation.WRITE, TRANSACTIONAL_ID, transactional_id):
        refusal = access.refusal(Operation.WRITE, TRANSACTIONAL_ID, transactional_id)
        gate = Elements("topic_data", "responses", lambda *_: refusal, _not_written)
    if request.acks != 0:
        return gate(request, api, broker, client, access)
    for topic in request.topic_data:
        if (lacking := gate.refusal(topic, broker, client, access)) is not None:
            raise ProtocolViolation(f"Produce with acks=0: {lacking.message}")
    return api.handle(request, broker, client)


def _may_write(topic: Any, broker: Broker, client: Client, access: Access) -> BrokerError | None:
    name = name_of(topic, broker.metadata, client.version)
    if name is None:
        return None
    if not access.may(Operation.WRITE, TOPIC, name):
        return access.refusal(Operation.WRITE, TOPIC, name)
    # Any client may call itself a node. One of another id is told by the handler what Apache Kafka tells it.
    if name in INTERNAL and client.client_id == ADMIN_CLIENT_ID and not access.may_cluster(Operation.CLUSTER_ACTION):
        return access.refusal(Operation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)
    return None


def _not_written(topic: Any, refusal: BrokerError) -> TopicProduceResponse:
    return TopicProduceResponse(
        topic.name,
        topic.topic_id,
        [
            PartitionProduceResponse(data.index, refusal.code, -1, error_message=refusal.message)
            for data in topic.partition_data
        ],
    )


_WRITE = Elements("topic_data", "responses", _may_write, _not_written)


def fetch(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Let nodes fetch that may take CLUSTER_ACTION. What a consumer may READ is asked of each partition, at each fetch
    of its session (`a01_fetch`).
    """
    is_node = client.role == "controller" or follower_of(request) is not None
    if not is_node or access.may_cluster(Operation.CLUSTER_ACTION):
        return api.handle(request, broker, client)
    if client.role == "controller":
        raise access.refusal(Operation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic.topic,
                topic.topic_id,
                [PartitionData(asked.partition, code, -1, records=b"") for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def init_producer_id(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Give ids to those that may write: a transactional id takes WRITE, and TWO_PHASE_COMMIT where another system ends
    its transactions (KIP-939); any other takes IDEMPOTENT_WRITE or WRITE of some topic.
    """
    transactional_id = request.transactional_id
    if transactional_id is not None:
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        may = access.may(Operation.WRITE, TRANSACTIONAL_ID, transactional_id) and (
            not request.enable2_pc or access.may(Operation.TWO_PHASE_COMMIT, TRANSACTIONAL_ID, transactional_id)
        )
    else:
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        may = access.may_cluster(Operation.IDEMPOTENT_WRITE) or access.may_some(Operation.WRITE, TOPIC)
    if may:
        return api.handle(request, broker, client)
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
