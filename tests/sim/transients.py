"""Topics that come and go under a few names, with records in them: a topic is its id, and never its name.

Every value says of which topic and partition it is. What must never be:

| anomaly | meaning |
|---|---|
| foreign | a partition of one topic id shows a value that was sent to another |
| transient-inconsistent | two values at one offset of one topic id |
| transient-duplicate | a value that was sent once stands twice |
| transient-lost | an acknowledged value of a topic that lives to the end is not there |
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kavka_broker.peers import Unreachable
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.protocol.records.record import build_batch, read_records
from tests.sim.changes import SPARE_TOPICS
from tests.sim.clients import ANSWER_MS, Client
from tests.sim.history import WORST_MAX, Place
from tests.sim.producers import EPOCH_MS
from tests.sim.workloads import Workload

ALL = -1


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One partition of one topic id; `place` is as the invariants know it."""

    topic: str
    topic_id: bytes
    index: int

    @property
    def place(self) -> Place:
        return f"{self.topic}/{self.topic_id.hex()}", self.index

    def __str__(self) -> str:
        return f"{self.topic}/{self.topic_id.hex()[:8]}-{self.index}"


class Contents:
    """What is known to stand in each partition of each topic id: acknowledged there, or read."""

    def __init__(self) -> None:
        self.known: dict[Incarnation, dict[int, str]] = {}
        self.acknowledged: dict[Incarnation, dict[int, str]] = {}
        self.problems: list[str] = []

    def stands(self, where: Incarnation, offset: int, value: str) -> None:
        was = self.known.setdefault(where, {}).setdefault(offset, value)
        if was != value:
            self.problems.append(f"transient-inconsistent: {where}@{offset}: {was} and {value}")
        if not value.startswith(f"{where}:"):
            self.problems.append(f"foreign: {where}@{offset} shows {value}")

    def confirm(self, where: Incarnation, offset: int, value: str) -> None:
        self.stands(where, offset, value)
        self.acknowledged.setdefault(where, {})[offset] = value

    def duplicates(self) -> Iterator[str]:
        for where, records in self.known.items():
            values = list(records.values())
            for value in (
                {value: None for value in values if values.count(value) > 1} if len(set(values)) < len(values) else ()
            ):
                yield f"transient-duplicate: {value} stands twice in {where}"

    def lost(self, where: Incarnation, found: Mapping[int, str]) -> Iterator[str]:
        for offset, value in self.acknowledged.get(where, {}).items():
            if found.get(offset) != value:
                yield f"transient-lost: {value} was acknowledged at {where}@{offset}, {found.get(offset)} is there"


