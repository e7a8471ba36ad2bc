"""Produce and Fetch of topics that limit their clients: who has to wait, and what an answer brings."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.messages import incremental_alter_configs_request as altering
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.runtime.environment import REAL
from tests.support.clocks import StoppedClock
from tests.support.in_process import Client, InProcess, batch, running
from tests.support.turns import CALLS_PER_TURN_MAX, Turns

pytestmark = pytest.mark.thorough

PRODUCED, FETCHED = 9, 12  # versions that name topics
BATCH = batch(b"a" * 20_000, timestamp_ms=0)
SECOND = len(BATCH)  # a limit that is a batch a second
WINDOW = 10
MANY = 20_000  # partitions; a turn that handled all of them would be longer than any other
TOPIC, SET, DELETE = 2, 0, 1
Scenario = Callable[[InProcess], Awaitable[None]]


def play(directory: Path, scenario: Scenario) -> None:
    """Run a scenario that takes no time, however long it takes."""

    async def run() -> None:
        clock = StoppedClock()
        async with running(directory, world=replace(REAL, clock=clock)) as inside:
            clock.stop()
            await scenario(inside)
            clock.go_on()

    asyncio.run(run())


async def produced(client: Client, *topics: str, partitions: int = 1, count: int = 1, acks: int = 1) -> int:
    """Produce to each partition of the topics; returns the delay that was told."""
    records = memoryview(bytearray(BATCH * count))
    parts = [PartitionProduceData(index, records) for index in range(partitions)]
    request = ProduceRequest(
        acks=acks, timeout_ms=10_000, topic_data=[TopicProduceData(topic, b"", parts) for topic in topics]
    )
    return (await client.call(request, ProduceResponse, PRODUCED)).throttle_time_ms


async def fill(inside: InProcess, topic: str, batches: int, partitions: int = 1) -> None:
    """Append past the quotas."""
    for index in range(partitions):
        for _ in range(batches):
            inside.broker.partitions.leader(topic, index).append(memoryview(bytearray(BATCH)))


def wanted(*topics: str, partitions: int = 1, replica_id: int = -1, **more: Any) -> FetchRequest:
    parts = [FetchPartition(index, partition_max_bytes=2**30) for index in range(partitions)]
    asked = [FetchTopic(topic, partitions=parts) for topic in topics]
    return FetchRequest(replica_id=replica_id, replica_state=ReplicaState(), max_bytes=2**30, topics=asked, **more)


def batches_in(answer: FetchResponse) -> list[int]:
    return [
        len(b"".join([bytes(part.records or b"")])) // len(BATCH)
        for topic in answer.responses
        for part in topic.partitions
    ]


def held_by(inside: InProcess) -> dict[str, int]:
    quotas = inside.broker.quotas
    lines = [*at_once(quotas.produced.usages(0)), *at_once(quotas.fetched.usages(0))]
    return {str(line.entity): line.held_connections for line in lines}


def test_clients_of_one_topic_share_its_limit_and_others_are_free(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        await inside.create("t", kavka_topic_producer_byte_rate=str(SECOND))
        await inside.create("free")
        for _ in range(WINDOW):
            assert await produced(await inside.connect(), "t") == 0
        first, second = await inside.connect(), await inside.connect()
        assert 0 < await produced(first, "t") <= 1000
        assert 1000 < await produced(second, "t") <= 2000
        assert await produced(await inside.connect(), "free") == 0
        assert held_by(inside) == {'topic "t"': 2}

    play(tmp_path, scenario)


@pytest.mark.parametrize("together", [True, False])
def test_partitions_share_the_limit_or_have_one_each(tmp_path: Path, together: bool) -> None:
    async def scenario(inside: InProcess) -> None:
        limit = {f"kavka_{'topic' if together else 'partition'}_producer_byte_rate": str(SECOND)}
        await inside.create("t", 2, **limit)
        for _ in range(WINDOW // 2):
            assert await produced(await inside.connect(), "t", partitions=2) == 0
        assert (await produced(await inside.connect(), "t", partitions=2) > 0) == together

    play(tmp_path, scenario)


def test_the_longest_of_all_delays_is_told_and_counted_where_it_comes_from(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        await inside.create("slow", kavka_topic_producer_byte_rate="1000")
        await inside.create("slower", kavka_topic_producer_byte_rate="500", kavka_partition_producer_byte_rate="1")
        assert await produced(await inside.connect(), "slow", "slower") > 19_000_000
        assert held_by(inside) == {'topic "slow"': 0, 'topic "slower"': 0, 'each partition of topic "slower"': 1}

    play(tmp_path, scenario)


def named(*topics: tuple[str, int], records: bytes) -> ProduceRequest:
    """A request with these records for each of so many partitions of the topics, of which most do not exist."""
    data = memoryview(bytearray(records))
    named = [
        TopicProduceData(topic, b"", [PartitionProduceData(index, data) for index in range(partitions)])
        for topic, partitions in topics
    ]
    return ProduceRequest(acks=1, timeout_ms=10_000, topic_data=named)


@pytest.mark.parametrize("partitions", [2, 4000])
def test_a_topic_that_is_named_twice_is_charged_once(tmp_path: Path, partitions: int) -> None:
    async def scenario(inside: InProcess) -> None:
        small = batch(b"a" * 100, timestamp_ms=0)
        await inside.create("t", kavka_topic_producer_byte_rate=str(len(small)))
        request = named(("t", partitions), ("t", partitions), records=small)
        await (await inside.connect()).call(request, ProduceResponse, PRODUCED)
        (usage,) = at_once(inside.broker.quotas.produced.usages(int(inside.broker.clock.monotonic_ms())))
        assert 0 < usage.usage <= len(small) / WINDOW

    play(tmp_path, scenario)


@pytest.mark.parametrize("limited", ["topic", "partition"])
def test_no_turn_grows_with_the_partitions_of_a_limited_topic(tmp_path: Path, limited: str) -> None:
    async def scenario(inside: InProcess) -> None:
        limit = {f"kavka_{limited}_producer_byte_rate": "1000"}
        await inside.create("t", 1, **limit)
        partition, turns = inside.broker.partitions.leader("t", 0), Turns()
        inside.broker.partitions.by_topic["t"].update(dict.fromkeys(range(MANY), partition))
        client = await inside.connect()
        with turns.counting():
            client.send(named(("t", MANY), records=b"-"), PRODUCED)
            await client.receive(ProduceResponse, PRODUCED)
        for index in range(1, MANY):
            del inside.broker.partitions.by_topic["t"][index]
        (usage,) = at_once(inside.broker.quotas.produced.usages(0))
        assert usage.shares == (1 if limited == "topic" else MANY)
        assert turns.most < CALLS_PER_TURN_MAX

    play(tmp_path, scenario)


def test_what_is_not_led_here_counts_for_nothing(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        await inside.create("t", kavka_topic_producer_byte_rate="1")
        inside.broker.partitions.leader("t", 0).is_leader = False
        assert await produced(await inside.connect(), "t") == 0
        inside.broker.partitions.by_topic["t"][0].is_leader = True
        assert await produced(await inside.connect(), "t") > 0

    play(tmp_path, scenario)


def test_a_limit_holds_from_the_next_request_on_until_it_is_taken_back(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        await inside.create("t")

        async def alter(operation: int, value: str | None) -> int:
            change = altering.AlterableConfig("kavka.topic.producer.byte.rate", operation, value)
            request = altering.IncrementalAlterConfigsRequest([altering.AlterConfigsResource(TOPIC, "t", [change])])
            client = await inside.connect()
            (answer,) = (await client.call(request, IncrementalAlterConfigsResponse, 1)).responses
            return answer.error_code

        assert await produced(await inside.connect(), "t") == 0
        assert await alter(SET, "100") == 0
        assert await produced(await inside.connect(), "t") > 0
        assert [await alter(SET, value) for value in ("0", "-1", "NaN", "1.5", "10Mi", str(2**63))] == [40] * 6
        assert await produced(await inside.connect(), "t") > 0
        assert await alter(DELETE, None) == 0
        assert await produced(await inside.connect(), "t") == 0

    play(tmp_path, scenario)


def test_a_fetch_brings_a_second_of_the_limit_and_then_its_client_waits(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        await inside.create("t", kavka_topic_consumer_byte_rate=str(2 * SECOND))
        await fill(inside, "t", 20)
        for _ in range(WINDOW):
            client = await inside.connect()
            answer = await client.call(wanted("t"), FetchResponse, FETCHED)
            assert (batches_in(answer), answer.throttle_time_ms) == ([2], 0)
        answer = await (await inside.connect()).call(wanted("t"), FetchResponse, FETCHED)
        assert batches_in(answer) == [2]
        assert 0 < answer.throttle_time_ms <= 1000
        assert held_by(inside) == {'topic "t"': 1}

    play(tmp_path, scenario)


def test_partitions_of_a_topic_share_the_second_and_other_topics_fill_the_answer(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        await inside.create(
            "t", 3, kavka_topic_consumer_byte_rate=str(2 * SECOND), kavka_partition_consumer_byte_rate=str(SECOND)
        )
        await inside.create("free")
        await fill(inside, "t", 5, 3)
        await fill(inside, "free", 5)
        parts = wanted("t", partitions=3)
        parts.topics.append(wanted("free").topics[0])
        answer = await (await inside.connect()).call(parts, FetchResponse, FETCHED)
        assert batches_in(answer) == [1, 1, 0, 5]

    play(tmp_path, scenario)


def test_a_fetch_does_not_wait_for_more_than_it_may_bring(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        await inside.create("t", kavka_topic_consumer_byte_rate=str(SECOND))
        await fill(inside, "t", 5)
        request = wanted("t", min_bytes=4 * SECOND, max_wait_ms=3_600_000)
        answer = await (await inside.connect()).call(request, FetchResponse, FETCHED)
        assert batches_in(answer) == [1]

    play(tmp_path, scenario)


def test_a_follower_is_never_held(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        await inside.create("t", kavka_topic_consumer_byte_rate="1")
        await fill(inside, "t", 5)
        answer = await (await inside.connect()).call(wanted("t", replica_id=1), FetchResponse, FETCHED)
        assert answer.throttle_time_ms == 0
        assert not any(line.shares for line in at_once(inside.broker.quotas.fetched.usages(0)))

    play(tmp_path, scenario)
