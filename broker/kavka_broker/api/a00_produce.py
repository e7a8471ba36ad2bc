"""Produce (0): append record batches to the partitions that this broker leads.

- Each partition succeeds or fails by itself; a failed one never holds up another.
- acks=1 is answered when the leader's log has the records, acks=all when every in-sync replica has them or after
  `timeout_ms` with REQUEST_TIMED_OUT, acks=0 not at all; an acks=0 request that fails closes the connection, the only
  way left to tell.
- Where `flush.messages` wants a sync, a replica has what it has synced. acks=0 waits for that too: else nothing would
  hold its sender back.
- Internal topics take records from nodes only: a stray batch in `__consumer_offsets` would cost groups their offsets,
  one in `__audit_events` would tell what nobody did. The client id `__admin_client` is asked for, as in Apache Kafka,
  and is no right by itself: with an authorizer the cluster's CLUSTER_ACTION is needed beside WRITE of the topic
  (`access/records`), without one the listener between the brokers.
- A transaction's first batch in a partition waits for its coordinator's word that the partition is part of it
  (`admission`); requests of one transactional id are written in the order in which they came.
- Of a partition that is named more than once the last batch counts, as in Apache Kafka.
- A batch that takes long to make ready (another codec, keys of a compacted topic) is made so by a thread, and what
  comes behind it on its connection waits (`preparation`).
- A retried batch of an idempotent producer is answered with the offsets it got the first time.
- While the audit trail has no room, and its policy is to reject, each partition is NOT_ENOUGH_REPLICAS
  (`audit_backpressure`).
- The answer names `throttle_time_ms`; a client over its quota, or a topic's, is muted from the charge on. Topics are
  charged in slices where the batches are many.
Versions: flexible from 9; topic ids from 13. Versions 0-2 are advertised but not served (KAFKA-18659).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

from kavka_broker.core.metadata.image.topic_names import AUDIT_TOPIC, INTERNAL
from kavka_broker.loop.slices import UNITS_PER_SLICE, Pace, Work, at_once
from kavka_broker.loop.steps import paid
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kavka_broker.protocol.records.batch import CODEC_MASK, TRANSACTIONAL_BIT
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.quotas.client_quotas import PRODUCE
from kavka_broker.replica.leading.partition import ACKS_ALL, Partition
from kavka_broker.request.acknowledgement import Acknowledgement, Share, answer_if_due
from kavka_broker.request.admission import UNITS_PER_BATCH, Admission
from kavka_broker.request.audit_backpressure import is_mender
from kavka_broker.request.audit_backpressure import refusal as trail_is_full
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.leader_hint import endpoint_of, leader_of
from kavka_broker.request.preparation import NoRoom, check_room
from kavka_broker.request.registry import api
from kavka_broker.request.throttling import throttle
from kavka_broker.request.topic_charges import charge_produced
from kavka_broker.storage.batch_check import NotOnLoop, Prepared
from kavka_broker.storage.record_check import RecordsRefused

ZSTD_VERSION = 7  # KIP-110
TOPIC_ID_VERSION = 13
NAMES_LEADER_FROM = 10  # KIP-951
ACKS = (-1, 0, 1)
ADMIN_CLIENT_ID = "__admin_client"
LATER_AT_ONCE_MAX = 50
MANY_BYTES_MIN = 2 * 1024
BYTES_PER_UNIT = 1_000  # of a slice
ATTRIBUTES_POSITION = 22  # the position of the lower attributes byte in a batch of magic 2

Parts = list[list[PartitionProduceResponse]]  # the answers of each batch, in the order of the request
Produced = ProduceResponse | Awaitable[ProduceResponse | None] | None
Admit = Callable[[Partition, PartitionProduceData], None]


class Pending:
    """The batches that a request waits for: those not committed or synced, and those not prepared yet. With `is_kept`,
    all of them were copied out of the receive buffer.
    """

    __slots__ = ("endpoints", "is_kept", "later", "waiting")

    def __init__(self, *, is_kept: bool) -> None:
        self.is_kept = is_kept
        self.waiting: list[Share] = []
        self.later: list[Later] = []
        self.endpoints: list[NodeEndpoint] = []  # addresses of the brokers that lead instead, for the answer


class Later(NamedTuple):
    """A batch that is yet to be prepared, or waits for room alone, and the place of its answer."""

    answers: list[PartitionProduceResponse]
    place: int
    topic: str
    data: PartitionProduceData
    is_for_room: bool


@api(ProduceRequest, ProduceResponse, versions=(3, 13), advertised=(0, 13), pipelined=True)
def produce(request: ProduceRequest, broker: Broker, client: Client) -> Produced:
    client.is_exempt = request.acks == 0  # its client would not hear of a delay
    if has_many(request, client):
        client.has_long_answer = True
        return produce_now(request, broker, client)
    if has_repeats(request.topic_data):
        at_once(without_repeats(request))
    if broker.replicas.openings.is_securing and request.transactional_id is None and is_first(request, broker, client):
        keep(request, client)
        client.is_holding = True
        return produce_when_secured(request, broker, client)
    return produce_now(request, broker, client)


def has_repeats(topics: list[TopicProduceData]) -> bool:
    """Whether a topic or a partition is named more than once."""
    if len(topics) > 1 and len({(topic.name, topic.topic_id) for topic in topics}) < len(topics):
        return True
    for topic in topics:
        partitions = topic.partition_data
        if len(partitions) > 1 and len({data.index for data in partitions}) < len(partitions):
            return True
    return False


def without_repeats(request: ProduceRequest) -> Work[None]:
    """Keep each topic and partition once, in the order of their first naming, with the batch named last."""
    wanted: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    pace = Pace()
    for topic in request.topic_data:
        partitions = wanted.setdefault((topic.name, topic.topic_id), {})
        for data in topic.partition_data:
            partitions[data.index] = data
            if pace.spent(1):
                yield
    topics = []
    for named, partitions in wanted.items():
        topics.append(TopicProduceData(*named, list(partitions.values())))
        if pace.spent(1):
            yield
    request.topic_data = topics


def produce_now(request: ProduceRequest, broker: Broker, client: Client) -> Produced:
    """Append at once, unless the transaction's coordinator has to be asked, or the batches are many or slow."""
    admission = None
    is_long = client.has_long_answer
    if request.transactional_id is not None:
        admission = Admission(request.transactional_id, broker, client)
        if (
            is_long
            or admission.must_ask(named(request, broker, client))
            or broker.coordinators.has_turn(request.transactional_id)
        ):
            charge(broker, client)
            keep(request, client)
            turn = broker.coordinators.turn(request.transactional_id)
            return produce_in_turn(request, turn, admission, broker, client)
    if is_long:
        charge(broker, client)
        keep(request, client)
        client.is_holding = True
        return produce_in_slices(request, broker, client)
    answer, pending = append_now(request, broker, client, admission)
    if pending.later:
        client.is_holding = True
        return produce_held(request, answer, pending, admission, broker, client)
    if pending.waiting:
        return Acknowledgement(request, answer, pending.waiting, broker.timers).future
    return answer_if_due(request, answer)


