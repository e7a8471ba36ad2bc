"""A fetch that has to wait watches its partitions from the moment it was read, not from when its task begins."""

import asyncio
import gc
import time
from pathlib import Path

import pytest

from kavka_broker.api.a01_fetch import fetch
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.replica.serving.fetches import UNKNOWN_MAX
from kavka_broker.request.broker import Client
from kavka_broker.request.registry import Postponed
from tests.support.in_process import batch, running
from tests.support.waiting import until

NEVER_MS = 3_600_000
VERSION = 12


def test_an_append_before_the_next_turn_wakes_the_fetch(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            wanted = [FetchTopic("t", partitions=[FetchPartition(0, partition_max_bytes=1000)])]
            request = FetchRequest(max_wait_ms=NEVER_MS, min_bytes=1, topics=wanted)
            waiting = fetch(request, inside.broker, Client(VERSION, "test", 1, "127.0.0.1", "PLAINTEXT"))
            assert not isinstance(waiting, FetchResponse)
            records = bytearray(batch(b"a", timestamp_ms=time.time_ns() // 1_000_000))
            inside.broker.partitions.leader("t", 0).append(memoryview(records))
            async with asyncio.timeout(60):
                answer = await waiting
            assert answer.responses[0].partitions[0].high_watermark == 1

    asyncio.run(scenario())


def test_a_waiting_fetch_has_no_task_and_is_answered_in_the_turn_that_wakes_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            wanted = [FetchTopic("t", partitions=[FetchPartition(0, partition_max_bytes=1000)])]
            request = FetchRequest(max_wait_ms=NEVER_MS, min_bytes=1, topics=wanted)
            tasks = asyncio.all_tasks()
            waiting = fetch(request, inside.broker, Client(VERSION, "test", 1, "127.0.0.1", "PLAINTEXT"))
            assert isinstance(waiting, Postponed)
            assert asyncio.all_tasks() == tasks
            answered = list[Message | None]()
            waiting.until.add_done_callback(lambda _: answered.append(waiting.make()))
            inside.broker.partitions.leader("t", 0).append(memoryview(bytearray(batch(b"a"))))
            await asyncio.sleep(0)
            (answer,) = answered
            assert isinstance(answer, FetchResponse)
            assert answer.responses[0].partitions[0].high_watermark == 1
            assert not inside.broker.partitions.leader("t", 0).waiters.fetches

    asyncio.run(scenario())


def test_a_missing_partition_does_not_end_the_wait_for_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            there, gone = (
                FetchTopic(name, partitions=[FetchPartition(0, partition_max_bytes=1000)]) for name in ("t", "gone")
            )
            client = Client(VERSION, "test", 1, "127.0.0.1", "PLAINTEXT")
            alone = fetch(FetchRequest(max_wait_ms=NEVER_MS, min_bytes=1, topics=[gone]), inside.broker, client)
            assert isinstance(alone, FetchResponse)
            waiting = fetch(
                FetchRequest(max_wait_ms=NEVER_MS, min_bytes=1, topics=[there, gone]), inside.broker, client
            )
            assert not isinstance(waiting, FetchResponse)
            task = asyncio.ensure_future(waiting)
            inside.broker.partitions.leader("t", 0).waiters.interrupt()
            async with asyncio.timeout(60):
                answer = await task
            codes = {topic.topic: topic.partitions[0].error_code for topic in answer.responses}
            assert codes == {"t": 0, "gone": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

    asyncio.run(scenario())


def test_an_error_comes_with_empty_records(tmp_path: Path) -> None:
    """librdkafka cannot read null records: it would never see the error, and its reader would stand still."""

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            gone = FetchTopic("gone", partitions=[FetchPartition(0, partition_max_bytes=1000)])
            client = Client(VERSION, "test", 1, "127.0.0.1", "PLAINTEXT")
            answer = fetch(FetchRequest(max_wait_ms=0, topics=[gone]), inside.broker, client)
            assert isinstance(answer, FetchResponse)
            (refused,) = answer.responses[0].partitions
            assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert refused.records == b""

    asyncio.run(scenario())


def test_a_fetch_that_has_waited_leaves_no_cycles_behind(tmp_path: Path) -> None:
    """Garbage collections are rare, and cost as much for a fetch as the fetch itself."""
    count = 40

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            client = await inside.connect()

            async def wait_in_vain() -> None:
                wanted = [FetchTopic("t", partitions=[FetchPartition(0, partition_max_bytes=1000)])]
                await client.call(FetchRequest(max_wait_ms=1, min_bytes=1, topics=wanted), FetchResponse, VERSION)

            await wait_in_vain()
            gc.collect()
            gc.disable()
            try:
                for _ in range(count):
                    await wait_in_vain()
                assert gc.collect() < count
            finally:
                gc.enable()

    asyncio.run(scenario())


@pytest.mark.parametrize("unknown", [UNKNOWN_MAX, UNKNOWN_MAX + 1])
def test_a_fetch_that_names_very_much_that_does_not_exist_waits_for_nothing(tmp_path: Path, unknown: int) -> None:
    """Forty of 60,000 such partitions each kept 600 MB for as long as they liked, without any right."""

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            there = FetchTopic("t", partitions=[FetchPartition(0, partition_max_bytes=1000)])
            gone = FetchTopic("gone", partitions=[FetchPartition(index) for index in range(unknown)])
            client = Client(VERSION, "test", 1, "127.0.0.1", "PLAINTEXT")
            request = FetchRequest(max_wait_ms=NEVER_MS, min_bytes=1, topics=[there, gone])
            answering = fetch(request, inside.broker, client)
            assert not isinstance(answering, FetchResponse)
            task = asyncio.ensure_future(answering)
            if unknown <= UNKNOWN_MAX:
                waiters = inside.broker.partitions.leader("t", 0).waiters
                await until(lambda: bool(waiters.fetches))
                assert not task.done()
                waiters.interrupt()
            async with asyncio.timeout(60):
                answer = await task
            assert len(answer.responses[1].partitions) == unknown

    asyncio.run(scenario())
