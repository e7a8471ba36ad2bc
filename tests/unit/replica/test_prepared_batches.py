"""Batches that are compressed again, or looked into: a thread does it, and no request overtakes them."""

import asyncio
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.batch import HEADER_BYTES, set_crc
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.record import build_batch, read_records
from kavka_broker.replica.writing import batch_preparation as preparation
from kavka_broker.replica.writing.batch_preparation import BATCHES_AHEAD
from kavka_broker.runtime.environment import REAL
from kavka_broker.storage.batch_check import Prepared, prepare_in_thread
from kavka_broker.storage.disk import RealDisk, RealFile
from kavka_broker.storage.preallocation import MAKES_ROOM
from tests.support.in_process import InProcess, running
from tests.support.waiting import until

VERSION = 9
VALUE = bytes(64 * 1024)
TIMEOUT_SECONDS = 60


def request(*batches: tuple[str, bytes], acks: int = -1) -> ProduceRequest:
    data = [TopicProduceData(topic, partition_data=[PartitionProduceData(0, batch)]) for topic, batch in batches]
    return ProduceRequest(None, acks, 10_000, data)


def batch(sequence: int = -1, key: bytes | None = b"k", value: bytes = VALUE) -> bytes:
    named: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "base_sequence": sequence}
    producer = {} if sequence < 0 else named
    return bytes(build_batch([(key, value)], timestamp_ms=-1, **producer))


def answers(response: ProduceResponse) -> dict[str, tuple[ErrorCode, int]]:
    return {
        topic.name: (ErrorCode(partition.error_code), partition.base_offset)
        for topic in response.responses
        for partition in topic.partition_responses
    }