def has_many(request: ProduceRequest, client: Client) -> bool:
    """Whether appending all batches takes more than a slice."""
    if client.is_holding:
        return True  # the request is so large that a thread has read it
    if client.size_bytes < MANY_BYTES_MIN:
        return False
    count = sum([len(topic.partition_data) for topic in request.topic_data])
    return count > 1 and count * UNITS_PER_BATCH + client.size_bytes // BYTES_PER_UNIT > UNITS_PER_SLICE


def append_now(
    request: ProduceRequest, broker: Broker, client: Client, admission: Admission | None
) -> tuple[ProduceResponse, Pending]:
    pending = Pending(is_kept=client.is_holding)
    responses = append_request(request, broker, client, pending, admission)
    charge(broker, client)
    if broker.quotas.produced.limited:
        at_once(charge_produced(request.topic_data, broker, client))
    return ProduceResponse(responses, client.throttle_time_ms, pending.endpoints), pending


async def produce_held(
    request: ProduceRequest,
    answer: ProduceResponse,
    pending: Pending,
    admission: Admission | None,
    broker: Broker,
    client: Client,
) -> ProduceResponse | None:
    """Append batches that threads prepare; then later requests of the connection may begin."""
    try:
        await append_later(request, pending, admission, broker, client)
    finally:
        client.let_go()
    return await Acknowledgement(request, answer, pending.waiting, broker.timers).future


