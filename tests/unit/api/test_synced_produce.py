"""`flush.messages=1`: what is answered, or read by a consumer, was synced here; neighbours do not wait for that."""

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.storage.log import Log
from tests.support.in_process import Client, InProcess, batch, running
from tests.support.waiting import until
from tests.unit.api.test_follower_fetch import call, fetch, play
from tests.unit.api.test_replicated_produce import decide

VERSION = 12


class Held:
    """Syncs of a log that wait until the test lets them go on."""

    def __init__(self, log: Log) -> None:
        self.count = 0
        self._may_sync = threading.Event()
        self._sync = log.durability.sync_records
        self.log = log
        log.durability.sync_records = self._wait  # type: ignore[method-assign]

    def _wait(self) -> None:
        assert self._may_sync.wait(60)
        self.count += 1
        self._sync()

    def let_go(self) -> None:
        self._may_sync.set()


def request(topic: str = "t", acks: int = -1, value: bytes = b"v") -> ProduceRequest:
    data = [PartitionProduceData(0, batch(value, timestamp_ms=-1))]
    return ProduceRequest(None, acks, 60_000, [TopicProduceData(topic, partition_data=data)])


async def offset_of(client: Client) -> int:
    part = (await client.receive(ProduceResponse, VERSION)).responses[0].partition_responses[0]
    assert not part.error_code
    return part.base_offset


def on_one_broker(directory: Path, scenario: Callable[[InProcess, Held], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running(directory) as inside:
            await inside.create("t", flush_messages="1")
            await inside.create("neighbour")
            log = inside.broker.partitions.leader("t", 0).log
            log.durability.secure()
            held = Held(log)
            try:
                await asyncio.wait_for(scenario(inside, held), 60)
            finally:
                held.let_go()

    asyncio.run(run())


@pytest.mark.parametrize("acks", [1, -1])
def test_a_produce_waits_for_the_sync_and_other_requests_do_not(tmp_path: Path, acks: int) -> None:
    async def scenario(inside: InProcess, held: Held) -> None:
        client, other = await inside.connect(), await inside.connect()
        client.send(request(acks=acks), VERSION)
        client.send(request("neighbour", acks), VERSION)
        await until(lambda: inside.broker.partitions.leader("neighbour", 0).log.log_end_offset == 1)
        other.send(request("neighbour", acks), VERSION)
        assert await offset_of(other) == 1
        partition = inside.broker.partitions.leader("t", 0)
        assert (held.log.log_end_offset, held.log.recovery_point, partition.high_watermark) == (1, 0, 0)
        held.let_go()
        # Answers keep the order of the requests, though the second one had nothing to wait for.
        assert (await offset_of(client), held.log.recovery_point, await offset_of(client)) == (0, 1, 0)
        assert partition.high_watermark == 1

    on_one_broker(tmp_path, scenario)


def test_acks_0_is_held_back_as_well(tmp_path: Path) -> None:
    """Otherwise the producer would run ahead of the disk without a bound."""

    async def scenario(inside: InProcess, held: Held) -> None:
        client = await inside.connect()
        for _ in range(200):
            client.send(request(acks=0), VERSION)
        await until(lambda: held.log.log_end_offset >= 64)
        await inside.heard()
        assert held.log.log_end_offset == 64
        held.let_go()
        await until(lambda: held.log.recovery_point == 200)

    on_one_broker(tmp_path, scenario)


def test_a_record_that_every_follower_has_waits_for_the_leaders_sync(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        await decide(inside, ConfigRecord(2, "t", "flush.messages", "1"))
        partition = inside.broker.partitions.leader("t", 0)
        partition.log.durability.secure()
        held = Held(partition.log)
        client.send(request(), VERSION)
        await until(lambda: partition.log.log_end_offset == 1)
        follower = await inside.connect()
        assert (await call(follower, fetch(topic_id, {0: 0})))[0].high_watermark == 0
        assert (await call(follower, fetch(topic_id, {0: 1})))[0].high_watermark == 0
        held.let_go()
        assert await offset_of(client) == 0
        assert (partition.high_watermark, partition.log.recovery_point) == (1, 1)

    play(tmp_path, scenario)


def test_an_answer_that_has_waited_leaves_no_cycles_behind(tmp_path: Path) -> None:
    """Garbage collections are rare, and cost as much for a request as the request itself."""
    count = 40

    async def scenario(inside: InProcess, held: Held) -> None:
        held.let_go()
        client = await inside.connect()

        async def produce() -> None:
            client.send(request(), VERSION)
            await offset_of(client)

        await produce()
        gc.collect()
        gc.disable()
        try:
            for _ in range(count):
                await produce()
            assert gc.collect() < count
        finally:
            gc.enable()

    on_one_broker(tmp_path, scenario)
