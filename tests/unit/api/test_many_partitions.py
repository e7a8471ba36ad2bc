"""Produce and Fetch of many partitions: the same answers as of few, in order, while others have their turn."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kavka_broker.protocol.messages.fetch_response import FetchResponse, PartitionData
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.leading.purgatory import FetchWaiter
from kavka_broker.replica.serving.pending_fetch import AT_ONCE_MAX
from tests.support.in_process import Client, InProcess, batch, code_of, running

pytestmark = pytest.mark.thorough

COUNT: Final = AT_ONCE_MAX + 50
HEADER_BYTES: Final = 15  # of the header of its request
NEVER_MS: Final = 3_600_000
PRODUCE, FETCH = 12, 12


def play(directory: Path, scenario: Callable[[InProcess, Client], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running(directory) as inside:
            await inside.create("t", COUNT)
            while any(code_of(inside, index) for index in range(COUNT)):
                await asyncio.sleep(0)
            await scenario(inside, await inside.connect())

    asyncio.run(run())


def produce_to(*indexes: int, acks: int = 1) -> ProduceRequest:
    """A request with one record for each partition; its value is the partition's index."""
    stamp = time.time_ns() // 1_000_000
    data = [PartitionProduceData(index, batch(str(index).encode(), timestamp_ms=stamp)) for index in indexes]
    return ProduceRequest(None, acks, 30_000, [TopicProduceData("t", partition_data=data)])


def fetch_of(*indexes: int, **options: int) -> FetchRequest:
    wanted = [FetchPartition(index, partition_max_bytes=1000) for index in indexes]
    topics = [FetchTopic("t", partitions=wanted)] if wanted else []
    request = FetchRequest(max_wait_ms=NEVER_MS, min_bytes=1, max_bytes=10**6, topics=topics)
    for name, value in options.items():
        setattr(request, name, value)
    return request


def partitions_of(answer: FetchResponse) -> dict[int, PartitionData]:
    return {partition.partition_index: partition for topic in answer.responses for partition in topic.partitions}


@pytest.mark.parametrize("count", [COUNT, 3 * COUNT], ids=["read at once", "read in a thread"])
def test_every_partition_is_answered_in_the_order_of_the_request(tmp_path: Path, count: int) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        indexes = [*reversed(range(COUNT)), *range(COUNT, count)]
        client.send(produce_to(*indexes), PRODUCE)
        client.send(produce_to(7), PRODUCE)
        client.send(ApiVersionsRequest("a", "1"), 3)
        answer = await client.receive(ProduceResponse, PRODUCE)
        codes = [(partition.index, partition.error_code) for partition in answer.responses[0].partition_responses]
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes == [(index, 0 if index < COUNT else unknown) for index in indexes]
        second = await client.receive(ProduceResponse, PRODUCE)
        assert second.responses[0].partition_responses[0].base_offset == 1, "behind the first request"
        await client.receive(ApiVersionsResponse, 3)

    play(tmp_path, scenario)


def test_acks_0_appends_all_partitions_without_an_answer(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        client.send(produce_to(*range(COUNT), acks=0), PRODUCE)
        client.send(ApiVersionsRequest("a", "1"), 3)
        await client.receive(ApiVersionsResponse, 3)
        assert {inside.broker.partitions.leader("t", index).log.log_end_offset for index in range(COUNT)} == {1}

    play(tmp_path, scenario)


def test_kept_request_bytes_count_until_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kept bytes count in `queued.max.request.bytes`; the receive buffer has been given back by then."""
    used: list[int] = []

    async def scenario(inside: InProcess, client: Client) -> None:
        (listener,) = inside.server.addresses.of_brokers
        append = Partition.append

        def noting(partition: Partition, *arguments: Any, **options: Any) -> Any:
            used.append(listener.limits.memory.used_bytes)
            return append(partition, *arguments, **options)

        monkeypatch.setattr(Partition, "append", noting)
        request = produce_to(*range(COUNT))
        await client.call(request, ProduceResponse, PRODUCE)
        assert set(used[-COUNT // 2 :]) == {len(encode(request, PRODUCE)) + HEADER_BYTES}
        assert not listener.limits.memory.used_bytes

    play(tmp_path, scenario)


def test_a_session_of_many_partitions_gets_only_changed_ones(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await client.call(produce_to(*range(COUNT)), ProduceResponse, PRODUCE)
        full = await client.call(fetch_of(*range(COUNT), session_epoch=0), FetchResponse, FETCH)
        assert sorted(partitions_of(full)) == list(range(COUNT))
        assert all(partition.high_watermark == 1 for partition in partitions_of(full).values())
        moved = [FetchPartition(index, fetch_offset=1, partition_max_bytes=1000) for index in range(COUNT)]
        again = fetch_of(session_id=full.session_id, session_epoch=1)
        again.topics = [FetchTopic("t", partitions=moved[:-1])]
        again.forgotten_topics_data = [ForgottenTopic("t", partitions=[COUNT - 1])]
        client.send(again, FETCH)
        producer = await inside.connect()
        await producer.call(produce_to(COUNT - 2), ProduceResponse, PRODUCE)
        answer = await client.receive(FetchResponse, FETCH)
        assert [
            (partition.partition_index, partition.high_watermark) for partition in partitions_of(answer).values()
        ] == [(COUNT - 2, 2)]
        assert answer.session_id == full.session_id

    play(tmp_path, scenario)


def test_an_append_to_an_already_read_partition_wakes_the_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other partitions are still to be read when the append comes."""

    async def scenario(inside: InProcess, client: Client) -> None:
        first, watched = inside.broker.partitions.leader("t", 0), Partition.watched

        def appending(partition: Partition, *, stable_only: bool) -> list[FetchWaiter]:
            if partition.index == COUNT - 1:
                first.append(memoryview(bytearray(batch(b"new", timestamp_ms=time.time_ns() // 1_000_000))))
            return watched(partition, stable_only=stable_only)

        monkeypatch.setattr(Partition, "watched", appending)
        answer = await client.call(fetch_of(*range(COUNT)), FetchResponse, FETCH)
        assert partitions_of(answer)[0].records

    play(tmp_path, scenario)


def test_a_fetch_of_many_empty_partitions_is_answered_after_max_wait(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        answer = await client.call(fetch_of(*range(COUNT), max_wait_ms=30), FetchResponse, FETCH)
        assert len(partitions_of(answer)) == COUNT
        lists = [inside.broker.partitions.leader("t", index).waiters.fetches for index in range(COUNT)]
        await asyncio.sleep(0)
        assert not any(lists), "nobody waits any more"

    play(tmp_path, scenario)