async def append_later(
    request: ProduceRequest, pending: Pending, admission: Admission | None, broker: Broker, client: Client
) -> None:
    """Have threads prepare the slow batches, and append them."""
    admit = None if admission is None else admission.check
    for start in range(0, len(pending.later), LATER_AT_ONCE_MAX):
        some = pending.later[start : start + LATER_AT_ONCE_MAX]
        time = broker.slices.time
        await asyncio.gather(
            *(paid(append_one_later(later, request, broker, client, pending, admit), time) for later in some)
        )


async def append_one_later(
    later: Later, request: ProduceRequest, broker: Broker, client: Client, pending: Pending, admit: Admit | None
) -> None:
    answers, place, topic, data, is_for_room = later
    answer = prepared = None
    while answer is None:
        try:
            log = broker.replicas.leader(topic, data.index).log
            if is_for_room:
                await broker.preparation.make_room(log, len(data.records))
            else:
                prepared = await broker.preparation.prepare(data.records, log, broker.clock.now_ms())
            answer = append(topic, data, request, broker, client, pending, admit, prepared)
        except NotOnLoop:
            is_for_room = False  # it is slow, or the configuration has changed meanwhile: prepare it, or again
        except BrokerError as error:
            answer = refusal(topic, data.index, error, broker, client, pending)
    answers[place] = answer


def charge(broker: Broker, client: Client) -> None:
    """Charge the request's bytes to the client's quota; throttle a client over it."""
    now_ms = int(broker.clock.monotonic_ms())
    delay_ms = broker.quotas.produce(client.user, client.client_id, client.size_bytes, now_ms)
    if delay_ms:
        throttle(client, broker, PRODUCE, delay_ms, now_ms)


def keep(request: ProduceRequest, client: Client) -> None:
    """Copy the batches: the receive buffer is overwritten once the handler has returned."""
    if client.is_holding:
        return  # the whole frame has been copied
    client.copied_bytes = client.size_bytes
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None:
                data.records = memoryview(bytearray(data.records))


def is_first(request: ProduceRequest, broker: Broker, client: Client) -> bool:
    """Whether a batch would be the first of a log whose topic's id is not synced yet."""
    for name, topic in named(request, broker, client):
        if name is None:
            continue
        for data in topic.partition_data:
            partition = broker.replicas.get(name, data.index)
            if partition is not None and not partition.log.durability.is_secured and not partition.log.is_failed:
                return True
    return False


async def produce_when_secured(request: ProduceRequest, broker: Broker, client: Client) -> ProduceResponse | None:
    """As `produce_now`, once threads have synced the ids of new logs: an append would sync them on the loop."""
    while broker.replicas.openings.is_securing and is_first(request, broker, client):
        await broker.replicas.openings.secured()
    answer, pending = append_now(request, broker, client, None)
    return await produce_held(request, answer, pending, None, broker, client)


async def produce_in_slices(request: ProduceRequest, broker: Broker, client: Client) -> ProduceResponse | None:
    """As `produce_now`, for very many batches: other work has its turn between slices."""
    pending = Pending(is_kept=True)
    try:
        await broker.slices.whole(without_repeats(request))
        await broker.slices.whole(charge_produced(request.topic_data, broker, client))
        await broker.replicas.openings.secured()
        parts = await broker.slices.whole(append_in_slices(request, broker, client, pending, None))
        await append_later(request, pending, None, broker, client)
    finally:
        client.let_go()
    return await acknowledged(request, parts, pending, broker, client)


