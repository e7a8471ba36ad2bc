"""Gates of transactions: transactional ids, the topics that they write to, and the groups whose offsets they commit."""

from typing import Any

from kavka_broker.api.a24_add_partitions_to_txn import BROKERS_VERSION, results
from kavka_broker.api.a28_txn_offset_commit import TOPIC_ID_VERSION
from kavka_broker.core.authorization.acl_types import CLUSTER_NAME, Operation, ResourceType
from kavka_broker.core.metadata.image.topic_names import INTERNAL
from kavka_broker.dispatch.access.gates import CLUSTER, GROUP, ITEMS_PER_TURN, TOPIC, Access, Elements, Outcome
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages import txn_offset_commit_response as commits
from kavka_broker.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from kavka_broker.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from kavka_broker.protocol.messages.describe_transactions_response import TransactionState
from kavka_broker.protocol.messages.end_txn_response import EndTxnResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import Answer, Api

TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID


def lacks_write(transactional_id: str, access: Access) -> BrokerError | None:
    """Return the refusal of a transactional id; None where the client may write in its name."""
    if access.may(Operation.WRITE, TRANSACTIONAL_ID, transactional_id):
        return None
    return access.refusal(Operation.WRITE, TRANSACTIONAL_ID, transactional_id)


def add_partitions(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Let brokers ask with CLUSTER_ACTION; let producers add topics that they may WRITE to: all of them or none."""
    if client.version >= BROKERS_VERSION:
        if not access.may_cluster(Operation.CLUSTER_ACTION):
            raise access.refusal(Operation.CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)
        return api.handle(request, broker, client)
    topics = request.v3_and_below_topics
    places = [(topic.name, index) for topic in topics for index in topic.partitions]
    if (lacking := lacks_write(request.v3_and_below_transactional_id, access)) is not None:
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=results(topics, dict.fromkeys(places, lacking.code))
        )
    refused = {
        topic.name: access.refusal(Operation.WRITE, TOPIC, topic.name).code
        for topic in topics
        if topic.name in INTERNAL or not access.may(Operation.WRITE, TOPIC, topic.name)
    }
    if not refused:
        return api.handle(request, broker, client)
    codes = {place: refused.get(place[0], ErrorCode.OPERATION_NOT_ATTEMPTED) for place in places}
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results(topics, codes))


def add_offsets(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Let the client WRITE in the name of the transactional id, for a group that it may READ."""
    lacking = lacks_write(request.transactional_id, access)
    if lacking is None and not access.may(Operation.READ, GROUP, request.group_id):
        lacking = access.refusal(Operation.READ, GROUP, request.group_id)
    if lacking is not None:
        return AddOffsetsToTxnResponse(error_code=lacking.code)
    return api.handle(request, broker, client)


def end(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Let the client end what it may WRITE in the name of the transactional id."""
    if (lacking := lacks_write(request.transactional_id, access)) is not None:
        return EndTxnResponse(error_code=lacking.code)
    return api.handle(request, broker, client)


def commit_offsets(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Outcome:
    """Commit in the name of a transactional id that takes WRITE, for a group and of topics that take READ."""
    lacking = lacks_write(request.transactional_id, access)
    if lacking is None and not access.may(Operation.READ, GROUP, request.group_id):
        lacking = access.refusal(Operation.READ, GROUP, request.group_id)
    if lacking is not None:
        return commits.TxnOffsetCommitResponse(topics=[_not_committed(topic, lacking) for topic in request.topics])
    return _COMMIT(request, api, broker, client, access)


def _may_read(topic: Any, broker: Broker, client: Client, access: Access) -> BrokerError | None:
    name = topic.name
    if client.version >= TOPIC_ID_VERSION:
        known = broker.metadata.topics.by_id(topic.topic_id)
        if known is None:  # refused here, as a topic of the id may be made before the handler looks
            return BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
        name = known.name
    return None if access.may(Operation.READ, TOPIC, name) else access.refusal(Operation.READ, TOPIC, name)


def _not_committed(topic: Any, refusal: BrokerError) -> commits.TxnOffsetCommitResponseTopic:
    return commits.TxnOffsetCommitResponseTopic(
        topic.name,
        topic.topic_id,
        [commits.TxnOffsetCommitResponsePartition(asked.partition_index, refusal.code) for asked in topic.partitions],
    )


_COMMIT = Elements("topics", "topics", _may_read, _not_committed)


def _may_describe(transactional_id: str, broker: Broker, client: Client, access: Access) -> BrokerError | None:
    del broker, client
    if access.may(Operation.DESCRIBE, TRANSACTIONAL_ID, transactional_id):
        return None
    return access.refusal(Operation.DESCRIBE, TRANSACTIONAL_ID, transactional_id)


_DESCRIBE = Elements(
    "transactional_ids",
    "transaction_states",
    _may_describe,
    lambda transactional_id, refusal: TransactionState(refusal.code, transactional_id),
)


async def describe(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Answer:
    """Describe the ids that the client may DESCRIBE; topics that it may not are left out."""
    answer: Any = _DESCRIBE(request, api, broker, client, access)
    if not hasattr(answer, "transaction_states"):
        answer = await answer
    async for some in broker.slices.in_turns(answer.transaction_states, ITEMS_PER_TURN):
        for described in some:
            described.topics = [
                topic for topic in described.topics if access.may(Operation.DESCRIBE, TOPIC, topic.topic)
            ]
    return answer  # type: ignore[no-any-return]


async def list_all(request: Any, api: Api, broker: Broker, client: Client, access: Access) -> Answer:
    """List the ids that the client may DESCRIBE."""
    outcome = api.handle(request, broker, client)
    answer: Any = outcome if isinstance(outcome, api.response) else await outcome  # type: ignore[misc]
    shown = []
    async for some in broker.slices.in_turns(answer.transaction_states, ITEMS_PER_TURN):
        shown += [state for state in some if access.may(Operation.DESCRIBE, TRANSACTIONAL_ID, state.transactional_id)]
    answer.transaction_states = shown
    return answer  # type: ignore[no-any-return]
