"""Clients of the simulated cluster: an administrator, idempotent producers, readers of assigned partitions.

They speak through the broker's own codec and outgoing connections, from hosts of their own, and tell a `History`. Like
the common clients they ask any node who leads, keep to it until it disappoints them, and try again what may be tried
again; a producer sends several batches ahead and, after a failure, all that is not acknowledged in the same order.
"""

import asyncio
import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kavka_broker.net.outbound import Outbound
from kavka_broker.peers import Peer, Unreachable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.fetch_response import FetchResponse, PartitionData
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from kavka_broker.protocol.records.batch import crc_is_valid, split_batches
from kavka_broker.protocol.records.record import build_batch, read_records
from tests.sim.history import History, Place, place_text
from tests.sim.loop import Process, SimLoop

ANSWER_MS = 3_000
PRODUCE_MS = 2_000
IN_FLIGHT_MAX = 4
FETCH_WAIT_MS = 300
ALL = -1
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

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
    """The broker does not remember what was sent before."""


class Client:
    """What all have in common: a process of their own, connections, and an idea of who leads."""

    def __init__(self, name: str, loop: SimLoop, addresses: Sequence[tuple[str, int]], history: History) -> None:
        self.name = name
        self.loop = loop
        self.history = history
        self.process = Process(name, name)
        self.random = random.Random(f"{loop.random.random()} {name}")
        self._addresses = list(addresses)
        self._peers: dict[tuple[str, int], Peer] = {}
        self._outbound = Outbound()
        self._leaders: dict[Place, tuple[str, int]] = {}
        self._epochs: dict[Place, int] = {}
        self._nodes: dict[int, tuple[str, int]] = {}
        self.topic_ids: dict[str, bytes] = {}

    def peer(self, address: tuple[str, int]) -> Peer:
        if address not in self._peers:
            self._peers[address] = self._outbound.to(*address, client_id=self.name)
        return self._peers[address]

    async def ask_any(self, request: Message, response: type[Message]) -> Message | None:
        """The answer of a node that is drawn; None where it has none."""
        try:
            address = self.random.choice(self._addresses)
            return await self.peer(address).ask(request, response, timeout_ms=ANSWER_MS)
        except Unreachable:
            return None

    async def leader(self, place: Place) -> Peer:
        """The leader as it was last known; asks until there is one."""
        while place not in self._leaders:
            await self._learn(place[0])
            if place not in self._leaders:
                await self.pause()
        return self.peer(self._leaders[place])

    def forget_leader(self, place: Place) -> None:
        self._leaders.pop(place, None)

    async def _learn(self, topic: str) -> None:
        request = MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        answer = await self.ask_any(request, MetadataResponse)
        if not isinstance(answer, MetadataResponse):
            return
        self._nodes |= {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        for found in answer.topics:
            if found.error_code:
                continue
            self.topic_ids[topic] = found.topic_id
            for partition in found.partitions:
                place = topic, partition.partition_index
                # Nodes learn of elections one after the other: an older epoch is an older answer.
                if partition.leader_id in self._nodes and partition.leader_epoch >= self._epochs.get(place, -1):
                    self._epochs[place] = partition.leader_epoch
                    self._leaders[place] = self._nodes[partition.leader_id]

    async def pause(self) -> None:
        await asyncio.sleep(self.random.uniform(0.02, 0.2))


class Admin(Client):
    """Creates topics, and asks for changes."""

    async def create(self, topic: str, partitions: int, replication_factor: int, **configs: str) -> None:
        """A topic; returns when it is there. Configs with underscores for dots."""
        wanted = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
        request = CreateTopicsRequest([CreatableTopic(topic, partitions, replication_factor, [], wanted)], 2_000)
        done = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        while True:
            answer = await self.ask_any(request, CreateTopicsResponse)
            if isinstance(answer, CreateTopicsResponse) and answer.topics[0].error_code in done:
                return
            await self.pause()


@dataclass(slots=True)
class Batch:
    """Values that were sent together, and the sequence of the first."""

    values: list[str]
    base_sequence: int


class Producer(Client):
    """Sends values to all partitions of a topic until told to stop, then waits for what is under way."""

    def __init__(
        self, name: str, loop: SimLoop, addresses: Sequence[tuple[str, int]], history: History, places: Sequence[Place]
    ) -> None:
        super().__init__(name, loop, addresses, history)
        self._places = places
        self._numbers = 0
        self.is_stopping = False

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
                    batches.append(Batch(self._new_values(place), sequence))
                    sequence += len(batches[-1].values)
                try:
                    await self._deliver(place, identity, batches)
                except OutOfOrder:
                    # After a clean start a broker remembers the last batch of a producer only, as Apache Kafka does.
                    self.history.given_up += 1
                    break
                except Refused as refused:
                    self.history.note(f"refused: {self.name} {place_text(place)}: {refused}")
                    break
                await asyncio.sleep(self.random.uniform(0.005, 0.15))

    def _new_values(self, place: Place) -> list[str]:
        values = []
        for _ in range(self.random.randint(1, 5)):
            self._numbers += 1
            values.append(f"{self.name}.{self._numbers}")
        self.history.sent(self.name, place, values)
        return values

    async def _identify(self) -> tuple[int, int]:
        while True:
            answer = await self.ask_any(InitProducerIdRequest(None), InitProducerIdResponse)
            if isinstance(answer, InitProducerIdResponse) and not answer.error_code:
                return answer.producer_id, answer.producer_epoch
            await self.pause()

    async def _deliver(self, place: Place, identity: tuple[int, int], batches: deque[Batch]) -> None:
        """Send until every batch is acknowledged. Raises Refused."""
        while batches:
            peer = await self.leader(place)
            answers = await asyncio.gather(*[self._ask(peer, place, identity, batch) for batch in batches])
            asked, batches = batches, deque()
            for batch, answer in zip(asked, answers, strict=True):
                # Behind a batch that failed the next ones are out of order.
                is_behind = bool(batches) and answer is not None and answer.error_code == OUT_OF_ORDER
                if answer is None or answer.error_code in RETRIABLE or is_behind:
                    batches.append(batch)
                else:
                    self._acknowledge(batch, answer)
            if batches:
                self.forget_leader(place)
                await self.pause()

    async def _ask(
        self, peer: Peer, place: Place, identity: tuple[int, int], batch: Batch
    ) -> PartitionProduceResponse | None:
        records = build_batch(
            [(None, value.encode()) for value in batch.values],
            timestamp_ms=1_800_000_000_000 + int(self.loop.time() * 1000),
            producer_id=identity[0],
            producer_epoch=identity[1],
            base_sequence=batch.base_sequence,
        )
        data = TopicProduceData(place[0], self.topic_ids[place[0]], [PartitionProduceData(place[1], records)])
        try:
            answer = await peer.ask(
                ProduceRequest(None, ALL, PRODUCE_MS, [data]), ProduceResponse, timeout_ms=ANSWER_MS
            )
        except Unreachable:
            return None
        return answer.responses[0].partition_responses[0]

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


class Reader(Client):
    """Reads some partitions from the start, each by itself."""

    def __init__(
        self, name: str, loop: SimLoop, addresses: Sequence[tuple[str, int]], history: History, places: Sequence[Place]
    ) -> None:
        super().__init__(name, loop, addresses, history)
        self._places = places
        self._with_follower: dict[Place, None] = {}
        self.positions = dict.fromkeys(places, 0)
        self.high_watermarks = dict.fromkeys(places, -1)
        self.rack = ""

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for place in self._places:
                group.create_task(self._read_on(place))

    async def _read_on(self, place: Place) -> None:
        while True:
            records = await self.fetch(place)
            if records:
                self.history.polled(self.name, place, records, 0)
            elif self.random.random() < 0.1:
                await self.pause()

    async def read_once(self, address: tuple[str, int]) -> None:
        """All that there is now, and no more; of the node at `address` if it can be had there."""
        for place in self._places:
            await self.leader(place)
            self._leaders[place] = address
            self._with_follower[place] = None
            records = await self.read_all(place)
            self.history.polled(self.name, place, [*records.items()], 0)

    async def read_all(self, place: Place) -> dict[int, str]:
        """Everything from the start to the high watermark that the leader names at the end."""
        found: dict[int, str] = {}
        while not (0 <= self.high_watermarks[place] <= self.positions[place]):
            found.update(await self.fetch(place))
        return found

    def forget_leader(self, place: Place) -> None:
        super().forget_leader(place)
        self._with_follower.pop(place, None)

    async def fetch(self, place: Place) -> list[tuple[int, str]]:
        """The next records; none where there are none, or nobody answers."""
        peer = await self.leader(place)
        position, epoch = self.positions[place], self._epochs.get(place, -1)
        wanted = FetchTopic(
            place[0],
            self.topic_ids[place[0]],
            [FetchPartition(place[1], epoch, position, partition_max_bytes=2_000)],
        )
        request = FetchRequest(max_wait_ms=FETCH_WAIT_MS, min_bytes=1, topics=[wanted], rack_id=self.rack)
        try:
            answer = await peer.ask(request, FetchResponse, timeout_ms=ANSWER_MS)
        except Unreachable:
            self.forget_leader(place)
            await self.pause()
            return []
        if answer.error_code or not answer.responses:
            return []
        return await self._take(place, epoch, answer.responses[0].partitions[0])

    async def _take(self, place: Place, epoch: int, data: PartitionData) -> list[tuple[int, str]]:
        # A follower may lack what its leader has; a reader that was sent there goes back (KIP-392).
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and place not in self._with_follower:
            self.history.note(f"out-of-range: {self.name} at {place_text(place)}@{self.positions[place]}")
        if data.error_code:
            self.forget_leader(place)
            await self.pause()
            return []
        if data.preferred_read_replica in self._nodes:
            self._leaders[place] = self._nodes[data.preferred_read_replica]  # until it disappoints (KIP-392)
            self._with_follower[place] = None
        self.high_watermarks[place] = data.high_watermark
        records = [
            (record.offset, (record.value or b"").decode())
            for batch in self._sound(place, epoch, data)
            for record in read_records(batch)
            if record.offset >= self.positions[place]
        ]
        if records:
            self.positions[place] = records[-1][0] + 1
        return records

    def _sound(self, place: Place, epoch: int, data: PartitionData) -> Iterator[memoryview]:
        """A broker gives out no batch that its disk has changed, and none of a later epoch than the reader has named:
        it would have to tell the reader of that epoch first (KIP-320).
        """
        for header, batch in split_batches(data.records or b""):
            if not crc_is_valid(batch):
                self.history.note(f"damaged: {self.name} was served {place_text(place)}@{header.base_offset}")
                return
            if -1 < epoch < header.leader_epoch:
                what = f"{place_text(place)}@{header.base_offset} of epoch {header.leader_epoch}"
                self.history.note(f"unfenced: {self.name} named epoch {epoch} and was served {what}")
            yield batch