async def produce_in_turn(
    request: ProduceRequest,
    turn: AbstractAsyncContextManager[None],
    admission: Admission,
    broker: Broker,
    client: Client,
) -> ProduceResponse | None:
    """As `produce`, for batches that the transaction's coordinator admits, in the order of the requests."""
    pending = Pending(is_kept=True)
    async with turn:
        try:
            await broker.slices.whole(without_repeats(request))
            await broker.slices.whole(charge_produced(request.topic_data, broker, client))
            if await broker.slices.whole(admission.look(named(request, broker, client))):
                await admission.ask()
            await broker.replicas.openings.secured()
            parts = await broker.slices.whole(append_in_slices(request, broker, client, pending, admission))
            await append_later(request, pending, admission, broker, client)
        finally:
            admission.end()
    return await acknowledged(request, parts, pending, broker, client)


async def acknowledged(
    request: ProduceRequest, parts: Parts, pending: Pending, broker: Broker, client: Client
) -> ProduceResponse | None:
    """The answer for batches appended in slices, once they are acknowledged as `acks` asks."""
    responses = await broker.slices.whole(joined(request, parts))
    answer = ProduceResponse(responses, client.throttle_time_ms, pending.endpoints)
    return await Acknowledgement(request, answer, pending.waiting, broker.timers).future


def append_request(
    request: ProduceRequest, broker: Broker, client: Client, pending: Pending, admission: Admission | None
) -> list[TopicProduceResponse]:
    """Append all batches of the request."""
    admit = None if admission is None else admission.check
    return [
        TopicProduceResponse(topic.name, topic.topic_id, append_all(topic, request, broker, client, pending, admit))
        for topic in request.topic_data
    ]


def append_in_slices(
    request: ProduceRequest, broker: Broker, client: Client, pending: Pending, admission: Admission | None
) -> Work[Parts]:
    """As `append_request`, batch by batch, with an answer for each batch."""
    admit = None if admission is None else admission.check
    pace = Pace()
    parts = []
    for topic in request.topic_data:
        for data in topic.partition_data:
            single = TopicProduceData(topic.name, topic.topic_id, [data])
            parts.append(append_all(single, request, broker, client, pending, admit))
            if pace.spent(UNITS_PER_BATCH + len(data.records or b"") // BYTES_PER_UNIT):
                yield
    return parts


def joined(request: ProduceRequest, parts: Parts) -> Work[list[TopicProduceResponse]]:
    """The answers grouped by topic, in the order of the request."""
    answers, pace = chain.from_iterable(parts), Pace()
    topics = []
    for topic in request.topic_data:
        topics.append(
            TopicProduceResponse(topic.name, topic.topic_id, list(islice(answers, len(topic.partition_data))))
        )
        if pace.spent(1):
            yield
    return topics


def named(request: ProduceRequest, broker: Broker, client: Client) -> Iterator[tuple[str | None, TopicProduceData]]:
    """Each topic with its name, None for an unknown id. An iterator, as there may be very many."""
    return ((name_of(topic, broker, client), topic) for topic in request.topic_data)


def name_of(topic: TopicProduceData, broker: Broker, client: Client) -> str | None:
    """The topic's name; None for an unknown id."""
    if client.version < TOPIC_ID_VERSION:
        return topic.name
    known = broker.metadata.topics.by_id(topic.topic_id)
    return None if known is None else known.name


def may_be_node(broker: Broker, client: Client) -> bool:
    """Whether a client says that it is a node, on a listener where a node may be heard. Its rights are the gate's."""
    if client.client_id != ADMIN_CLIENT_ID:
        return False
    is_guarded = broker.authorizer is not None or client.peer is None
    return is_guarded or client.listener == broker.config.inter_broker_listener_name


def append_all(
    topic: TopicProduceData,
    request: ProduceRequest,
    broker: Broker,
    client: Client,
    pending: Pending,
    admit: Admit | None,
) -> list[PartitionProduceResponse]:
    """Append each partition's batch; those to be waited for are added to `pending`."""
    name = name_of(topic, broker, client)
    if name is None:
        return [PartitionProduceResponse(data.index, ErrorCode.UNKNOWN_TOPIC_ID, -1) for data in topic.partition_data]
    if name in INTERNAL and not may_be_node(broker, client):
        error = BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"'{name}' is internal; clients may not write to it")
        return [refusal(name, data.index, error, broker, client, pending) for data in topic.partition_data]
    if broker.is_refusing and name != AUDIT_TOPIC and not is_mender(broker, client):
        broker.refused["produce"] += 1
        error = trail_is_full(ErrorCode.NOT_ENOUGH_REPLICAS)
        return [refusal(name, data.index, error, broker, client, pending) for data in topic.partition_data]
    answers: list[PartitionProduceResponse] = []
    for data in topic.partition_data:
        try:
            check_room(broker.replicas, name, data)
            answers.append(append(name, data, request, broker, client, pending, admit))
        except NotOnLoop as reason:
            if not pending.is_kept:  # the receive buffer is overwritten
                data.records = memoryview(bytearray(data.records))
                client.copied_bytes += len(data.records)
            pending.later.append(Later(answers, len(answers), name, data, isinstance(reason, NoRoom)))
            answers.append(PartitionProduceResponse(data.index))
    return answers


