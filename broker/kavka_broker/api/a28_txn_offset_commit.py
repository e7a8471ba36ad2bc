"""TxnOffsetCommit (28): remember how far a group has read, if the transaction is committed.

- The offsets are staged until the transaction's marker comes; who asks for stable offsets meanwhile is told to wait.
- A client that names a member must be one of the running generation (KIP-447). One that names none may always commit.
- A member of a consumer group (KIP-848) may be in a later epoch, if it has had all of the partitions since the one that
  it names (KIP-1251); otherwise STALE_MEMBER_EPOCH, which is ILLEGAL_GENERATION below version 6.
- The transaction must be known to write here: version 5 has the group's partition added (transaction version 2), for
  older ones the producer has done it by AddOffsetsToTxn.
- Answered when the offsets are committed in `__consumer_offsets`.
Versions: members from 3, flexible from 3, TRANSACTION_ABORTABLE from 4, the partition is added from 5; from 6 on
topic ids, STALE_MEMBER_EPOCH, and GROUP_ID_NOT_FOUND for a generation of a group that does not exist.
"""

from kavka_broker.coordinator.groups.group_shard import Shard
from kavka_broker.coordinator.groups.transactional_offsets import Waiting
from kavka_broker.core.group.offsets import Commit
from kavka_broker.core.metadata.image.topic_names import OFFSETS_TOPIC
from kavka_broker.core.partition.producer_state import ProducerStates
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic
from kavka_broker.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kavka_broker.replica.writing.transaction_verification import ask_for_verdicts
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import api
from kavka_broker.request.split_requests import Each

LOAD_IN_PROGRESS_FROM = 2
ABORTABLE_FROM = 4
ADDS_FROM = 5
TOPIC_ID_VERSION = 6

Outcome = tuple[Commit, TxnOffsetCommitResponsePartition]

TRY_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
)
"""What the transaction's coordinator may say for now. To the client it would mean that of the group."""


@api(
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    versions=(0, 6),
    each=(Each("topics.partitions", "topics.partitions", per_turn=100),),
)
async def txn_offset_commit(request: TxnOffsetCommitRequest, broker: Broker, client: Client) -> TxnOffsetCommitResponse:
    outcomes: list[Outcome] = []
    response = TxnOffsetCommitResponse(
        topics=[answer_topic(topic, broker, client.version, outcomes) for topic in request.topics]
    )
    if not outcomes:
        return response
    try:
        errors, waiting = await stage(request, [commit for commit, _ in outcomes], broker, client)
        committed = ErrorCode.NONE if waiting is None else await waiting
    except BrokerError as error:
        errors, committed = [ErrorCode.NONE] * len(outcomes), error.code
    if committed is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and client.version < LOAD_IN_PROGRESS_FROM:
        committed = ErrorCode.COORDINATOR_NOT_AVAILABLE
    for (_, slot), code in zip(outcomes, errors, strict=True):
        slot.error_code = code or committed
    return response


def answer_topic(
    topic: TxnOffsetCommitRequestTopic, broker: Broker, version: int, outcomes: list[Outcome]
) -> TxnOffsetCommitResponseTopic:
    """The answer for a topic; valid commits are added to `outcomes`, with the places of their errors."""
    topics = broker.metadata.topics
    known = topics.by_id(topic.topic_id) if version >= TOPIC_ID_VERSION else topics.get(topic.name)
    answer = TxnOffsetCommitResponseTopic(topic.name, topic.topic_id)
    for partition in topic.partitions:
        slot = TxnOffsetCommitResponsePartition(partition.partition_index)
        answer.partitions.append(slot)
        if known is None and version >= TOPIC_ID_VERSION:
            slot.error_code = ErrorCode.UNKNOWN_TOPIC_ID
            continue
        if known is None or partition.partition_index not in known.partitions:
            slot.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        commit = Commit(
            known.name,
            partition.partition_index,
            partition.committed_offset,
            partition.committed_leader_epoch,
            partition.committed_metadata,
            known.topic_id,
        )
        outcomes.append((commit, slot))
    return answer


async def stage(
    request: TxnOffsetCommitRequest, commits: list[Commit], broker: Broker, client: Client
) -> tuple[list[ErrorCode], Waiting | None]:
    """Append the offsets, an error for each; a future of the commit. Raises BrokerError."""
    if not request.group_id:
        raise BrokerError(ErrorCode.INVALID_GROUP_ID)
    if not request.transactional_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST)
    checked_shard(request, commits, broker, client)
    index = broker.groups.partition_of(request.group_id)
    assert index is not None, "a shard without a topic"
    producers = broker.partitions.leader(OFFSETS_TOPIC, index).log.producers
    producer = request.producer_id, request.producer_epoch
    coordinators = broker.writes.coordinators
    async with coordinators.turns.of(request.transactional_id):
        if producers.is_in_transaction(*producer):
            return checked_shard(request, commits, broker, client).staging.stage(request.group_id, producer, commits)
        adds = client.version >= ADDS_FROM
        try:
            codes = await ask_for_verdicts(
                coordinators, request.transactional_id, producer, {(OFFSETS_TOPIC, index): producers}, adds=adds
            )
            # Everything may have changed meanwhile.
            shard = checked_shard(request, commits, broker, client)
            check_verdict(producers, producer, codes.get((OFFSETS_TOPIC, index), ErrorCode.INVALID_TXN_STATE), client)
            return shard.staging.stage(request.group_id, producer, commits)
        finally:
            producers.forget_verdict(request.producer_id)


def checked_shard(request: TxnOffsetCommitRequest, commits: list[Commit], broker: Broker, client: Client) -> Shard:
    """The group's shard, once it is certain that this client may commit. Raises BrokerError."""
    shard = broker.groups.shard(request.group_id)
    committer = request.generation_id_or_member_epoch, request.member_id, request.group_instance_id
    shard.staging.check(request.group_id, *committer, commits, knows_epochs=client.version >= TOPIC_ID_VERSION)
    return shard


def check_verdict(producers: ProducerStates, producer: tuple[int, int], code: int, client: Client) -> None:
    """Check that the transaction may begin in the group's partition. Raises BrokerError."""
    producer_id, epoch = producer
    known = producers.get(producer_id)
    if known is not None and epoch < known.epoch:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_EPOCH, f"the producer has epoch {known.epoch} here")
    if code:
        raise BrokerError(refusal(ErrorCode(code), client.version))
    if not producers.awaits_verdict(producer_id):
        raise BrokerError(ErrorCode.INVALID_TXN_STATE, "the transaction has ended meanwhile")
    if not producers.may_begin:
        raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{len(producers.transactions)} are open")


def refusal(code: ErrorCode, version: int) -> ErrorCode:
    if code is ErrorCode.CONCURRENT_TRANSACTIONS and version >= ADDS_FROM:
        return code
    if code in TRY_AGAIN:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_FROM:
        return ErrorCode.INVALID_TXN_STATE
    return code
