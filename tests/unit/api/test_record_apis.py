"""Produce, Fetch, ListOffsets, DeleteRecords and OffsetForLeaderEpoch over a real socket and a real disk."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.topics import delete_topic
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kavka_broker.protocol.messages.delete_records_response import DeleteRecordsResponse
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.fetch_response import FetchResponse, PartitionData
from kavka_broker.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kavka_broker.protocol.messages.list_offsets_response import ListOffsetsResponse
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kavka_broker.protocol.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.protocol.records.record import read_records
from tests.support.in_process import Client, InProcess, batch, running, values
from tests.support.waiting import until

NOW_MS = time.time_ns() // 1_000_000
Scenario = Callable[[InProcess, Client], Awaitable[None]]


def play(directory: Path, scenario: Scenario) -> None:
    async def run() -> None:
        async with running(directory) as inside:
            await scenario(inside, await inside.connect())

    asyncio.run(run())


async def produce(
    client: Client, records: bytes | None, *, acks: int = -1, topic: str = "t", index: int = 0, version: int = 9
) -> PartitionProduceResponse:
    data = [TopicProduceData(topic, partition_data=[PartitionProduceData(index, records)])]
    answer = await client.call(ProduceRequest(None, acks, 1000, data), ProduceResponse, version)
    return answer.responses[0].partition_responses[0]


def fetch_request(
    offset: int, *, topic: str = "t", wait_ms: int = 0, min_bytes: int = 1, bytes_max: int = 1 << 20, **more: Any
) -> FetchRequest:
    wanted = FetchPartition(
        0, more.pop("leader_epoch", -1), offset, more.pop("fetched_epoch", -1), partition_max_bytes=bytes_max
    )
    return FetchRequest(
        max_wait_ms=wait_ms, min_bytes=min_bytes, topics=[FetchTopic(topic, partitions=[wanted])], **more
    )


async def fetch(client: Client, request: FetchRequest, version: int = 12) -> PartitionData:
    answer = await client.call(request, FetchResponse, version)
    return answer.responses[0].partitions[0]


def read(data: PartitionData) -> list[bytes | None]:
    return [value for _, part in split_batches(data.records) for value in values(read_records(part))]


def stamped(*given: bytes) -> bytes:
    return batch(*given, timestamp_ms=NOW_MS)


@pytest.mark.parametrize("version", [3, 7, 8, 9, 12])
def test_produced_records_are_fetched_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        assert (await produce(client, stamped(b"a", b"b"), version=version)).base_offset == 0
        assert (await produce(client, stamped(b"c"), acks=1, version=version)).base_offset == 2
        for fetch_version in (4, 7, 11, 12):
            data = await fetch(client, fetch_request(0), fetch_version)
            assert (read(data), data.high_watermark) == ([b"a", b"b", b"c"], 3)

    play(tmp_path, scenario)


def test_records_are_produced_to_the_id_of_a_topic(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        topic_id = await inside.create("t")
        for known, code in ((topic_id, 0), (b"?" * 16, ErrorCode.UNKNOWN_TOPIC_ID)):
            data = [TopicProduceData("", known, [PartitionProduceData(0, stamped(b"a"))])]
            produced = await client.call(ProduceRequest(None, -1, 1000, data), ProduceResponse, 13)
            assert produced.responses[0].partition_responses[0].error_code == code
            request = fetch_request(0)
            request.topics[0].topic_id = known
            fetched = await client.call(request, FetchResponse, 17)
            assert fetched.responses[0].partitions[0].error_code == code

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("topic", "index", "acks", "records", "code"),
    [
        ("t", 0, 2, stamped(b"a"), ErrorCode.INVALID_REQUIRED_ACKS),
        ("t", 1, 1, stamped(b"a"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("u", 0, 1, stamped(b"a"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0, 1, None, ErrorCode.INVALID_RECORD),
        ("t", 0, 1, b"\0" * 70, ErrorCode.CORRUPT_MESSAGE),
        ("t", 0, 1, stamped(b"a")[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE),
        ("t", 0, 1, stamped(b"a" * 2_000_000), ErrorCode.MESSAGE_TOO_LARGE),
    ],
)
def test_a_refused_batch_leaves_the_log_as_it_was(
    tmp_path: Path, topic: str, index: int, acks: int, records: bytes | None, code: ErrorCode
) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        refused = await produce(client, records, acks=acks, topic=topic, index=index)
        assert ErrorCode(refused.error_code) == code
        assert (await produce(client, stamped(b"z"))).base_offset == 0

    play(tmp_path, scenario)


def test_acks_0_is_not_answered_and_a_failure_closes_the_connection(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        for topic in ("t", "u"):
            data = [TopicProduceData(topic, partition_data=[PartitionProduceData(0, stamped(b"a"))])]
            client.send(ProduceRequest(None, 0, 1000, data), 9)
            if topic == "t":
                assert (await produce(client, stamped(b"b"))).base_offset == 1
        assert await client.is_closed()

    play(tmp_path, scenario)


def test_a_long_poll_ends_with_min_bytes_or_max_wait(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        consumer = await inside.connect()
        consumer.send(fetch_request(0, wait_ms=20_000, min_bytes=200), 12)
        await produce(client, stamped(b"a"))
        await produce(client, stamped(b"b" * 300))
        answer = await consumer.receive(FetchResponse, 12)
        assert read(answer.responses[0].partitions[0]) == [b"a", b"b" * 300]

        assert read(await fetch(consumer, fetch_request(2, wait_ms=50))) == []

    play(tmp_path, scenario)


def test_a_long_poll_is_told_that_its_topic_was_deleted(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        client.send(fetch_request(0, wait_ms=20_000), 12)
        await until(lambda: next(iter(inside.broker.partitions)).waiters.fetches)
        topic = inside.broker.metadata.topics.get("t")
        assert topic is not None
        await inside.broker.active.submit(lambda *_: delete_topic(topic))
        answer = await client.receive(FetchResponse, 12)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    play(tmp_path, scenario)


def test_an_incremental_fetch_leaves_out_unchanged_partitions(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        await produce(client, stamped(b"a"))
        first = await client.call(fetch_request(0, session_epoch=0), FetchResponse, 12)
        assert first.session_id > 0
        assert len(first.responses) == 1

        again = fetch_request(1, session_id=first.session_id, session_epoch=1)
        assert (await client.call(again, FetchResponse, 12)).responses == []

        await produce(client, stamped(b"b"))
        nothing_named = FetchRequest(min_bytes=1, session_id=first.session_id, session_epoch=2)
        third = await client.call(nothing_named, FetchResponse, 12)
        assert read(third.responses[0].partitions[0]) == [b"b"]

        stale = FetchRequest(session_id=first.session_id, session_epoch=2)
        assert (await client.call(stale, FetchResponse, 12)).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("offset", "leader_epoch", "code"),
    [
        (2, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (-1, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (0, 7, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_invalid_fetches_are_refused(tmp_path: Path, offset: int, leader_epoch: int, code: ErrorCode) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        await produce(client, stamped(b"a"))
        request = fetch_request(offset, leader_epoch=leader_epoch, wait_ms=20_000)
        assert ErrorCode((await fetch(client, request)).error_code) == code

    play(tmp_path, scenario)


def test_a_restart_is_a_new_leader_epoch_and_the_old_one_is_fenced(tmp_path: Path) -> None:
    async def first(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        await produce(client, stamped(b"a"))

    async def second(inside: InProcess, client: Client) -> None:
        stale = await fetch(client, fetch_request(1, leader_epoch=0))
        assert ErrorCode(stale.error_code) == ErrorCode.FENCED_LEADER_EPOCH
        epoch = next(iter(inside.broker.partitions)).leader_epoch
        assert epoch > 0
        await produce(client, stamped(b"b"))
        topics = [OffsetForLeaderTopic("t", [OffsetForLeaderPartition(0, -1, asked) for asked in (0, epoch, 99)])]
        request = OffsetForLeaderEpochRequest(topics=topics)
        answer = await client.call(request, OffsetForLeaderEpochResponse, 4)
        found = [(end.leader_epoch, end.end_offset) for end in answer.topics[0].partitions]
        assert found == [(0, 1), (epoch, 2), (-1, -1)]

    play(tmp_path, first)
    play(tmp_path, second)


def test_offsets_are_found_by_time(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        for second in (10, 30, 20):
            await produce(client, batch(b"x", timestamp_ms=NOW_MS + second * 1000))
        asked = {-1: 3, -2: 0, -3: 1, -4: 0, -5: -1, NOW_MS: 0, NOW_MS + 15_000: 1, NOW_MS + 40_000: -1}
        for timestamp_ms, offset in asked.items():
            request = list_offsets(ListOffsetsPartition(0, timestamp=timestamp_ms))
            answer = await client.call(request, ListOffsetsResponse, 9)
            assert [found.offset for found in answer.topics[0].partitions] == [offset]

    play(tmp_path, scenario)


def list_offsets(*wanted: ListOffsetsPartition) -> ListOffsetsRequest:
    return ListOffsetsRequest(topics=[ListOffsetsTopic("t", [partition]) for partition in wanted])


def test_partitions_named_twice_are_answered_once(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t", 2)
        first, second = batch(b"a", timestamp_ms=NOW_MS), batch(b"b", b"c", timestamp_ms=NOW_MS)
        data = [TopicProduceData("t", partition_data=[PartitionProduceData(0, records)]) for records in (first, second)]
        produced = await client.call(ProduceRequest(None, -1, 1000, data), ProduceResponse, 9)
        assert [[(p.index, p.base_offset) for p in t.partition_responses] for t in produced.responses] == [[(0, 0)]]
        partition = inside.broker.partitions.leader("t", 0)
        assert partition.log.log_end_offset == 2, "only the last one was appended"

        asked = list_offsets(*(ListOffsetsPartition(index, timestamp=-1) for index in (0, 1, 0)))
        (listed,) = (await client.call(asked, ListOffsetsResponse, 9)).topics
        assert [(p.partition_index, ErrorCode(p.error_code), p.offset) for p in listed.partitions] == [
            (0, ErrorCode.INVALID_REQUEST, -1),
            (1, ErrorCode.NONE, 0),
        ]

        wanted = [DeleteRecordsTopic("t", [DeleteRecordsPartition(0, offset)]) for offset in (2, 1)]
        (deleted,) = (await client.call(DeleteRecordsRequest(wanted, 1000), DeleteRecordsResponse, 2)).topics
        assert [(p.partition_index, p.low_watermark) for p in deleted.partitions] == [(0, 1)]
        assert partition.log.log_start_offset == 1

    play(tmp_path, scenario)


def test_records_are_deleted_below_an_offset(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        await inside.create("compacted", cleanup_policy="compact")
        for _ in range(3):
            await produce(client, stamped(b"x"))

        async def delete(offset: int, topic: str = "t") -> tuple[int, ErrorCode]:
            wanted = [DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, offset)])]
            answer = await client.call(DeleteRecordsRequest(wanted, 1000), DeleteRecordsResponse, 2)
            result = answer.topics[0].partitions[0]
            return result.low_watermark, ErrorCode(result.error_code)

        assert await delete(4) == (-1, ErrorCode.OFFSET_OUT_OF_RANGE)
        assert await delete(2) == (2, ErrorCode.NONE)
        assert await delete(1) == (2, ErrorCode.NONE)
        assert await delete(-1) == (3, ErrorCode.NONE)
        assert await delete(0, "compacted") == (-1, ErrorCode.POLICY_VIOLATION)
        assert ErrorCode((await fetch(client, fetch_request(0))).error_code) == ErrorCode.OFFSET_OUT_OF_RANGE

    play(tmp_path, scenario)


def test_clients_of_every_version_are_told_of_another_leader(tmp_path: Path) -> None:
    """Only newer versions can name the leader; older ones once got no answer at all."""

    async def scenario(inside: InProcess, client: Client) -> None:
        topic_id = await inside.create("t")
        nobody = PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=-1)
        assert inside.server.broker.controller is not None
        await inside.server.broker.controller.submit(lambda metadata, now_ms: Decision([nobody], None))
        for version in range(3, 13):
            refused = await produce(client, stamped(b"a"), version=version)
            assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert refused.current_leader.leader_epoch == (1 if version >= 10 else -1)
        for version in range(4, 13):
            data = await fetch(client, fetch_request(0), version=version)
            assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER or version >= 11
            assert data.current_leader.leader_epoch in (-1, 1)

    play(tmp_path, scenario)