def append(
    topic: str,
    data: PartitionProduceData,
    request: ProduceRequest,
    broker: Broker,
    client: Client,
    pending: Pending,
    admit: Admit | None,
    prepared: Prepared | None = None,
) -> PartitionProduceResponse:
    """Append a partition's batch. Raises NotOnLoop where a thread has to prepare it."""
    acks = request.acks
    try:
        check(request, data, client.version, is_transactional=admit is not None)
        partition = broker.replicas.leader(topic, data.index)
        if admit is not None:
            admit(partition, data)
        appended = partition.append(data.records, acks, prepared=prepared)
        broker.preparation.extend_room(partition.log, len(data.records))
    except BrokerError as error:
        return refusal(topic, data.index, error, broker, client, pending)
    if broker.use is not None and not appended.duplicate and topic != AUDIT_TOPIC:  # each event would bring the next
        records = appended.last_offset - appended.base_offset + 1
        broker.use.wrote(client.user, client.address, client.client_id, topic, len(data.records), records)
    response = PartitionProduceResponse(
        data.index, 0, appended.base_offset, appended.log_append_time_ms, partition.log.state.start_offset
    )
    for_others = acks == ACKS_ALL and partition.has_followers
    if appended.last_offset >= (partition.high_watermark if for_others else partition.log.durability.answerable_end):
        share = Share(response, partial(name_leader, topic, broker, client, pending), waits_for_others=for_others)
        (partition.committed if for_others else partition.unsynced).push(appended.last_offset + 1, share)
        pending.waiting.append(share)
    return response


def check(request: ProduceRequest, data: PartitionProduceData, version: int, *, is_transactional: bool) -> None:
    """Check a batch before the log looks at it. Raises BrokerError."""
    if request.acks not in ACKS:
        raise BrokerError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={request.acks}; use -1 (all), 0 or 1")
    if not data.records:
        raise BrokerError(ErrorCode.INVALID_RECORD, "a partition without a record batch")
    attributes = data.records[ATTRIBUTES_POSITION] if len(data.records) > ATTRIBUTES_POSITION else 0
    if version < ZSTD_VERSION and attributes & CODEC_MASK == Compression.ZSTD:
        raise BrokerError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce {ZSTD_VERSION} or later")
    if attributes & TRANSACTIONAL_BIT and not is_transactional:
        raise BrokerError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transactional batch without an id")


def refusal(
    topic: str, index: int, error: BrokerError, broker: Broker, client: Client, pending: Pending
) -> PartitionProduceResponse:
    response = PartitionProduceResponse(index, error.code, -1, error_message=error.message)
    if isinstance(error, RecordsRefused):
        response.record_errors = [BatchIndexAndErrorMessage(*record) for record in error.records]
    name_leader(topic, broker, client, pending, response)
    return response


def name_leader(
    topic: str, broker: Broker, client: Client, pending: Pending, response: PartitionProduceResponse
) -> None:
    """Name the leader and its address in the answer, as far as this broker knows them (KIP-951)."""
    if response.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER or client.version < NAMES_LEADER_FROM:
        return
    leader, leader_epoch = leader_of(topic, response.index, broker)
    response.current_leader = LeaderIdAndEpoch(leader, leader_epoch)
    if all(endpoint.node_id != leader for endpoint in pending.endpoints):
        pending.endpoints += endpoint_of(leader, client.listener, broker, NodeEndpoint)
