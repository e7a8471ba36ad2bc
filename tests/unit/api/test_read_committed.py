"""What a reader of committed records gets: up to the last stable offset, and which transactions were aborted."""

import asyncio
from pathlib import Path

from kavka_broker.api.a01_fetch import fetch
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.fetch_response import FetchResponse, PartitionData
from kavka_broker.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kavka_broker.protocol.messages.list_offsets_response import ListOffsetsResponse
from kavka_broker.protocol.records.control import ControlType
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.request.broker import Client as Sender
from tests.support.in_process import Client, InProcess, running
from tests.unit.api.transactions import NOW_MS, end, play, write

NEVER_MS = 3_600_000
VERSION = 12
COMMITTED_ONLY = 1
ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT


def request(offset: int, isolation_level: int = COMMITTED_ONLY, wait_ms: int = 0, min_bytes: int = 1) -> FetchRequest:
    wanted = [FetchTopic("t", partitions=[FetchPartition(0, fetch_offset=offset, partition_max_bytes=10_000)])]
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=min_bytes, isolation_level=isolation_level, topics=wanted)


async def read(client: Client, offset: int, isolation_level: int = COMMITTED_ONLY) -> PartitionData:
    answer = await client.call(request(offset, isolation_level), FetchResponse, VERSION)
    return answer.responses[0].partitions[0]


async def end_offset(client: Client, isolation_level: int) -> int:
    wanted = [ListOffsetsTopic("t", [ListOffsetsPartition(0, timestamp=-1)])]
    asked = ListOffsetsRequest(-1, isolation_level=isolation_level, topics=wanted)
    return (await client.call(asked, ListOffsetsResponse, 6)).topics[0].partitions[0].offset


def test_an_open_transaction_holds_readers_back(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, partition: Partition) -> None:
        write(partition, 1, transactional=False)
        write(partition, 2)
        write(partition, 1, 2, transactional=False)
        data = await read(client, 0)
        assert (data.high_watermark, data.last_stable_offset) == (6, 2)
        assert await end_offset(client, COMMITTED_ONLY) == 2
        assert await end_offset(client, 0) == 6
        assert len((await read(client, 0, 0)).records) > len(data.records) > 0
        assert not (await read(client, 2)).records
        end(partition, 2, COMMIT)
        data = await read(client, 2)
        assert (data.last_stable_offset, data.aborted_transactions) == (7, [])
        assert data.records

    play(tmp_path, scenario)


def test_aborted_transactions_are_named_in_the_range_that_is_read(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, partition: Partition) -> None:
        for producer, kind in ((1, ABORT), (2, COMMIT), (3, ABORT)):
            write(partition, producer)
            end(partition, producer, kind)
        named = (await read(client, 0)).aborted_transactions or []
        assert [(transaction.producer_id, transaction.first_offset) for transaction in named] == [(1, 0), (3, 6)]
        named = (await read(client, 3)).aborted_transactions or []
        assert [(transaction.producer_id, transaction.first_offset) for transaction in named] == [(3, 6)]
        assert (await read(client, 0, 0)).aborted_transactions is None
        assert (await read(client, 9)).aborted_transactions == []
        for isolation_level in (0, COMMITTED_ONLY):
            data = await read(client, 99, isolation_level)
            assert (data.error_code, data.aborted_transactions) == (ErrorCode.OFFSET_OUT_OF_RANGE, None)

    play(tmp_path, scenario)


def test_a_reader_waits_for_the_marker_not_for_records_of_the_open_transaction(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, partition: Partition) -> None:
        write(partition, 1)
        waiting = fetch(
            request(0, wait_ms=NEVER_MS), inside.broker, Sender(VERSION, "test", 1, "127.0.0.1", "PLAINTEXT")
        )
        assert not isinstance(waiting, FetchResponse)
        task = asyncio.ensure_future(waiting)
        write(partition, 1, 2)
        (watcher,) = partition.waiters.stable_fetches
        assert not watcher.future.done()
        end(partition, 1, ABORT)
        assert watcher.future.done()
        async with asyncio.timeout(60):
            data = (await task).responses[0].partitions[0]
        assert data.last_stable_offset == 5
        assert [transaction.producer_id for transaction in data.aborted_transactions or ()] == [1]

    play(tmp_path, scenario)


def test_a_reader_without_transactions_waits_for_min_bytes(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, partition: Partition) -> None:
        size = partition.log.size_bytes
        write(partition, 1, transactional=False)
        size = partition.log.size_bytes - size
        sender = Sender(VERSION, "test", 1, "127.0.0.1", "PLAINTEXT")
        waiting = fetch(request(0, wait_ms=NEVER_MS, min_bytes=3 * size), inside.broker, sender)
        assert not isinstance(waiting, FetchResponse)
        task = asyncio.ensure_future(waiting)
        (watcher,) = partition.waiters.stable_fetches
        write(partition, 1, 2, transactional=False)
        assert not watcher.future.done()
        write(partition, 1, 4, transactional=False)
        assert watcher.future.done()
        await task

    play(tmp_path, scenario)


def test_a_lost_transaction_index_is_rebuilt_before_the_first_read(tmp_path: Path) -> None:
    async def first(inside: InProcess, client: Client, partition: Partition) -> None:
        write(partition, 1)
        end(partition, 1, ABORT)

    play(tmp_path, first)
    (index,) = (tmp_path / "t-0").glob("*.txnindex")
    before = index.read_bytes()
    index.unlink()

    async def again() -> None:
        async with running(tmp_path) as inside:
            client = await inside.connect()
            answer = await client.call(request(0, wait_ms=20_000), FetchResponse, VERSION)
            data = answer.responses[0].partitions[0]
            assert data.records
            assert [transaction.first_offset for transaction in data.aborted_transactions or ()] == [0]

    asyncio.run(again())
    assert index.read_bytes() == before


def spoil(path: Path) -> None:
    path.write_bytes(b"\xff" * path.stat().st_size)


def test_a_damaged_log_answers_an_error_instead_of_aborted_records(tmp_path: Path) -> None:
    async def first(inside: InProcess, client: Client, partition: Partition) -> None:
        write(partition, 1)
        partition.log.roll(NOW_MS)
        write(partition, 1, 2)
        partition.log.roll(NOW_MS)
        end(partition, 1, ABORT)

    play(tmp_path, first)

    async def again() -> None:
        async with running(tmp_path) as inside:
            client, partition = await inside.connect(), inside.broker.partitions.leader("t", 0)
            spoil(Path(partition.log.segments[1].file.path))
            async with asyncio.timeout(60):
                while not (data := await read(client, 0)).error_code:
                    assert not data.records
            assert data.error_code == ErrorCode.CORRUPT_MESSAGE

    asyncio.run(again())


def test_a_reader_of_a_log_without_transactions_is_not_held_up(tmp_path: Path) -> None:
    async def first(inside: InProcess, client: Client, partition: Partition) -> None:
        write(partition, 1, transactional=False)

    play(tmp_path, first)

    async def again() -> None:
        async with running(tmp_path) as inside:
            assert (await read(await inside.connect(), 0)).records

    asyncio.run(again())
