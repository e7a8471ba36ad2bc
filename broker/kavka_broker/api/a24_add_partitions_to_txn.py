"""AddPartitionsToTxn (24): the partitions that a transaction is about to write to.

- Up to version 3 from a producer, for one transaction. From version 4 on from a broker, on whose partitions a producer
  has begun to write: for several transactions, or only to verify that their producers have added them (KIP-890).
- Of a transaction all partitions are added or none: where one does not exist the others are
  OPERATION_NOT_ATTEMPTED. (Of many, each 500: a partition that is added, and not written to, costs a marker.)
- Partitions that find no room among the 64 MiB of the ids of their partition of `__transaction_state`, and of what is
  in their transactions, are COORDINATOR_NOT_AVAILABLE, upon which a client tries again.
- Answered when every in-sync replica of the coordinator's log has the record. Where the id's last transaction is
  decided, and not complete yet, it is waited for, 20 ms at most, before the answer to a producer is
  CONCURRENT_TRANSACTIONS. A broker is answered at once: behind its question stand those about other ids.
Versions: flexible from 3, PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH from 2, brokers from 4.
"""

from collections.abc import Mapping, Sequence

from kavka_broker.api.a22_init_producer_id import told_to
from kavka_broker.core.metadata.image.topic_names import INTERNAL
from kavka_broker.core.transaction.state import BUMPS_FROM, Place
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kavka_broker.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import FETCH_BYTES_MAX, api
from kavka_broker.request.split_requests import Each

BROKERS_VERSION = 4
FENCED_FROM_VERSION = 2
PARTITIONS_PER_TURN = 500


EACH = (
    Each(
        "transactions.topics.partitions",
        "results_by_transaction.topic_results.results_by_partition",
        per_turn=PARTITIONS_PER_TURN,
    ),
    Each(
        "v3_and_below_topics.partitions",
        "results_by_topic_v3_and_below.results_by_partition",
        per_turn=PARTITIONS_PER_TURN,
    ),
)


@api(AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, versions=(0, 5), each=EACH, bytes_max=FETCH_BYTES_MAX)
async def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, broker: Broker, client: Client
) -> AddPartitionsToTxnResponse:
    if client.version >= BROKERS_VERSION:
        results = [
            AddPartitionsToTxnResult(asked.transactional_id, await answer(asked, broker, client))
            for asked in request.transactions
        ]
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    asked = AddPartitionsToTxnTransaction(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        False,
        request.v3_and_below_topics,
    )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await answer(asked, broker, client))


async def answer(
    asked: AddPartitionsToTxnTransaction, broker: Broker, client: Client
) -> list[AddPartitionsToTxnTopicResult]:
    places = [(topic.name, index) for topic in asked.topics for index in topic.partitions]
    problems = {place: problem for place in places if (problem := problem_with(place, broker, client)) is not None}
    if problems:
        codes = {place: problems.get(place, ErrorCode.OPERATION_NOT_ATTEMPTED) for place in places}
        return results(asked.topics, codes)
    try:
        codes = await decide(asked, places, broker, client)
    except BrokerError as error:
        codes = dict.fromkeys(places, told_to(client, FENCED_FROM_VERSION, error))
    return results(asked.topics, codes)


async def decide(
    asked: AddPartitionsToTxnTransaction, places: Sequence[Place], broker: Broker, client: Client
) -> dict[Place, ErrorCode]:
    """Raises BrokerError."""
    if not asked.transactional_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST)
    producer = asked.producer_id, asked.producer_epoch
    if asked.verify_only:
        return broker.transactions.verify(asked.transactional_id, producer, places)
    version = BUMPS_FROM if client.version >= BROKERS_VERSION else 0
    if client.version < BROKERS_VERSION:
        await broker.transactions.until_completed(asked.transactional_id)
    await broker.transactions.add_partitions(
        asked.transactional_id, producer, places, version, client.connection_number
    )
    return dict.fromkeys(places, ErrorCode.NONE)


def problem_with(place: Place, broker: Broker, client: Client) -> ErrorCode | None:
    name, index = place
    if name in INTERNAL and client.version < BROKERS_VERSION:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = broker.metadata.topics.get(name)
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None or index not in topic.partitions else None


def results(
    topics: Sequence[AddPartitionsToTxnTopic], codes: Mapping[Place, ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            topic.name,
            [AddPartitionsToTxnPartitionResult(index, codes[topic.name, index]) for index in topic.partitions],
        )
        for topic in topics
    ]
