"""Which log a partition is served from: the one of its topic's id, whatever stands under its name."""

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.topics import delete_topic
from kavka_broker.protocol.messages.metadata.clear_elr_record import ClearElrRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.storage import partition_metadata, recovery
from kavka_broker.storage.disk import Disk, RealDisk
from kavka_broker.storage.log import Log
from tests.support.in_process import InProcess, batch, running
from tests.support.waiting import until

DIRECTORY = "t-0"


def write(inside: InProcess) -> None:
    inside.broker.partitions.leader("t", 0).append(memoryview(bytearray(batch(b"a", timestamp_ms=-1))))


def restarted(directory: Path, change: bytes) -> tuple[bytes, bytes, int]:
    """Write a record, change the id on the disk, start again; the topic's id, the log's, and where the log ends."""

    async def second() -> tuple[bytes, int]:
        async with running(directory) as inside:
            log = inside.broker.partitions.leader("t", 0).log
            return log.topic_id, log.log_end_offset

    topic_id = asyncio.run(written(directory))
    partition_metadata.write(RealDisk(), str(directory / DIRECTORY), change)
    (directory / ".kafka_cleanshutdown").unlink()
    return topic_id, *asyncio.run(second())


async def written(directory: Path) -> bytes:
    async with running(directory) as inside:
        topic_id = await inside.create("t")
        write(inside)
        return topic_id


def test_the_log_of_an_earlier_topic_of_the_name_is_not_served(tmp_path: Path) -> None:
    """A crash between a deletion's commit and the renaming leaves it where the next topic of the name looks."""
    topic_id, log_id, end_offset = restarted(tmp_path, os.urandom(16))
    assert (log_id, end_offset) == (topic_id, 0)
    assert [name for name in os.listdir(tmp_path) if name.startswith("t-0.") and name.endswith("-stray")]


def test_a_log_with_records_and_no_id_is_not_taken_for_the_topics(tmp_path: Path) -> None:
    """It may be that of an earlier topic of the name. It is kept, and served again with its id."""

    async def second() -> None:
        async with running(tmp_path) as inside:
            assert inside.broker.partitions.get("t", 0) is None

    async def third() -> int:
        async with running(tmp_path) as inside:
            return inside.broker.partitions.leader("t", 0).log.log_end_offset

    topic_id = asyncio.run(written(tmp_path))
    (tmp_path / DIRECTORY / "partition.metadata").unlink()
    asyncio.run(second())
    partition_metadata.write(RealDisk(), str(tmp_path / DIRECTORY), topic_id)
    assert asyncio.run(third()) == 1


def test_a_log_without_an_id_gives_way_to_the_next_topic_of_the_name(tmp_path: Path) -> None:
    async def second() -> None:
        async with running(tmp_path) as inside:
            topic = inside.broker.metadata.topics.get("t")
            assert topic is not None
            await inside.broker.active.submit(lambda metadata, _: delete_topic(topic))
            await inside.create("t")
            await until(lambda: inside.broker.partitions.get("t", 0) is not None)
            assert inside.broker.partitions.leader("t", 0).log.log_end_offset == 0

    asyncio.run(written(tmp_path))
    (tmp_path / DIRECTORY / "partition.metadata").unlink()
    asyncio.run(second())
    assert [name for name in os.listdir(tmp_path) if name.startswith("t-0.") and name.endswith("-stray")]


def test_a_log_that_could_not_be_opened_is_not_taken_for_a_stray(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be all that there is of its partition, and would be missed as soon as the disk is well."""

    opened = recovery.open_log

    def refuse(disk: Disk, directory: str, *rest: Any, **how: Any) -> Log:
        if directory.endswith(DIRECTORY):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(disk, directory, *rest, **how)

    async def second() -> None:
        async with running(tmp_path) as inside:
            assert inside.broker.partitions.get("t", 0) is None

    async def third() -> None:
        async with running(tmp_path) as inside:
            assert inside.broker.partitions.leader("t", 0).log.log_end_offset == 1

    asyncio.run(written(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(recovery, "open_log", refuse)
        asyncio.run(second())
    assert not [name for name in os.listdir(tmp_path) if name.endswith("-stray")]
    asyncio.run(third())


@pytest.mark.parametrize("name", ["t", ""])
def test_a_leader_hears_that_eligible_replicas_were_cleared(tmp_path: Path, name: str) -> None:
    """That is a change of the partition, and of its epoch: a leader that missed it could change its ISR no more."""

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            topic_id = await inside.create("t")
            counted = PartitionChangeRecord(0, topic_id, eligible_leader_replicas=[9])
            for record in (counted, ClearElrRecord(name)):
                await inside.broker.active.submit(lambda *_, record=record: Decision([record], None))
                image = inside.broker.metadata.topics.get("t")
                assert image is not None
                assert inside.broker.partitions.leader("t", 0).state == image.partitions[0]

    asyncio.run(scenario())
