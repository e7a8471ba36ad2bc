"""Replicas move between the log directories of a broker while they are written to (KIP-113)."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from kavka_broker.core.quota.rate import SampleWindow
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kavka_broker.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from kavka_broker.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kavka_broker.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse
from kavka_broker.protocol.records.record import build_batch, read_records
from kavka_broker.replica.hosting import moves
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.leading.throttles import UNLIMITED, Throttle
from kavka_broker.storage import partition_metadata
from kavka_broker.storage.disk import RealDisk
from kavka_broker.storage.log import Log
from tests.support.in_process import Client, InProcess, batch, running
from tests.support.waiting import until
from tests.unit.storage.support import free

RECORDS = 40
PRODUCER = 7
#: Records that are written while a replica moves. On a slow disk more would come during each sync than is synced at
#: once, and the move would go on for as long as they do.
MEANWHILE_MAX = 2_000
TIMEOUT_SECONDS = 60


def two(directory: Path) -> dict[str, str]:
    return {"log.dirs": f"{directory / 'a'},{directory / 'b'}", "metadata.log.dir": str(directory / "a")}


def write(inside: InProcess, value: bytes) -> None:
    inside.broker.partitions.leader("t", 0).append(memoryview(bytearray(batch(value, timestamp_ms=-1))))


def write_sequences(inside: InProcess, *sequences: int) -> None:
    """Write a batch of an idempotent producer for each."""
    for sequence in sequences:
        records = build_batch(
            [(None, b"v")], timestamp_ms=-1, producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence
        )
        inside.broker.partitions.leader("t", 0).append(memoryview(records))


def values_of(partition: Partition) -> list[bytes]:
    log, found, offset = partition.log, list[bytes](), partition.log.log_start_offset
    while offset < log.log_end_offset:
        for part in log.read(offset, 1 << 20).parts:
            records = read_records(part[: 12 + int.from_bytes(part[8:12], "big")])
            found += [bytes(record.value or b"") for record in records]
            offset = records[-1].offset + 1
            break
    return found


def home_of(inside: InProcess) -> str:
    directory = inside.broker.replicas.reports.directory_of(inside.broker.partitions.leader("t", 0))
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
            partition = inside.broker.partitions.leader("t", 0)
            for number in range(RECORDS):
                write(inside, b"%d" % number)
            before = home_of(inside)
            after = next(path for path in inside.server.config.log_dirs if path != before)
            assert await alter(client, after) == ErrorCode.NONE
            seen = RECORDS
            while home_of(inside) != after and seen < RECORDS + MEANWHILE_MAX:
                write(inside, b"%d" % seen)
                seen += 1
                await asyncio.sleep(0)
            await arrived(inside, Path(after))
            write(inside, b"%d" % seen)
            assert values_of(partition) == [b"%d" % number for number in range(seen + 1)]
            assert (await places(client))[after] == [("t", False)]
            assert inside.broker.replicas.moves.get("t", 0) is None
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await until_known(inside)

        async with running(tmp_path / "a", two(tmp_path)) as inside:
            assert home_of(inside) == after
            assert len(values_of(inside.broker.partitions.leader("t", 0))) == seen + 1

    asyncio.run(scenario())


def test_a_move_follows_a_log_that_is_cut_and_ends_when_it_is_called_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            client = await inside.connect()
            await inside.create("t")
            partition = inside.broker.partitions.leader("t", 0)
            for number in range(RECORDS):
                write(inside, b"%d" % number)
            before = home_of(inside)
            after = next(path for path in inside.server.config.log_dirs if path != before)
            directory = next(one for one in inside.broker.replicas.log_directories if one.path == after)
            await until_known(inside)
            # Called back in the turn in which it begins: on a slow machine a later one may find it over.
            inside.broker.replicas.moves.begin(partition, directory)
            assert inside.broker.replicas.moves.get("t", 0) is not None
            inside.broker.replicas.moves.begin(
                partition, next(one for one in inside.broker.replicas.log_directories if one.path != after)
            )
            assert inside.broker.replicas.moves.get("t", 0) is None
            inside.broker.replicas.moves.begin(partition, directory)
            partition.log.truncate_to(5)
            partition.high_watermark = 5  # or the next change of the partition would find more committed than there is
            assert ("t", True) in (await places(client))[after] or home_of(inside) == after
            await until(lambda: inside.broker.replicas.moves.get("t", 0) is None)
            assert values_of(partition) == [b"%d" % number for number in range(5)]

    asyncio.run(scenario())


def test_a_move_takes_no_producers_over_from_before_a_cut(tmp_path: Path) -> None:
    """Until a cut is sealed, the log's producers are those of before it; on a full disk it is never sealed."""

    async def scenario() -> None:
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            client = await inside.connect()
            await inside.create("t")
            partition = inside.broker.partitions.leader("t", 0)
            write_sequences(inside, 0, 1, 2)
            await until_known(inside)
            former = partition.log
            former.truncation.plan_cut(2)
            former.durability.sync_records()
            former.truncation.carry_out()
            partition.high_watermark = 2
            assert former.durability.is_being_cut
            after = next(path for path in inside.server.config.log_dirs if path != home_of(inside))
            assert await alter(client, after) == ErrorCode.NONE
            await arrived(inside, Path(after))
            known = partition.log.producers.get(PRODUCER)
            assert known is not None
            assert known.batches[-1].last_offset == 1

    asyncio.run(scenario())


