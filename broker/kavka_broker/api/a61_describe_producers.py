"""DescribeProducers (61): what a partition knows of its producers, so that a hanging transaction can be found.

- Each replica answers from its own log, as in Apache Kafka: `kafka-transactions find-hanging` asks a broker for all
  that it has a replica of, `describe-producers` the leader or the broker that it is told.
- The last sequence is -1 and the start of the transaction is -1 where there is none.
Versions: flexible.
"""

import asyncio

from kavka_broker.core.partition.producer_state import Producer
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.messages.describe_producers_request import DescribeProducersRequest
from kavka_broker.protocol.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api, listing
from kavka_broker.request.split_requests import Each


@api(
    DescribeProducersRequest,
    DescribeProducersResponse,
    versions=(0, 0),
    each=(Each("topics.partition_indexes", "topics.partitions", per_turn=100, once=True),),
)
@listing
def describe_producers(
    request: DescribeProducersRequest, broker: Broker, client: Client
) -> DescribeProducersResponse | asyncio.Task[DescribeProducersResponse]:
    return broker.slices.run(describe_all(request, broker))


def describe_all(request: DescribeProducersRequest, broker: Broker) -> Work[DescribeProducersResponse]:
    answer, cost = DescribeProducersResponse(), Cost()
    for topic in request.topics:
        answered = TopicResponse(topic.name)
        for index in topic.partition_indexes:
            answered.partitions.append((yield from describe(topic.name, index, broker, cost)))
        answer.topics.append(answered)
    return answer


def describe(topic: str, index: int, broker: Broker, cost: Cost) -> Work[PartitionResponse]:
    try:
        partition = broker.partitions.get(topic, index) or broker.partitions.leader(topic, index)
    except BrokerError as error:
        return PartitionResponse(index, error.code, error.message)
    answer = PartitionResponse(index)
    for known in list(partition.log.producers):
        answer.active_producers.append(state_of(*known))
        if cost.add(1):
            yield
    return answer


def state_of(producer_id: int, producer: Producer) -> ProducerState:
    return ProducerState(
        producer_id,
        producer.epoch,
        producer.last_sequence,
        producer.timestamp_ms,
        producer.coordinator_epoch,
        producer.transaction_first_offset,
    )
