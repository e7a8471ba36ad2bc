"""Producers that ask for less: acks=0 and acks=1, no idempotence, no second try, and a topic with a codec of its own.

What they were answered may be lost. But no value stands twice, for none was sent twice; what acks=1 was told an offset
for stands there or nowhere; and readers see committed records only, whatever the producer asked for.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

from kavka_broker.peers import Unreachable
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.record import Source, build_batch
from tests.sim.clients import ANSWER_MS, Admin, Client
from tests.sim.history import Place
from tests.sim.producers import CODECS, EPOCH_MS
from tests.sim.readers import Reader
from tests.sim.workloads import Workload

TOPIC: Final = "weak"
PLACE: Final[Place] = (TOPIC, 0)
OF_THE_TOPIC: Final = ("producer", "producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
NO_ANSWER_MS: Final = 150  # acks=0 has none; then the connection is given up, too


class WeakProducer(Client):
    """Sends each value once, with these acks."""

    acks = 1
    place = PLACE
    is_stopping = False
    throttle_time_ms = 0  # as its last answer says
    _numbers = 0

    def __init__(self, *details: object) -> None:
        super().__init__(*details)  # type: ignore[arg-type]
        self.told: dict[str, int] = {}

    async def run(self) -> None:
        while not self.is_done:
            await asyncio.sleep(self.random.uniform(0.02, 0.4))
            if self.throttle_time_ms:
                await asyncio.sleep(self.throttle_time_ms / 1000)
            await self._send()

    async def _send(self) -> None:
        topic, index = place = self.place
        self._numbers += 1
        values = self.new_values()
        peer = await self.leader(place)
        self.history.sent(self.name, place, values)
        records = build_batch(
            [self.source(value) for value in values],
            timestamp_ms=EPOCH_MS + self.loop.milliseconds(),
            compression=self.random.choice(CODECS),
        )
        data = TopicProduceData(topic, self.topic_ids[topic], [PartitionProduceData(index, records)])
        timeout_ms = ANSWER_MS if self.acks else NO_ANSWER_MS
        try:
            answer = await peer.ask(
                ProduceRequest(None, self.acks, 2_000, [data]), ProduceResponse, timeout_ms=timeout_ms
            )
        except Unreachable:
            self.forget_leader(place)
            return
        self.throttle_time_ms = answer.throttle_time_ms
        told = answer.responses[0].partition_responses[0]
        if told.error_code:
            self.forget_leader(place)
        else:
            self.told |= {value: told.base_offset + number for number, value in enumerate(values)}

    @property
    def is_done(self) -> bool:
        return self.is_stopping

    def new_values(self) -> list[str]:
        return [f"{self.name}.{self._numbers}.{index}" for index in range(self.random.randint(1, 6))]

    def source(self, value: str) -> Source:
        return None, value.encode()


class Weak(Workload):
    """One producer with acks=0, one with acks=1, and a reader."""

    share = 0.25

    async def begin(self, admin: Admin) -> None:
        codec = self.random.choice(OF_THE_TOPIC)
        await admin.create(TOPIC, 1, self.shape.replication_factor, compression_type=codec)

    def clients(self) -> Iterable[Client]:
        self._producers = [self.as_client(WeakProducer, f"weak{acks}") for acks in (0, 1)]
        for acks, producer in enumerate(self._producers):
            producer.acks = acks
        self._reader = self.as_client(Reader, "weak reader", [PLACE])
        return [*self._producers, self._reader]

    async def judge(self) -> list[str]:
        last = self.as_judge(Reader, "last weak reader", [PLACE])
        found = await self.running(last, last.read_all(PLACE))
        self.history.read_finally(PLACE, found)
        self.reached(weak_records=len(found))
        return [*self._moved(found), *self.history.anomalies()]

    def _moved(self, found: dict[int, str]) -> Iterator[str]:
        told = self._producers[1].told
        for offset, value in found.items():
            if told.get(value, offset) != offset:
                yield f"weak-moved: {value} was written to {told[value]}, and stands at {offset}"