def test_a_log_that_is_cut_while_its_copy_is_synced_is_compared_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy has what the log has lost: in its place it would bring that back."""
    begun, may_go_on = threading.Event(), threading.Event()
    secure = moves.Moves._secure

    def slow(self: moves.Moves, future: Log) -> None:
        begun.set()
        assert may_go_on.wait(TIMEOUT_SECONDS)
        secure(self, future)

    monkeypatch.setattr(moves.Moves, "_secure", slow)

    async def scenario() -> None:
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            client = await inside.connect()
            await inside.create("t")
            partition = inside.broker.partitions.leader("t", 0)
            for number in range(RECORDS):
                write(inside, b"%d" % number)
            await until_known(inside)
            after = next(path for path in inside.server.config.log_dirs if path != home_of(inside))
            assert await alter(client, after) == ErrorCode.NONE
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await until(begun.is_set)
            partition.log.truncate_to(5)
            partition.high_watermark = 5  # or the next change of the partition would find more committed than there is
            may_go_on.set()
            await arrived(inside, Path(after))
            assert values_of(partition) == [b"%d" % number for number in range(5)]

    asyncio.run(scenario())


@pytest.mark.parametrize("is_emptied", [False, True])
def test_a_log_that_begins_within_a_batch_moves(tmp_path: Path, is_emptied: bool) -> None:
    """DeleteRecords may put its start there."""

    async def scenario() -> None:
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            await inside.create("t")
            partition = inside.broker.partitions.leader("t", 0)
            write(inside, b"0")
            partition.append(memoryview(build_batch([(None, b"1"), (None, b"2"), (None, b"3")], timestamp_ms=0)))
            partition.log.advance_start(4 if is_emptied else 2)
            before = home_of(inside)
            there = next(one for one in inside.broker.replicas.log_directories if one.path != before)
            inside.broker.replicas.moves.begin(partition, there)
            await arrived(inside, Path(there.path))
            assert (partition.log.log_start_offset, partition.log.log_end_offset) == (4 if is_emptied else 2, 4)
            write(inside, b"4")
            assert values_of(partition)[-1] == b"4"

    asyncio.run(scenario())


def test_who_waits_for_a_sync_of_the_log_is_told_when_its_copy_takes_its_place(tmp_path: Path) -> None:
    """Its disk may be full, which is why it moves: nobody tries to sync, or to cut, the former log any more."""

    async def scenario() -> None:
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            await inside.create("t")
            partition, moves_ = inside.broker.partitions.leader("t", 0), inside.broker.replicas.moves
            await until_known(inside)
            write(inside, b"0")
            partition.log.truncation.plan_cut(0)
            waiting = partition.when_synced(0)
            assert waiting is not None
            before = home_of(inside)
            moves_.begin(partition, next(one for one in inside.broker.replicas.log_directories if one.path != before))
            async with asyncio.timeout(60):
                await waiting
            assert home_of(inside) != before

    asyncio.run(scenario())


def test_a_replica_that_cannot_be_moved_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            client = await inside.connect()
            await inside.create("t")
            assert await alter(client, "/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
            assert await alter(client, str(tmp_path / "b"), "u") == ErrorCode.REPLICA_NOT_AVAILABLE
            assert await alter(client, home_of(inside)) == ErrorCode.NONE
            assert inside.broker.replicas.moves.get("t", 0) is None

    asyncio.run(scenario())


def futures(directory: Path) -> list[str]:
    return [name for name in os.listdir(directory) if name.endswith("-future")]


async def half_moved(directory: Path) -> str:
    """A broker that stops with a copy of what it has written; the name of its directory."""
    held_back = two(directory) | {"replica.alter.log.dirs.io.max.bytes.per.second": "1"}
    async with running(directory / "a", held_back) as inside:
        await inside.create("t")
        for number in range(RECORDS):
            write(inside, b"%d" % number)
        client = await inside.connect()
        assert await alter(client, str(directory / "b")) == ErrorCode.NONE
        move = inside.broker.replicas.moves.get("t", 0)
        assert move is not None
        await until(lambda: not move.lag)
    (name,) = futures(directory / "b")
    return name


async def arrived(inside: InProcess, path: Path) -> None:
    await until(lambda: home_of(inside) == str(path))


async def until_known(inside: InProcess) -> None:
    """Until the controller has noted where the replica is: that changes the partition, whose leader has no cut logs."""
    partition = inside.broker.partitions.leader("t", 0)
    home = inside.broker.replicas.reports.directory_of(partition)
    assert home is not None
    await until(lambda: partition.state.directory_of(1) == home.directory_id)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_move_goes_on_after_a_restart(tmp_path: Path, is_clean: bool) -> None:
    async def scenario() -> None:
        copy = await half_moved(tmp_path)
        if not is_clean:
            for directory in ("a", "b"):
                (tmp_path / directory / ".kafka_cleanshutdown").unlink()
        segment = tmp_path / "b" / copy / "00000000000000000000.log"
        was = segment.stat().st_ino
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            await arrived(inside, tmp_path / "b")
            assert values_of(inside.broker.partitions.leader("t", 0)) == [b"%d" % number for number in range(RECORDS)]
        # It is the very copy of before.
        assert (tmp_path / "b" / "t-0" / segment.name).stat().st_ino == was
        assert not futures(tmp_path / "b")

    asyncio.run(scenario())


def test_what_its_log_has_lost_meanwhile_the_copy_loses_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        await half_moved(tmp_path)
        segment = tmp_path / "a" / "t-0" / "00000000000000000000.log"
        os.truncate(segment, segment.stat().st_size // 2)
        for directory in ("a", "b"):
            (tmp_path / directory / ".kafka_cleanshutdown").unlink()
            (tmp_path / directory / "recovery-point-offset-checkpoint").unlink()
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            left = values_of(inside.broker.partitions.leader("t", 0))
            assert 0 < len(left) < RECORDS
            write(inside, b"new")
            await arrived(inside, tmp_path / "b")
            assert values_of(inside.broker.partitions.leader("t", 0)) == [*left, b"new"]

    asyncio.run(scenario())


def test_a_copy_that_lost_its_id_is_begun_anew(tmp_path: Path) -> None:
    async def scenario() -> None:
        name = await half_moved(tmp_path)
        (tmp_path / "b" / name / "partition.metadata").unlink()
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            await arrived(inside, tmp_path / "b")
            assert len(values_of(inside.broker.partitions.leader("t", 0))) == RECORDS
            free(inside.broker.replicas.logs)
        assert not futures(tmp_path / "b")

    asyncio.run(scenario())


def test_a_copy_of_what_is_not_here_any_more_is_kept_under_another_name(tmp_path: Path) -> None:
    async def scenario() -> None:
        name = await half_moved(tmp_path)
        partition_metadata.write(RealDisk(), str(tmp_path / "b" / name), os.urandom(16))
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            assert inside.broker.replicas.moves.get("t", 0) is None
        assert not futures(tmp_path / "b")
        assert [name for name in os.listdir(tmp_path / "b") if name.endswith("-stray")]

    asyncio.run(scenario())


def test_a_move_that_is_called_back_before_it_goes_on_leaves_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        await half_moved(tmp_path)
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            replicas = inside.broker.replicas
            move = replicas.moves.get("t", 0)
            if move is not None:  # else it was quicker
                replicas.moves.begin(move.partition, replicas.log_directories[0])
                assert replicas.moves.get("t", 0) is None
                assert home_of(inside) == str(tmp_path / "a")
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            free(inside.broker.replicas.logs)
        assert not futures(tmp_path / "b")

    asyncio.run(scenario())


def test_a_move_into_a_directory_that_fails_ends_and_the_log_is_where_it_was(tmp_path: Path) -> None:
    async def scenario() -> None:
        held_back = two(tmp_path) | {"replica.alter.log.dirs.io.max.bytes.per.second": "1000"}
        async with running(tmp_path / "a", held_back) as inside:
            await inside.create("t")
            write(inside, b"x")
            replicas = inside.broker.replicas
            partition, target = replicas.partitions.leader("t", 0), replicas.log_directories[1]
            replicas.moves.begin(partition, target)
            replicas.logs.fail_directory(target)
            await until(lambda: replicas.moves.get("t", 0) is None)
            assert home_of(inside) == str(tmp_path / "a")
            write(inside, b"y")
            assert values_of(partition) == [b"x", b"y"]

    asyncio.run(scenario())


def test_a_move_takes_a_log_that_begins_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            await inside.create("t")
            partition = inside.broker.partitions.leader("t", 0)
            partition.append(memoryview(bytearray(batch(b"a", b"b", b"c", timestamp_ms=-1))))
            partition.trim(1)
            inside.broker.replicas.moves.begin(partition, inside.broker.replicas.log_directories[1])
            await arrived(inside, tmp_path / "b")
            assert (partition.log.log_start_offset, partition.log.log_end_offset) == (1, 3)

    asyncio.run(scenario())


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_move_whose_rate_is_next_to_nothing_goes_on_when_it_is_altered(tmp_path: Path, rate: float) -> None:
    rates, asked = [rate], list[float]()
    crashes: list[BaseException] = []

    async def scenario() -> None:
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            await inside.create("t")
            for number in range(RECORDS):
                write(inside, b"%d" % number)
            mover = inside.broker.replicas.moves
            mover.pause_seconds = 0.001

            def bytes_per_second() -> float:
                asked.append(rates[0])
                return rates[0]

            clock = inside.broker.clock
            mover.throttle, mover.crash = Throttle(SampleWindow(), bytes_per_second, clock), crashes.append
            client = await inside.connect()
            home = home_of(inside)
            away = str(tmp_path / ("b" if home.endswith("a") else "a"))
            assert await alter(client, away) is ErrorCode.NONE
            await until(lambda: len(asked) >= 5)
            assert home_of(inside) == home
            rates[0] = UNLIMITED
            await arrived(inside, Path(away))
            assert values_of(inside.broker.partitions.leader("t", 0)) == [b"%d" % number for number in range(RECORDS)]

    asyncio.run(scenario())
    assert not crashes


def test_all_moves_of_a_broker_have_one_rate(tmp_path: Path) -> None:
    """It is measured over a window, as Apache Kafka does: what was moved before counts for the next move."""

    async def scenario() -> None:
        async with running(tmp_path / "a", two(tmp_path)) as inside:
            await inside.create("t")
            for number in range(RECORDS):
                write(inside, b"%d" % number)
            mover, looked, rates = inside.broker.replicas.moves, list[float](), [1000.0]
            mover.pause_seconds = 0.001

            def bytes_per_second() -> float:
                looked.append(rates[0])
                return rates[0]

            mover.throttle = Throttle(SampleWindow(), bytes_per_second, inside.broker.clock)
            mover.throttle.record(1_000_000)  # by another move
            away = inside.broker.replicas.log_directories[1]
            mover.begin(inside.broker.partitions.leader("t", 0), away)
            await until(lambda: len(looked) >= 20)
            assert mover.get("t", 0) is not None
            rates[0] = UNLIMITED
            await arrived(inside, Path(away.path))
            assert mover.throttle.bytes_total > 1_000_000

    asyncio.run(scenario())