class Threads:
    """The threads of the broker: notes which ran, and holds them until they may work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_work = threading.Event()
        self.begun = 0
        self.idents = set[int]()
        monkeypatch.setattr(preparation, "prepare_in_thread", self.work)

    def work(self, batches: memoryview, config: LogConfig, now_ms: int) -> Prepared:
        self.begun += 1
        self.idents.add(threading.get_ident())
        assert self.may_work.wait(TIMEOUT_SECONDS)
        return prepare_in_thread(batches, config, now_ms)

    async def until_begun(self, count: int) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await until(lambda: self.begun >= count)


class StrainedDisk(RealDisk):
    """A disk that says that it is strained, as long as `is_felt`; `lasts` says whether it knows that it will be."""

    def __init__(self, *, lasts: bool, is_felt: bool = True) -> None:
        super().__init__()
        self.is_felt, self.lasts, self.looks = is_felt, lasts, 0

    @property
    def is_strained(self) -> bool:
        self.looks += 1
        return self.is_felt

    @property
    def strain_lasts(self) -> bool:
        return self.lasts


class RoomyFile(RealFile):
    """A file for which no room is made before it may be; `made` are the sizes."""

    __slots__ = ("disk",)

    def __init__(self, path: str, disk: "RoomyDisk") -> None:
        super().__init__(path)
        self.disk = disk

    def make_room(self, size: int) -> None:
        self.disk.begin(size)
        super().make_room(size)
        self.disk.made.append(size)


class RoomyDisk(StrainedDisk):
    """A strained disk whose files wait for the test before room is made in them, in threads alone."""

    def __init__(self) -> None:
        super().__init__(lasts=True)
        self.made, self.may_make, self.of_loop = list[int](), threading.Event(), threading.get_ident()

    def open(self, path: str) -> RealFile:
        return RoomyFile(path, self)

    def begin(self, _: int) -> None:
        assert threading.get_ident() != self.of_loop
        assert self.may_make.wait(TIMEOUT_SECONDS)


def log_end(inside: InProcess, topic: str) -> int:
    return inside.broker.partitions.leader(topic, 0).log.log_end_offset


def is_led(inside: InProcess, topic: str) -> bool:
    partition = inside.broker.partitions.get(topic, 0)
    return partition is not None and partition.is_leader


def test_a_thread_recompresses_batches_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads, of_loop = Threads(monkeypatch), threading.get_ident()

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("packed", compression_type="zstd")
            await inside.create("plain")
            client, other = await inside.connect(), await inside.connect()
            await client.call(request(("plain", batch()), ("packed", batch(value=b"small"))), ProduceResponse, VERSION)
            for sequence in range(3):
                client.send(request(("packed", batch(sequence)), ("plain", batch())), VERSION)
            await threads.until_begun(1)
            assert (log_end(inside, "packed"), log_end(inside, "plain")) == (1, 2), "the next one has not begun"
            told = await other.call(request(("plain", batch())), ProduceResponse, VERSION)
            assert answers(told) == {"plain": (ErrorCode.NONE, 2)}, "nobody else waits"
            threads.may_work.set()
            for offset in range(3):
                told = await client.receive(ProduceResponse, VERSION)
                assert answers(told)["packed"] == (ErrorCode.NONE, offset + 1)
            log = inside.broker.partitions.leader("packed", 0).log
            stored = log.read(1, 1 << 20).parts[0]
            assert (Compression(stored[22] & 7), read_records(stored)[0].value) == (Compression.ZSTD, VALUE)

    asyncio.run(scenario())
    assert threads.begun == 3
    assert of_loop not in threads.idents


def test_large_batches_wait_in_order_until_the_disk_has_caught_up(tmp_path: Path) -> None:
    strain = StrainedDisk(lasts=False)

    async def scenario() -> None:
        async with running(tmp_path, world=replace(REAL, disk=strain)) as inside:
            await inside.create("plain")
            client, other = await inside.connect(), await inside.connect()
            for _ in range(3):
                client.send(request(("plain", batch())), VERSION)
            for offset in range(2):
                told = await other.call(request(("plain", batch(value=b"small"))), ProduceResponse, VERSION)
                assert answers(told) == {"plain": (ErrorCode.NONE, offset)}, "what is small waits for nobody"
            looks = strain.looks
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await until(lambda: strain.looks >= looks + 3)
            assert log_end(inside, "plain") == 2
            strain.is_felt = False
            for offset in (2, 3, 4):
                assert answers(await client.receive(ProduceResponse, VERSION)) == {"plain": (ErrorCode.NONE, offset)}

    asyncio.run(scenario())


def test_room_is_made_ahead_of_large_batches_while_strain_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, disk = Threads(monkeypatch), RoomyDisk()
    made = disk.made

    async def scenario() -> None:
        async with running(tmp_path, world=replace(REAL, disk=disk)) as inside:
            await inside.create("plain")
            client, other = await inside.connect(), await inside.connect()
            await other.call(request(("plain", batch(value=b"opens the file"))), ProduceResponse, VERSION)
            for _ in range(3):
                client.send(request(("plain", batch())), VERSION)
            told = await other.call(request(("plain", batch(value=b"small"))), ProduceResponse, VERSION)
            assert answers(told) == {"plain": (ErrorCode.NONE, 1)}, "who waits for no room waits for nobody"
            disk.may_make.set()
            for offset in (2, 3, 4):
                assert answers(await client.receive(ProduceResponse, VERSION)) == {"plain": (ErrorCode.NONE, offset)}
            log = inside.broker.partitions.leader("plain", 0).log
            assert read_records(log.read(2, 1 << 20).parts[0])[0].value == VALUE
            file = log.segments.active.file
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await until(lambda: len(made) > 1)
            assert file.room_bytes > 0 or not MAKES_ROOM
        assert os.stat(file.path).st_size == file.size, "what is left is given back"

    asyncio.run(scenario())
    assert made[0] == len(batch())
    assert BATCHES_AHEAD * len(batch()) in made
    assert threads.begun == 0, "for the sake of room no batch is prepared"
    assert len(made) <= 4 or not MAKES_ROOM


def test_bad_records_inside_a_batch_are_reported(tmp_path: Path) -> None:
    garbage = bytearray(batch())
    garbage[HEADER_BYTES:] = b"\xff" * (len(garbage) - HEADER_BYTES)
    set_crc(garbage)

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("packed", compression_type="zstd")
            await inside.create("compacted", cleanup_policy="compact")
            client = await inside.connect()
            wanted = request(("packed", bytes(garbage)), ("compacted", batch(key=None)))
            told = answers(await client.call(wanted, ProduceResponse, VERSION))
            assert told == dict.fromkeys(("packed", "compacted"), (ErrorCode.INVALID_RECORD, -1))
            client.send(request(("compacted", batch(key=None)), acks=0), VERSION)
            assert await client.is_closed()

    asyncio.run(scenario())


@pytest.mark.parametrize("acks", [0, 1])
def test_prepared_batches_with_other_acks(tmp_path: Path, acks: int) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("compacted", cleanup_policy="compact")
            client = await inside.connect()
            for _ in range(2):
                client.send(request(("compacted", batch()), acks=acks), VERSION)
            told = await client.call(request(("compacted", batch(value=b"last"))), ProduceResponse, VERSION)
            assert answers(told)["compacted"] == (ErrorCode.NONE, 0 if acks else 2)

    asyncio.run(scenario())


def test_a_config_change_during_preparation_applies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = Threads(monkeypatch)

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("packed", compression_type="zstd")
            client = await inside.connect()
            client.send(request(("packed", batch())), VERSION)
            await threads.until_begun(1)
            log = inside.broker.partitions.leader("packed", 0).log
            log.config = LogConfig(compression_type="lz4")
            threads.may_work.set()
            assert answers(await client.receive(ProduceResponse, VERSION))["packed"] == (ErrorCode.NONE, 0)
            assert log.read(0, 1 << 20).parts[0][22] & 7 == Compression.LZ4

    asyncio.run(scenario())
    assert threads.begun == 2


@pytest.mark.parametrize("what", ["a thread", "the disk"])
def test_a_batch_that_waited_is_not_written_to_another_topic_of_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Found by seed 259877062 of the simulation: a record of a deleted topic stood in its successor."""
    threads, disk = Threads(monkeypatch), StrainedDisk(lasts=False, is_felt=what == "the disk")
    configs: dict[str, Any] = {} if disk.is_felt else {"compression_type": "zstd"}

    async def scenario() -> None:
        async with running(tmp_path, world=replace(REAL, disk=disk)) as inside:
            former = await inside.create("again", **configs)
            client = await inside.connect()
            data = TopicProduceData("", former, [PartitionProduceData(0, batch())])
            client.send(ProduceRequest(None, -1, 10_000, [data]), 13)
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await until(lambda: bool(disk.looks if disk.is_felt else threads.begun))
            deleted = DeleteTopicsRequest([DeleteTopicState("again")], ["again"], 10_000)
            await (await inside.connect()).call(deleted, DeleteTopicsResponse, 6)
            assert await inside.create("again", **configs) != former
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await until(lambda: is_led(inside, "again"))
            disk.is_felt = False
            threads.may_work.set()
            told = (await client.receive(ProduceResponse, 13)).responses[0].partition_responses[0]
            assert told.error_code == ErrorCode.UNKNOWN_TOPIC_ID
            assert log_end(inside, "again") == 0

    asyncio.run(scenario())


def test_a_lost_clients_place_is_freed_when_its_thread_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = Threads(monkeypatch)

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("packed", compression_type="zstd")
            for count in range(preparation.AT_ONCE_MAX):
                client = await inside.connect()
                client.send(request(("packed", batch())), VERSION)
                await threads.until_begun(count + 1)
                client.close()
            third = await inside.connect()
            third.send(request(("packed", batch())), VERSION)
            for _ in range(20):
                await asyncio.sleep(0)
            assert threads.begun == preparation.AT_ONCE_MAX, "no more threads than there may be"
            threads.may_work.set()
            assert answers(await third.receive(ProduceResponse, VERSION))["packed"][0] == ErrorCode.NONE

    asyncio.run(scenario())
