"""DescribeTransactions (65): where transactional ids stand that this broker coordinates.

- An id that nobody has used is TRANSACTIONAL_ID_NOT_FOUND, one that another broker coordinates NOT_COORDINATOR.
- Of a transaction that is decided the partitions are named that have no marker yet.
Versions: flexible.
"""

import asyncio

from kavka_broker.core.transaction.state import Transaction
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from kavka_broker.protocol.messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api, listing
from kavka_broker.request.split_requests import Each


@api(
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    versions=(0, 0),
    each=(Each("transactional_ids", "transaction_states", per_turn=20, once=True),),
)
@listing
def describe_transactions(
    request: DescribeTransactionsRequest, broker: Broker, client: Client
) -> DescribeTransactionsResponse | asyncio.Task[DescribeTransactionsResponse]:
    del client
    return broker.slices.run(describe_all(request, broker))


def describe_all(request: DescribeTransactionsRequest, broker: Broker) -> Work[DescribeTransactionsResponse]:
    answer, cost = DescribeTransactionsResponse(), Cost()
    for transactional_id in request.transactional_ids:
        described = describe(transactional_id, broker)
        answer.transaction_states.append(described)
        if cost.add(1 + sum(len(topic.partitions) for topic in described.topics)):
            yield
    return answer


def describe(transactional_id: str, broker: Broker) -> TransactionState:
    try:
        if not transactional_id:
            raise BrokerError(ErrorCode.INVALID_REQUEST)
        transaction = broker.transactions.get(transactional_id)
    except BrokerError as error:
        return TransactionState(error.code, transactional_id)
    if transaction is None:
        return TransactionState(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id)
    standing = transaction.standing
    return TransactionState(
        ErrorCode.NONE,
        transactional_id,
        standing.state.title,
        standing.timeout_ms,
        standing.started_ms,
        standing.producer_id,
        standing.producer_epoch,
        topics_of(transaction),
    )


def topics_of(transaction: Transaction) -> list[TopicData]:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(index)
    return [TopicData(topic, indexes) for topic, indexes in topics.items()]
