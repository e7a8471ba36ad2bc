"""DescribeProducers (61): what a partition knows of its producers, so that a hanging transaction can be found.

- Only the leader answers. `kafka-transactions find-hanging` and `describe-producers` ask.
- The last sequence is -1 and the start of the transaction is -1 where there is none.
Versions: flexible.
"""

from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.division import Each
from kavka_broker.api.registry import api
from kavka_broker.core.partition.producer_state import Producer
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.messages.describe_producers_request import DescribeProducersRequest
from kavka_broker.protocol.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


@api(
    DescribeProducersRequest,
    DescribeProducersResponse,
    versions=(0, 0),
    each=(Each("topics.partition_indexes", "topics.partitions", per_turn=100),),
)
def describe_producers(request: DescribeProducersRequest, broker: Broker, client: Client) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(topic.name, [describe(topic.name, index, broker) for index in topic.partition_indexes])
            for topic in request.topics
        ]
    )


def describe(topic: str, index: int, broker: Broker) -> PartitionResponse:
    try:
        partition = broker.replicas.leader(topic, index)
    except BrokerError as error:
        return PartitionResponse(index, error.code, error.message)
    return PartitionResponse(index, active_producers=[state_of(*known) for known in partition.log.producers])


def state_of(producer_id: int, producer: Producer) -> ProducerState:
    return ProducerState(
        producer_id,
        producer.epoch,
        producer.last_sequence,
        producer.timestamp_ms,
        producer.coordinator_epoch,
        producer.transaction_first_offset,
    )
