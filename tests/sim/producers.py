"""Idempotent producers of the simulated cluster: several batches ahead, and after a failure all that is not
acknowledged again, in the same order.

Each batch is compressed by a codec that is drawn, or by none. Behind a batch that an answer has refused, Java's
producer sends one that is out of order again; librdkafka raises its epoch, and sends all that it has no answer for from
sequence 0 on. Which of the two a producer is like is drawn too.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from kavka_broker.peers import Peer, Unreachable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.record import Source, build_batch
from tests.sim.clients import ANSWER_MS, Client
from tests.sim.history import History, Place, place_text
from tests.sim.loop import SimLoop

PRODUCE_MS = 2_000
IN_FLIGHT_MAX = 4
EPOCH_MS = 1_800_000_000_000
ALL = -1
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
CODECS = (*[Compression.NONE] * 6, *Compression)

Identity = tuple[int, int]  # id and epoch

#: What the same request may be sent again for.
RETRIABLE = frozenset({
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_CONTROLLER, ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.NETWORK_EXCEPTION,
})  # fmt: skip


class Refused(Exception):
    """An answer that says no, for good."""


class OutOfOrder(Exception):
    """The broker does not remember the batches sent before."""


@dataclass(slots=True)
class Batch:
    """Values that were sent together, and the sequence of the first."""

    values: list[str]
    base_sequence: int
    codec: Compression


class Producer(Client):
    """Sends values to all partitions of a topic until told to stop, then waits for the batches under way."""

    def __init__(
        self, name: str, loop: SimLoop, addresses: Sequence[tuple[str, int]], history: History, places: Sequence[Place]
    ) -> None:
        super().__init__(name, loop, addresses, history)
        self._places = places
        self._numbers = 0
        self._codecs = self.stream("codecs")
        self._raises_epoch = self.stream("library").random() < 0.5
        self._mine: dict[tuple[int, int], None] = {}
        self.is_stopping = False

    @property
    def numbers(self) -> int:
        """How many values it has sent."""
        return self._numbers

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for place in self._places:
                group.create_task(self._produce(place))

    async def _produce(self, place: Place) -> None:
        while not self.is_stopping:
            identity = await self._identify()
            sequence = 0
            while not self.is_stopping:
                batches: deque[Batch] = deque()
                for _ in range(self.random.randint(1, IN_FLIGHT_MAX)):
                    batches.append(Batch(self._new_values(place), sequence, self._codecs.choice(CODECS)))
                    sequence += len(batches[-1].values)
                try:
                    identity, sequence = await self._deliver(place, identity, batches, sequence)
                except OutOfOrder:
                    # After a clean start a broker remembers the last batch of a producer only, as Apache Kafka does.
                    self.history.given_up += 1
                    break
                except Refused as refused:
                    self.history.note(f"refused: {self.name} {place_text(place)}: {refused}")
                    break
                await self.rest(0.005, 0.15)

    def _new_values(self, place: Place) -> list[str]:
        values = []
        for _ in range(self.random.randint(1, 5)):
            self._numbers += 1
            values.append(f"{self.name}.{self._numbers}")
        self.history.sent(self.name, place, values)
        return values

    async def _identify(self) -> Identity:
        while True:
            answer = await self.ask_any(InitProducerIdRequest(None), InitProducerIdResponse)
            if isinstance(answer, InitProducerIdResponse) and not answer.error_code:
                identity = answer.producer_id, answer.producer_epoch
                if self.given.setdefault(identity, self.name) != self.name or identity in self._mine:
                    self.history.note(f"given-twice: {self.name} has got {identity}, as {self.given[identity]} had")
                self._mine[identity] = None
                return identity
            await self.pause()

    async def _deliver(
        self, place: Place, identity: Identity, batches: deque[Batch], sequence: int
    ) -> tuple[Identity, int]:
        """Send until every batch is acknowledged; the identity and sequence to go on with. Raises Refused."""
        is_lost = False
        while batches:
            peer = await self.leader(place)
            answers = await asyncio.gather(*[self._ask(peer, place, identity, batch) for batch in batches])
            asked, batches, is_skipped = batches, deque(), False
            for batch, answer in zip(asked, answers, strict=True):
                # Behind a batch that failed the next ones are out of order.
                is_behind = bool(batches) and answer is not None and answer.error_code == OUT_OF_ORDER
                if answer is None or answer.error_code in RETRIABLE or is_behind:
                    batches.append(batch)
                    is_skipped |= is_behind
                else:
                    self._acknowledge(batch, answer)
            is_lost |= None in answers
            # Of what was lost on its way, and may still come, no broker can know.
            if is_skipped and self._raises_epoch and not is_lost:
                identity, sequence = (identity[0], identity[1] + 1), 0
                for batch in batches:
                    batch.base_sequence, sequence = sequence, sequence + len(batch.values)
            if batches:
                self.forget_leader(place)
                await self.pause()
        return identity, sequence

    async def _ask(self, peer: Peer, place: Place, identity: Identity, batch: Batch) -> PartitionProduceResponse | None:
        records = build_batch(
            [self.source(value) for value in batch.values],
            timestamp_ms=EPOCH_MS + self.loop.milliseconds(),
            producer_id=identity[0],
            producer_epoch=identity[1],
            base_sequence=batch.base_sequence,
            compression=batch.codec,
        )
        data = TopicProduceData(place[0], self.topic_ids[place[0]], [PartitionProduceData(place[1], records)])
        try:
            answer = await peer.ask(
                ProduceRequest(None, ALL, PRODUCE_MS, [data]), ProduceResponse, timeout_ms=ANSWER_MS
            )
        except Unreachable:
            return None
        return answer.responses[0].partition_responses[0]

    def source(self, value: str) -> Source:
        """The record that is sent for a value."""
        return None, value.encode()

    def _acknowledge(self, batch: Batch, answer: PartitionProduceResponse) -> None:
        match answer.error_code:
            case ErrorCode.NONE:
                self.history.acknowledged(batch.values, answer.base_offset)
            case ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                self.history.acknowledged(batch.values, None)
            case ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                raise OutOfOrder
            case code:
                raise Refused(f"{batch.values}: {ErrorCode(code).name} {answer.error_message}")
