"""Which log a partition is served from: the one of its topic's id, whatever stands under its name."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from kavka_broker.core.metadata.topic_commands import delete_topic
from kavka_broker.storage import partition_metadata
from kavka_broker.storage.disk import RealDisk
from tests.support.in_process import InProcess, batch, running

DIRECTORY = "t-0"


def write(inside: InProcess) -> None:
    inside.broker.replicas.leader("t", 0).append(memoryview(bytearray(batch(b"a", timestamp_ms=-1))))


def restarted(directory: Path, change: bytes | None) -> tuple[bytes, bytes, int]:
    """Write a record, change the id on the disk (None takes the file away), start again.

    Returns the topic's id, the log's, and where the log ends.
    """

    async def first() -> bytes:
        async with running(directory) as inside:
            topic_id = await inside.create("t")
            write(inside)
            return topic_id

    async def second() -> tuple[bytes, int]:
        async with running(directory) as inside:
            log = inside.broker.replicas.leader("t", 0).log
            return log.topic_id, log.log_end_offset

    topic_id = asyncio.run(first())
    path = directory / DIRECTORY
    (path / "partition.metadata").unlink()
    if change is not None:
        partition_metadata.write(RealDisk(), str(path), change)
    return topic_id, *asyncio.run(second())


def test_the_log_of_an_earlier_topic_of_the_name_is_not_served(tmp_path: Path) -> None:
    """A crash between a deletion's commit and the renaming leaves it where the next topic of the name looks."""
    topic_id, log_id, end_offset = restarted(tmp_path, os.urandom(16))
    assert (log_id, end_offset) == (topic_id, 0)
    assert [name for name in os.listdir(tmp_path) if name.startswith("t-0.") and name.endswith("-stray")]


def test_a_log_that_lost_its_id_gets_it_back(tmp_path: Path) -> None:
    topic_id, log_id, end_offset = restarted(tmp_path, None)
    assert (log_id, end_offset) == (topic_id, 1)
    assert partition_metadata.read(RealDisk(), str(tmp_path / DIRECTORY)) == topic_id


def test_a_log_that_lost_its_id_is_deleted_with_its_topic(tmp_path: Path) -> None:
    restarted(tmp_path, None)

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            topic = inside.broker.metadata.topics.get("t")
            assert topic is not None
            await inside.broker.active.submit(lambda metadata, _: delete_topic(topic))
            assert inside.broker.replicas.get("t", 0) is None
            assert not (tmp_path / DIRECTORY).exists()

    asyncio.run(scenario())


def test_a_log_that_could_not_be_opened_is_not_taken_for_a_stray(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be all that there is of its partition, and would be missed as soon as the disk is well."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def first() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            write(inside)

    async def second() -> None:
        async with running(tmp_path) as inside:
            assert inside.broker.replicas.get("t", 0) is None

    async def third() -> None:
        async with running(tmp_path) as inside:
            assert inside.broker.replicas.leader("t", 0).log.log_end_offset == 1

    asyncio.run(first())
    (tmp_path / DIRECTORY / "partition.metadata").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(partition_metadata, "write", refuse)
        asyncio.run(second())
    assert not [name for name in os.listdir(tmp_path) if name.endswith("-stray")]
    asyncio.run(third())
