"""One Produce, from its batches to its answer.

    run ──> few, quick batches: appended ──> ProduceResponse, or a future until they are acknowledged
      └───> copied out of the receive buffer, and a task: appended in slices, once they are admitted, durable, prepared

`run` says what has to come before the batches are appended; `_append_gradually` has all of it, in its order.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from itertools import chain, islice
from typing import Final, NamedTuple, Protocol

from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.loop.coroutine_time import paid
from kavka_broker.loop.slices import COST_PER_SLICE, Cost, Work, at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import (
    BatchIndexAndErrorMessage,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kavka_broker.replica.leading.partition import ACKS_ALL, Partition
from kavka_broker.replica.writing.acknowledgement import Acknowledgement, Share, answer_if_due
from kavka_broker.replica.writing.batch_preparation import NoRoom, check_room
from kavka_broker.replica.writing.batches import check, has_repeats, without_repeats
from kavka_broker.replica.writing.produce_context import Writes
from kavka_broker.replica.writing.transaction_admission import BATCH_COST, Admission
from kavka_broker.storage import preallocation
from kavka_broker.storage.batch_check import NotOnLoop, Prepared
from kavka_broker.storage.record_check import RecordsRefused

TOPIC_ID_VERSION: Final = 13
LATER_AT_ONCE_MAX: Final = 50
MANY_BYTES_MIN: Final = 2 * 1024
BYTES_PER_COST: Final = 1_000  # of a slice

Parts = list[list[PartitionProduceResponse]]  # the answers of each batch, in the order of the request
Answer = ProduceResponse | None
Produced = Answer | Awaitable[Answer]


class Sender(Protocol):
    """The client of the request, `request.broker.Client`."""

    version: int
    size_bytes: int
    throttle_time_ms: int
    copied_bytes: int
    is_holding: bool
    has_long_answer: bool

    def let_go(self) -> None:
        """Let the next requests of the connection begin."""


class Policy(Protocol):
    """The quotas of the client, its rights, and the audit trail."""

    def charge(self) -> None:
        """Charge the request's bytes to the client's quota."""

    def charge_topics(self, topics: list[TopicProduceData]) -> Work[None]:
        """Charge the bytes to the topics' quotas, after that of the client."""

    def charge_all(self, topics: list[TopicProduceData]) -> None:
        """Charge both at once."""

    def refusal(self, topic: str) -> BrokerError | None:
        """Return why nothing of this client is written to the topic; None where it may be."""

    def count(self, topic: str, size_bytes: int, records: int) -> None:
        """Count what was written."""

    def name_leader(
        self, topic: bytes | str, response: PartitionProduceResponse, endpoints: list[NodeEndpoint]
    ) -> None:
        """Name the leader in the response of another, and its address in `endpoints`."""


class Later(NamedTuple):
    """A batch that is yet to be prepared, or waits for room alone, and the place of its answer."""

    answers: list[PartitionProduceResponse]
    place: int
    topic: "Named"
    data: PartitionProduceData
    is_for_room: bool


class Named(NamedTuple):
    """A topic that batches are written to. Its name may be another topic's once anything has been waited for."""

    name: str
    topic_id: bytes | None  # None in a request of a version without ids

    @property
    def asked(self) -> bytes | str:
        """Return the name or the id that the request has."""
        return self.name if self.topic_id is None else self.topic_id


