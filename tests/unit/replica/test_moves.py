"""Replicas move between the log directories of a broker while they are written to (KIP-113)."""

import asyncio
import os
from pathlib import Path

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kavka_broker.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from kavka_broker.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kavka_broker.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse
from kavka_broker.protocol.records.record import read_records
from kavka_broker.replica.partition import Partition
from tests.support.in_process import Client, InProcess, batch, running

RECORDS = 40


def two(directory: Path) -> dict[str, str]:
    return {"log.dirs": f"{directory / 'a'},{directory / 'b'}", "metadata.log.dir": str(directory / "a")}


def write(inside: InProcess, value: bytes) -> None:
    inside.broker.replicas.leader("t", 0).append(memoryview(bytearray(batch(value, timestamp_ms=-1))))


def values_of(partition: Partition) -> list[bytes]:
    log, found, offset = partition.log, list[bytes](), 0
    while offset < log.log_end_offset:
        for part in log.read(offset, 1 << 20).parts:
            records = read_records(part[: 12 + int.from_bytes(part[8:12], "big")])
            found += [bytes(record.value or b"") for record in records]
            offset = records[-1].offset + 1
            break
    return found


async def home_of(inside: InProcess) -> str:
    directory = inside.broker.replicas.directory_of(inside.broker.replicas.leader("t", 0))
    assert directory is not None
    return directory.path


async def alter(client: Client, path: str, topic: str = "t") -> ErrorCode:
    request = AlterReplicaLogDirsRequest([AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(topic, [0])])])
    answer = await client.call(request, AlterReplicaLogDirsResponse, 2)
    return ErrorCode(answer.results[0].partitions[0].error_code)


async def places(client: Client) -> dict[str, list[tuple[str, bool]]]:
    answer = await client.call(DescribeLogDirsRequest(None), DescribeLogDirsResponse, 4)
    assert all(one.error_code == ErrorCode.NONE and one.total_bytes > 0 for one in answer.results)
    return {
        one.log_dir: [(topic.name, part.is_future_key) for topic in one.topics for part in topic.partitions]
        for one in answer.results
    }


def test_a_replica_moves_while_it_is_written_to(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            client = await inside.connect()
            await inside.create("t")
            partition = inside.broker.replicas.leader("t", 0)
            for number in range(RECORDS):
                write(inside, b"%d" % number)
            before = await home_of(inside)
            after = next(path for path in inside.server.config.log_dirs if path != before)
            assert await alter(client, after) == ErrorCode.NONE
            seen = RECORDS
            while await home_of(inside) != after:
                write(inside, b"%d" % seen)
                seen += 1
                await asyncio.sleep(0)
            write(inside, b"%d" % seen)
            assert values_of(partition) == [b"%d" % number for number in range(seen + 1)]
            assert (await places(client))[after] == [("t", False)]
            assert inside.broker.replicas.moves.get("t", 0) is None

        async with running(tmp_path / "a", two(tmp_path)) as inside:
            assert await home_of(inside) == after
            assert len(values_of(inside.broker.replicas.leader("t", 0))) == seen + 1

    asyncio.run(scenario())


def test_a_move_begins_anew_when_the_log_is_cut_and_ends_when_it_is_called_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            client = await inside.connect()
            await inside.create("t")
            partition = inside.broker.replicas.leader("t", 0)
            for number in range(RECORDS):
                write(inside, b"%d" % number)
            before = await home_of(inside)
            after = next(path for path in inside.server.config.log_dirs if path != before)
            directory = next(one for one in inside.broker.replicas.log_directories if one.path == after)
            inside.broker.replicas.moves.begin(partition, directory)
            assert ("t", True) in (await places(client))[after] or await home_of(inside) == after
            inside.broker.replicas.moves.begin(
                partition, next(one for one in inside.broker.replicas.log_directories if one.path != after)
            )
            assert inside.broker.replicas.moves.get("t", 0) is None
            inside.broker.replicas.moves.begin(partition, directory)
            partition.log.truncate_to(5)
            while inside.broker.replicas.moves.get("t", 0) is not None:
                await asyncio.sleep(0.001)
            assert values_of(partition) == [b"%d" % number for number in range(5)]

    asyncio.run(scenario())


def test_what_cannot_be_moved(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            client = await inside.connect()
            await inside.create("t")
            assert await alter(client, "/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
            assert await alter(client, str(tmp_path / "b"), "u") == ErrorCode.REPLICA_NOT_AVAILABLE
            assert await alter(client, await home_of(inside)) == ErrorCode.NONE
            assert inside.broker.replicas.moves.get("t", 0) is None

    asyncio.run(scenario())


def test_what_a_stop_left_half_moved_is_removed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            await inside.create("t")
            write(inside, b"x")
        (tmp_path / "b" / f"t-0.{os.urandom(16).hex()}-future").mkdir()
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            assert values_of(inside.broker.replicas.leader("t", 0)) == [b"x"]
            inside.broker.replicas._logs.remove_deleted()
        assert not [name for name in os.listdir(tmp_path / "b") if name.endswith("-future")]

    asyncio.run(scenario())