class Wanderer(Client):
    """Writes to whatever topic there is at the moment, and reads it; no value is sent twice."""

    contents: Contents
    is_stopping = False
    _numbers = 0

    async def run(self) -> None:
        while not self.is_stopping:
            await self.rest(0.01, 0.2)
            where = await self.find(f"spare{self.random.randrange(SPARE_TOPICS)}")
            if where is not None:
                await (self.write(where) if self.random.random() < 0.6 else self.look(where))

    async def find(self, topic: str) -> Incarnation | None:
        """One of the partitions of the topic that has this name now, as far as the node asked knows it."""
        for place in [leader for leader in self._leaders if leader[0] == topic]:
            self.forget_leader(place)
            self._epochs.pop(place, None)
        await self._learn(topic)
        indexes = [index for name, index in self._leaders if name == topic]
        return Incarnation(topic, self.topic_ids[topic], self.random.choice(indexes)) if indexes else None

    async def write(self, where: Incarnation) -> None:
        values = [f"{where}:{self.name}.{self._numbers + index}" for index in range(self.random.randint(1, 4))]
        self._numbers += len(values)
        now_ms = EPOCH_MS + self.loop.milliseconds()
        records = build_batch([(None, value.encode()) for value in values], timestamp_ms=now_ms)
        data = TopicProduceData(where.topic, where.topic_id, [PartitionProduceData(where.index, records)])
        peer = self.peer(self._leaders[where.topic, where.index])
        try:
            answer = await peer.ask(ProduceRequest(None, ALL, 2_000, [data]), ProduceResponse, timeout_ms=ANSWER_MS)
        except Unreachable:
            return
        told = answer.responses[0].partition_responses[0]
        if not told.error_code:
            for index, value in enumerate(values):
                self.contents.confirm(where, told.base_offset + index, value)
            self.history.told(where.place, told.base_offset + len(values) - 1)

    async def look(self, where: Incarnation) -> None:
        await self.fetch(where, self.random.choice((0, 0, self.random.randrange(30))))

    async def fetch(self, where: Incarnation, offset: int) -> tuple[dict[int, str], int]:
        """What stands there from an offset on, and the high watermark; -1 where nobody has said it."""
        wanted = FetchTopic(where.topic, where.topic_id, [FetchPartition(where.index, -1, offset)])
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[wanted])
        peer = self.peer(self._leaders[where.topic, where.index])
        try:
            answer = await peer.ask(request, FetchResponse, timeout_ms=ANSWER_MS)
        except Unreachable:
            return {}, -1
        if answer.error_code or not answer.responses or answer.responses[0].partitions[0].error_code:
            return {}, -1
        data = answer.responses[0].partitions[0]
        found: dict[int, str] = {}
        for _, batch in split_batches(data.records or b""):
            self.history.read(where.place, batch)
            found |= {record.offset: (record.value or b"").decode() for record in read_records(batch)}
        for at, value in found.items():
            self.contents.stands(where, at, value)
        return found, data.high_watermark

    async def read_all(self, where: Incarnation) -> dict[int, str]:
        """All that the partition holds."""
        found: dict[int, str] = {}
        high_watermark = -1
        while not 0 <= high_watermark <= len(found):
            more, high_watermark = await self.fetch(where, len(found))
            found |= more
            if high_watermark < 0:
                await self.pause()
                await self._learn(where.topic)
        return found


class Recreator(Client):
    """Deletes a topic and makes another of the same name at once, over and over."""

    is_stopping = False
    made = 0

    async def run(self) -> None:
        pace = self.random.choice((0.7, 2.0, 5.0))
        while not self.is_stopping:
            await asyncio.sleep(self.random.expovariate(1 / pace))
            name = f"spare{self.random.randrange(SPARE_TOPICS)}"
            if self.random.random() < 0.8:
                await self.ask_any(DeleteTopicsRequest([DeleteTopicState(name)], [name], 1_000), DeleteTopicsResponse)
            made = await self.ask_any(CreateTopicsRequest([CreatableTopic(name, 2, -1)], 1_000), CreateTopicsResponse)
            self.made += isinstance(made, CreateTopicsResponse) and not made.topics[0].error_code


class Transients(Workload):
    """Two clients that write and read, and one that creates the topics again."""

    def clients(self) -> Iterable[Client]:
        self.contents = Contents()
        self._all = [
            self.as_client(Wanderer, "wanderer0"),
            self.as_client(Wanderer, "wanderer1"),
            self.as_client(Recreator, "recreator"),
        ]
        for client in self._all:
            if isinstance(client, Wanderer):
                client.contents = self.contents
        return self._all

    async def judge(self) -> list[str]:
        self.reached(topics_recreated=sum(workload.made for workload in self._all if isinstance(workload, Recreator)))
        reader = self.as_judge(Wanderer, "last wanderer")
        reader.contents = self.contents
        lost = await self.running(reader, self._missed(reader))
        return [*self.contents.problems[:WORST_MAX], *self.contents.duplicates(), *lost[:WORST_MAX]]

    async def _missed(self, reader: Wanderer) -> list[str]:
        """What is not in the topics that live."""
        lost: list[str] = []
        for topic in self.simulation.invariants.image.topics:
            if not topic.name.startswith("spare"):
                continue
            for index in topic.partitions:
                where = Incarnation(topic.name, topic.topic_id, index)
                while (topic.name, index) not in reader._leaders or reader.topic_ids[topic.name] != topic.topic_id:
                    await reader.find(topic.name)
                lost += self.contents.lost(where, await reader.read_all(where))
        return lost