class Produce:
    """A request, and what it still waits for."""

    __slots__ = (
        "_admission",
        "_endpoints",
        "_is_kept",
        "_later",
        "_policy",
        "_request",
        "_sender",
        "_shares",
        "_writes",
    )

    def __init__(self, request: ProduceRequest, writes: Writes, sender: Sender, policy: Policy) -> None:
        self._request = request
        self._writes = writes
        self._sender = sender
        self._policy = policy
        self._admission: Admission | None = None  # of a request with a transactional id
        self._is_kept = sender.is_holding  # all batches were copied out of the receive buffer, or the frame was
        self._shares: list[Share] = []  # of batches that are not committed or synced yet
        self._later: list[Later] = []  # batches that are not prepared yet
        self._endpoints: list[NodeEndpoint] = []  # addresses of the brokers that lead instead, for the answer

    def run(self) -> Produced:
        """Append all batches, at once unless they are many, slow, or have to wait before; return the answer."""
        request, writes, sender = self._request, self._writes, self._sender
        is_single = len(request.topic_data) == 1 == len(request.topic_data[0].partition_data)
        # One that has been kept is so large that a thread has read it.
        is_long = self._is_kept or (not is_single and self._has_many())
        if not (is_single or is_long) and has_repeats(request.topic_data):
            at_once(without_repeats(request))
        sender.has_long_answer = is_long
        if request.transactional_id is not None:
            self._admission = admission = Admission(request.transactional_id, writes, sender.version)
            turns = writes.coordinators.turns
            is_after_others = turns.is_taken(request.transactional_id) or (
                writes.openings.is_securing and self._is_first()
            )
            if is_long or is_after_others or not admission.is_at_hand(self._named()):
                self._policy.charge()
                self._keep()
                return self._append_in_turn(turns.of(request.transactional_id))
        elif is_long:
            self._policy.charge()
            self._hold()
            return self._append_in_turn(nullcontext())
        elif writes.openings.is_securing and self._is_first():
            self._hold()
            return self._append_when_secured()
        answer = self._append_now()
        if self._later:
            sender.is_holding = True
            return self._append_the_rest(answer, self._turn_of_verdicts())
        if self._admission is not None:
            self._admission.end()
        if self._shares:
            return Acknowledgement(request, answer, self._shares, writes.timers).future
        return answer if request.acks else answer_if_due(request, answer)

    async def _append_in_turn(self, turn: AbstractAsyncContextManager[None]) -> Answer:
        """Append the batches gradually, those of a transactional id in the order of its requests."""
        async with turn:
            parts = await self._append_gradually()
        responses = await self._writes.slices.whole(joined(self._request, parts))
        answer = ProduceResponse(responses, self._sender.throttle_time_ms, self._endpoints)
        return await Acknowledgement(self._request, answer, self._shares, self._writes.timers).future

    async def _append_gradually(self) -> Parts:
        """Append the batches in slices, behind everything that has to come before; other work has its turn."""
        request, admission, whole = self._request, self._admission, self._writes.slices.whole
        try:
            await whole(without_repeats(request))
            await whole(self._policy.charge_topics(request.topic_data))
            if admission is not None and await whole(admission.look(self._named())):
                await admission.ask()
            await self._writes.openings.secured()
            parts = await whole(self._append_in_slices())
            await self._append_later()
        finally:
            if admission is None:
                self._sender.let_go()
            else:
                admission.end()
        return parts

    async def _append_when_secured(self) -> Answer:
        """Append once threads have synced the ids of new logs: an append would sync them on the loop."""
        while self._writes.openings.is_securing and self._is_first():
            await self._writes.openings.secured()
        return await self._append_the_rest(self._append_now(), nullcontext())

    def _turn_of_verdicts(self) -> AbstractAsyncContextManager[None]:
        """The turn of the transactional id where verdicts have been asked for, as long as they may be used: the next
        question would be taken for this one, whose verdict a marker has made void.
        """
        admission, transactional_id = self._admission, self._request.transactional_id
        if admission is None or not admission.has_asked or transactional_id is None:
            return nullcontext()
        return self._writes.coordinators.turns.of(transactional_id)

    async def _append_the_rest(self, answer: ProduceResponse, turn: AbstractAsyncContextManager[None]) -> Answer:
        """Append batches that threads prepare; then later requests of the connection may begin."""
        async with turn:
            try:
                await self._append_later()
            finally:
                if self._admission is not None:
                    self._admission.end()
                self._sender.let_go()
        return await Acknowledgement(self._request, answer, self._shares, self._writes.timers).future

    # --- before the batches are appended ------------------------------------------------------------------------

    def _has_many(self) -> bool:
        """Whether appending all batches takes more than a slice."""
        size_bytes = self._sender.size_bytes
        if size_bytes < MANY_BYTES_MIN:
            return False
        count = sum([len(topic.partition_data) for topic in self._request.topic_data])
        return count > 1 and count * BATCH_COST + size_bytes // BYTES_PER_COST > COST_PER_SLICE

    def _is_first(self) -> bool:
        """Whether a batch would be the first of a log whose topic's id is not synced yet."""
        for name, topic in self._named():
            if name is None:
                continue
            for data in topic.partition_data:
                partition = self._writes.partitions.get(name, data.index)
                if partition is not None and not partition.log.durability.is_secured and not partition.log.is_failed:
                    return True
        return False

    def _named(self) -> Iterator[tuple[str | None, TopicProduceData]]:
        """Each topic with its name, None for an unknown id. An iterator, as there may be very many."""
        metadata, version = self._writes.metadata, self._sender.version
        return ((name_of(topic, metadata, version), topic) for topic in self._request.topic_data)

    def _hold(self) -> None:
        """Have later requests of the connection wait until this one's batches are appended."""
        self._keep()
        self._sender.is_holding = True

    def _keep(self) -> None:
        """Copy the batches: the receive buffer is overwritten once the handler has returned."""
        if self._is_kept:
            return  # the whole frame has been copied
        self._is_kept = True
        self._sender.copied_bytes = self._sender.size_bytes
        for topic in self._request.topic_data:
            for data in topic.partition_data:
                if data.records is not None:
                    data.records = memoryview(bytearray(data.records))

    # --- appending ----------------------------------------------------------------------------------------------

    def _append_now(self) -> ProduceResponse:
        responses = [
            TopicProduceResponse(topic.name, topic.topic_id, self._append_all(topic))
            for topic in self._request.topic_data
        ]
        self._policy.charge_all(self._request.topic_data)
        return ProduceResponse(responses, self._sender.throttle_time_ms, self._endpoints)

    def _append_in_slices(self) -> Work[Parts]:
        """Append batch by batch, with an answer for each."""
        cost, parts = Cost(), []
        for topic in self._request.topic_data:
            for data in topic.partition_data:
                parts.append(self._append_all(TopicProduceData(topic.name, topic.topic_id, [data])))
                if cost.add(BATCH_COST + len(data.records or b"") // BYTES_PER_COST):
                    yield
        return parts

    async def _append_later(self) -> None:
        """Have threads prepare the slow batches, and append them."""
        for start in range(0, len(self._later), LATER_AT_ONCE_MAX):
            some, time = self._later[start : start + LATER_AT_ONCE_MAX], self._writes.slices.time
            await asyncio.gather(*(paid(self._append_one_later(later), time) for later in some))

    async def _append_one_later(self, later: Later) -> None:
        answers, place, topic, data, is_for_room = later
        preparation, clock = self._writes.preparation, self._writes.clock
        answer = prepared = None
        while answer is None:
            try:
                log = self._leader(topic, data.index).log
                if is_for_room:
                    await preparation.make_room(log, len(data.records))
                else:
                    prepared = await preparation.prepare(data.records, log, clock.now_ms())
                answer = self._append(topic, data, prepared)
            except NotOnLoop:
                is_for_room = False  # it is slow, or the configuration has changed meanwhile: prepare it, or again
            except BrokerError as error:
                answer = self._refusal(topic, data, error)
        answers[place] = answer

    def _append_all(self, topic: TopicProduceData) -> list[PartitionProduceResponse]:
        """Append each partition's batch; those that a thread has to prepare come later."""
        name = name_of(topic, self._writes.metadata, self._sender.version)
        if name is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID
            return [PartitionProduceResponse(data.index, code, -1) for data in topic.partition_data]
        named = Named(name, topic.topic_id if self._sender.version >= TOPIC_ID_VERSION else None)
        error = self._policy.refusal(name)
        if error is not None:
            return [self._refusal(named, data, error) for data in topic.partition_data]
        answers: list[PartitionProduceResponse] = []
        for data in topic.partition_data:
            try:
                if data.records is not None and len(data.records) >= preallocation.ROOM_BYTES_MIN:
                    check_room(self._writes.partitions, name, data.index, len(data.records))
                answers.append(self._append(named, data))
            except NotOnLoop as reason:
                if not self._is_kept:  # the receive buffer is overwritten
                    data.records = memoryview(bytearray(data.records))
                    self._sender.copied_bytes += len(data.records)
                self._later.append(Later(answers, len(answers), named, data, isinstance(reason, NoRoom)))
                answers.append(PartitionProduceResponse(data.index))
        return answers

    def _append(
        self, topic: Named, data: PartitionProduceData, prepared: Prepared | None = None
    ) -> PartitionProduceResponse:
        """Append a partition's batch. Raises NotOnLoop where a thread has to prepare it."""
        acks, writes = self._request.acks, self._writes
        try:
            check(data.records, acks, self._sender.version, is_transactional=self._admission is not None)
            partition = self._leader(topic, data.index)
            if self._admission is not None:
                self._admission.check(partition, data)
            appended = partition.append(data.records, acks, prepared=prepared)
            if len(data.records) >= preallocation.ROOM_BYTES_MIN:
                writes.preparation.extend_room(partition.log, len(data.records))
        except BrokerError as error:
            return self._refusal(topic, data, error)
        if not appended.duplicate:
            self._policy.count(topic.name, len(data.records), appended.last_offset - appended.base_offset + 1)
        response = PartitionProduceResponse(
            data.index, 0, appended.base_offset, appended.log_append_time_ms, partition.log.state.start_offset
        )
        for_others = acks == ACKS_ALL and partition.has_followers
        end = partition.high_watermark if for_others else partition.log.durability.answerable_end
        if appended.last_offset >= end:
            share = Share(response, partial(self._name_leader, topic.asked), waits_for_others=for_others)
            (partition.waiters.committed if for_others else partition.waiters.synced).push(
                appended.last_offset + 1, share
            )
            self._shares.append(share)
        return response

    def _leader(self, topic: Named, index: int) -> Partition:
        """Return the partition. Raises BrokerError, also where the name is another topic's by now."""
        if topic.topic_id is None:
            return self._writes.partitions.leader(topic.name, index)
        if self._writes.metadata.topics.by_id(topic.topic_id) is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
        partition = self._writes.partitions.leader(topic.name, index)
        if partition.topic_id != topic.topic_id:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
        return partition

    def _refusal(self, topic: Named, data: PartitionProduceData, error: BrokerError) -> PartitionProduceResponse:
        response = PartitionProduceResponse(data.index, error.code, -1, error_message=error.message)
        partition = self._writes.partitions.get(topic.name, data.index)
        if partition is not None and data.records is not None and topic.topic_id in (None, partition.topic_id):
            partition.note_refused(data.records, error.code)
        if isinstance(error, RecordsRefused):
            response.record_errors = [BatchIndexAndErrorMessage(*record) for record in error.records]
        self._name_leader(topic.asked, response)
        return response

    def _name_leader(self, topic: bytes | str, response: PartitionProduceResponse) -> None:
        """Name the leader in the answer where it is another broker (KIP-951)."""
        if response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._policy.name_leader(topic, response, self._endpoints)


def joined(request: ProduceRequest, parts: Parts) -> Work[list[TopicProduceResponse]]:
    """Return the answers grouped by topic, in the order of the request."""
    answers, cost = chain.from_iterable(parts), Cost()
    topics = []
    for topic in request.topic_data:
        topics.append(
            TopicProduceResponse(topic.name, topic.topic_id, list(islice(answers, len(topic.partition_data))))
        )
        if cost.add(1):
            yield
    return topics


def name_of(topic: TopicProduceData, metadata: Metadata, version: int) -> str | None:
    """Return the topic's name; None for an unknown id."""
    if version < TOPIC_ID_VERSION:
        return topic.name
    known = metadata.topics.by_id(topic.topic_id)
    return None if known is None else known.name
