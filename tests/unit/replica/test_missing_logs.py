"""Replicas whose directory is not there: offline, and never a new and empty leader."""

import asyncio
import errno
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.image.brokers import (
    LOST_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    UNMADE_DIRECTORY,
    UNTOLD_DIRECTORY,
)
from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.register_broker_record import RegisterBrokerRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.protocol.uuids import to_text
from kavka_broker.replica.hosting import replica_opener
from kavka_broker.replica.hosting.missing_logs import MissingLogs
from kavka_broker.runtime.environment import REAL
from kavka_broker.storage.disk import RealDisk, RealFile
from tests.support.cluster import uuid
from tests.support.in_process import InProcess, batch, code_of, running
from tests.support.waiting import until

PLACE = (uuid(1), 0)
HERE, AWAY = uuid(10), uuid(11)


def refused(home: bytes, isr: tuple[int, ...], elr: tuple[int, ...] = (), *, noted: bool = False) -> bool:
    missing = MissingLogs(1)
    if noted:
        missing.note_unmade(PLACE)
    state = PartitionState((1, 2), isr, isr[-1] if isr else -1, elr=elr, directories=(home, uuid(20)))
    try:
        is_to_be_told = missing.check(PLACE, state, [HERE])
        assert is_to_be_told is (home == AWAY and not noted), "what may be an eligible leader's is told as lost first"
    except BrokerError as error:
        return error.code is ErrorCode.KAFKA_STORAGE_ERROR
    return False


@pytest.mark.parametrize("home", [UNTOLD_DIRECTORY, UNASSIGNED_DIRECTORY, UNMADE_DIRECTORY, HERE])
def test_a_log_that_was_never_made_is_made(home: bytes) -> None:
    assert not refused(home, (1,))


@pytest.mark.parametrize("home", [AWAY, LOST_DIRECTORY])
@pytest.mark.parametrize(
    ("isr", "elr", "is_refused"),
    [
        ((2,), (), False),
        ((2,), (1,), False),
        ((), (2,), True),
        ((1,), (), True),
        ((1, 2), (), True),
        ((), (1,), True),
        ((), (1, 2), True),
        ((), (), True),
    ],
)
def test_a_log_elsewhere_is_begun_anew_where_others_have_its_records(
    home: bytes, isr: tuple[int, ...], elr: tuple[int, ...], is_refused: bool
) -> None:
    assert refused(home, isr, elr) is is_refused
    assert not refused(home, isr, elr, noted=True), "this process has found that there is none"


@pytest.mark.parametrize(("home", "said"), [(AWAY, "which is not there"), (LOST_DIRECTORY, "was given for lost")])
def test_a_refusal_says_where_the_log_is(home: bytes, said: str) -> None:
    """The id that stands for a lost log is no directory's, and nobody could bring that back."""
    state = PartitionState((1, 2), (), -1, directories=(home, uuid(20)))
    with pytest.raises(BrokerError, match=said) as refusal:
        MissingLogs(1).check(PLACE, state, [HERE])
    assert (to_text(AWAY) in str(refusal.value)) is (home == AWAY)
    assert to_text(LOST_DIRECTORY) not in str(refusal.value)


def test_a_log_is_told_as_lost_before_a_new_one_takes_its_place(tmp_path: Path) -> None:
    """The controller may count on it still: it would elect this broker, which has nothing."""
    topic_id, seen = uuid(77), list[tuple[bytes, bool]]()

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            topics = inside.broker.metadata.topics

            def look(_: object) -> None:
                topic = topics.get("t")
                if topic is not None:
                    seen.append((topic.partitions[0].directory_of(1), (tmp_path / "t-0").exists()))

            inside.broker.quorum.subscribers.insert(0, look)
            state = PartitionState((1, 2), (2,), 2, elr=(1,), directories=(AWAY, uuid(20)))
            other = RegisterBrokerRecord(2, incarnation_id=uuid(2), broker_epoch=1, fenced=False, log_dirs=[uuid(20)])
            made = [other, TopicRecord("t", topic_id), state.record(topic_id, 0)]
            await inside.broker.active.submit(lambda *_: Decision(list[Message](made), None))
            (home,) = inside.broker.replicas.log_directories
            await until(lambda: seen[-1][0] == home.directory_id)
            told = dict(reversed(seen))  # at first
            assert told == {AWAY: False, LOST_DIRECTORY: False, home.directory_id: True}

    asyncio.run(scenario())


class FullDisk(RealDisk):
    """A disk without room for one partition while it `is_full`; `tries` names the threads that have tried."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full, self.tries = True, list[str]()

    def make_directory(self, path: str) -> None:
        self._meet(f"{path}/")
        super().make_directory(path)

    def open(self, path: str) -> RealFile:
        self._meet(path)
        return super().open(path)

    def _meet(self, path: str) -> None:
        if "/t-0/" in path:
            self.tries.append(threading.current_thread().name)
            if self.is_full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def reopens_soon(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Has logs opened again sooner, from the call on."""
    return partial(monkeypatch.setattr, replica_opener, "REOPEN_MS", 10)


