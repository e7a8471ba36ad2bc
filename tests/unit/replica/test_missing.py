"""Replicas whose directory is not there: offline, and never a new and empty leader."""

import asyncio
import shutil
from pathlib import Path

import pytest

from kavka_broker.core.metadata.brokers import LOST_DIRECTORY, UNASSIGNED_DIRECTORY, UNTOLD_DIRECTORY
from kavka_broker.core.metadata.topics import PartitionState
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.replica.missing import MissingLogs
from tests.support.cluster import uuid
from tests.support.in_process import InProcess, batch, code_of, running

PLACE = (uuid(1), 0)
HERE, AWAY = uuid(10), uuid(11)


def refused(home: bytes, isr: tuple[int, ...], elr: tuple[int, ...] = (), *, noted: bool = False) -> bool:
    missing = MissingLogs(1)
    if noted:
        missing.note_unmade(PLACE)
    state = PartitionState((1, 2), isr, isr[-1] if isr else -1, elr=elr, directories=(home, uuid(20)))
    try:
        missing.check(PLACE, state, [HERE])
    except BrokerError as error:
        return error.code is ErrorCode.KAFKA_STORAGE_ERROR
    return False


@pytest.mark.parametrize("home", [UNTOLD_DIRECTORY, UNASSIGNED_DIRECTORY, HERE])
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


def both(home: Path, name: str = "a") -> dict[str, str]:
    return {"log.dirs": f"{home / name},{home / 'b'}", "metadata.log.dir": str(home / name)}


def write_all(inside: InProcess, partitions: int) -> list[int]:
    """A record into each partition; which are in the second directory."""
    replicas = inside.broker.replicas
    for index in range(partitions):
        replicas.leader("t", index).append(memoryview(bytearray(batch(b"kept", timestamp_ms=-1))))
    second = replicas.log_directories[1]
    return [index for index in range(partitions) if replicas.directory_of(replicas.leader("t", index)) is second]


async def until_known(inside: InProcess, partitions: int) -> None:
    """Until the controller knows in which directory each replica is."""
    topic = inside.broker.metadata.topics.get("t")
    assert topic is not None
    known = {one.directory_id for one in inside.broker.replicas.log_directories}
    async with asyncio.timeout(20):
        while not all(topic.partitions[index].directories[0] in known for index in range(partitions)):
            await asyncio.sleep(0.001)


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
            assert [inside.broker.replicas.leader("t", index).log.log_end_offset for index in range(4)] == [1] * 4

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