def test_a_log_that_was_told_as_lost_is_served_once_the_disk_is_well(
    tmp_path: Path, reopens_soon: Callable[[], None]
) -> None:
    disk = FullDisk()

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            write_all(inside, 1)
            await until_known(inside, 1)
        reopens_soon()
        async with running(tmp_path, world=replace(REAL, disk=disk)) as inside, asyncio.timeout(60):
            topic = inside.broker.metadata.topics.get("t")
            assert topic is not None
            await until(lambda: topic.partitions[0].directory_of(1) == LOST_DIRECTORY)
            disk.is_full = False
            await until(lambda: code_of(inside, 0) is ErrorCode.NONE)
            assert inside.broker.partitions.leader("t", 0).log.log_end_offset == 1

    asyncio.run(scenario())


def test_a_thread_opens_again_what_had_no_room(tmp_path: Path, reopens_soon: Callable[[], None]) -> None:
    """It may recover the log, and syncs: all clients would wait with the loop."""
    disk = FullDisk()
    threads = disk.tries

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            write_all(inside, 1)
            await until_known(inside, 1)
        reopens_soon()
        async with running(tmp_path, world=replace(REAL, disk=disk)) as inside, asyncio.timeout(60):
            threads.clear()
            await until(lambda: len(threads) >= 3)
            disk.is_full = False
            await until(lambda: code_of(inside, 0) is ErrorCode.NONE)
            assert threading.current_thread().name not in threads

    asyncio.run(scenario())


def test_a_log_that_could_not_be_made_is_made_after_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told as lost, and the next start did not know that it never was."""
    disk = FullDisk()

    async def scenario() -> None:
        with monkeypatch.context() as full:
            full.setattr(replica_opener, "REOPEN_MS", 10)
            async with running(tmp_path, world=replace(REAL, disk=disk)) as inside, asyncio.timeout(60):
                await inside.create("t")
                topic = inside.broker.metadata.topics.get("t")
                assert topic is not None
                await until(lambda: topic.partitions[0].leader < 0 and len(disk.tries) >= 3)
        async with running(tmp_path) as inside:
            assert code_of(inside, 0) is ErrorCode.NONE

    asyncio.run(scenario())


def both(home: Path, name: str = "a") -> dict[str, str]:
    return {"log.dirs": f"{home / name},{home / 'b'}", "metadata.log.dir": str(home / name)}


def write_all(inside: InProcess, partitions: int) -> list[int]:
    """A record into each partition; which are in the second directory."""
    replicas = inside.broker.replicas
    for index in range(partitions):
        replicas.partitions.leader("t", index).append(memoryview(bytearray(batch(b"kept", timestamp_ms=-1))))
    second = replicas.log_directories[-1]
    return [
        index
        for index in range(partitions)
        if replicas.reports.directory_of(replicas.partitions.leader("t", index)) is second
    ]


async def until_known(inside: InProcess, partitions: int) -> None:
    """Until the controller knows in which directory each replica is."""
    topic = inside.broker.metadata.topics.get("t")
    assert topic is not None
    known = {one.directory_id for one in inside.broker.replicas.log_directories}
    await until(lambda: all(topic.partitions[index].directories[0] in known for index in range(partitions)))


def test_a_volume_that_was_removed_brings_its_records_back(tmp_path: Path) -> None:
    alone = {"log.dirs": str(tmp_path / "a")}

    async def scenario() -> None:
        async with running(tmp_path, both(tmp_path)) as inside:
            await inside.create("t", 4)
            await until_known(inside, 4)
            away = write_all(inside, 4)
            assert 0 < len(away) < 4
        for _ in range(2):
            async with running(tmp_path, alone) as inside:
                codes = {index: code_of(inside, index) for index in range(4)}
                assert codes == {
                    index: ErrorCode.KAFKA_STORAGE_ERROR if index in away else ErrorCode.NONE for index in range(4)
                }
                assert not any((tmp_path / "a" / f"t-{index}").exists() for index in away)
        async with running(tmp_path, both(tmp_path)) as inside:
            assert [inside.broker.partitions.leader("t", index).log.log_end_offset for index in range(4)] == [1] * 4

    asyncio.run(scenario())


def test_a_directory_that_is_new_takes_no_replica_of_the_one_before_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, both(tmp_path)) as inside:
            await inside.create("t", 4)
            await until_known(inside, 4)
            away = write_all(inside, 4)
        shutil.rmtree(tmp_path / "b")
        async with running(tmp_path, both(tmp_path)) as inside:
            for index in away:
                assert code_of(inside, index) is ErrorCode.KAFKA_STORAGE_ERROR
            topic = inside.broker.metadata.topics.get("t")
            assert topic is not None
            assert all(topic.partitions[index].leader == -1 for index in away)

    asyncio.run(scenario())
