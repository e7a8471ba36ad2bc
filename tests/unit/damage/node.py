"""A node that was stopped cleanly, twice, and copies of its directory to damage."""

import asyncio
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from kavka_broker.controller.format import format_directory
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.decide.topics import CreateTopic, Defaults, create_topics
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.protocol.records.control import ControlType, build_marker
from kavka_broker.protocol.records.record import build_batch, read_records
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.runtime.server import Server
from kavka_broker.storage.disk import RealDisk
from kavka_broker.storage.log import Origin

TOPICS: Final = ("t", "u")
ROUND: Final = 40
NOW_MS: Final = 1_700_000_000_000
CLUSTER_IDS: Final = {"a": "a2F2a2EtZGFtYWdlLWFhYQ", "b": "b3RoZXItY2x1c3Rlci1iYg"}
CONFIGS: Final = {"index.interval.bytes": "300", "segment.bytes": "1048576", "retention.ms": "-1"}
#: Nothing of it is a time: a segment is full after these bytes, some 20 batches.
SEGMENT_BYTES: Final = 4_000


def config_of(directory: Path, node_id: int = 1) -> BrokerConfig:
    return BrokerConfig.parse(
        {
            "process.roles": "broker,controller",
            "node.id": str(node_id),
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"{node_id}@127.0.0.1:9093",
            "log.dirs": str(directory),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
        }
    )


def crash(error: BaseException) -> NoReturn:
    raise error


async def start(directory: Path, node_id: int = 1) -> Server:
    """Raises StartError; what had been started is stopped then."""
    server = Server(config_of(directory, node_id), crash)
    try:
        await server.start()
    except BaseException:
        await server.stop("it does not start")
        raise
    return server


def value(topic: str, number: int) -> bytes:
    return b"%s-%d/" % (topic.encode(), number) + b"x" * (100 + 13 * (topic == "u"))


def write(partition: Partition, topic: str, number: int) -> None:
    partition.log.segments.bytes_max = SEGMENT_BYTES
    batch = build_batch(
        [(None, value(topic, number))],
        timestamp_ms=NOW_MS + number * (7 if topic == "u" else 5),
        producer_id=900 + len(topic),
        producer_epoch=0,
        base_sequence=number,
    )
    partition.append(memoryview(batch))


def abort(partition: Partition, sequence: int) -> None:
    """A transaction of one batch that is aborted."""
    batch = build_batch(
        [(None, b"never to be seen by who reads committed records")],
        timestamp_ms=NOW_MS,
        producer_id=77,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )
    partition.append(memoryview(batch))
    marker = build_marker(ControlType.ABORT, producer_id=77, producer_epoch=0, coordinator_epoch=0, timestamp_ms=NOW_MS)
    partition.append(memoryview(marker), origin=Origin.COORDINATOR)


@dataclass(frozen=True)
class Written:
    """A directory as a clean stop left it, the one it was before, and one of another cluster and node."""

    new: Path
    old: Path
    other: Path
    records: dict[str, dict[int, bytes]]  # by topic and offset
    ends: dict[str, int]
    aborted: int


def prepare(directory: Path) -> Written:
    return asyncio.run(_prepare(directory))


async def _prepare(directory: Path) -> Written:
    home, old, other = directory / "new", directory / "old", directory / "other"
    await _live(home, "a", 1, 0)
    shutil.copytree(home, old)
    records, ends, aborted = await _live(home, "a", 1, 1)
    await _live(other, "b", 2, 0, topics=("u", "v", "t"))
    return Written(home, old, other, records, ends, aborted)


async def make(server: Server, topic: str) -> None:
    command = CreateTopic(topic, os.urandom(16), 1, 1, configs=CONFIGS)
    await server.broker.active.submit(lambda image, _: create_topics(image, [command], Defaults()))


async def _live(
    directory: Path, cluster: str, node_id: int, turn: int, topics: tuple[str, ...] = TOPICS
) -> tuple[dict[str, dict[int, bytes]], dict[str, int], int]:
    config = config_of(directory, node_id)
    if not turn:
        format_directory(RealDisk(), config, CLUSTER_IDS[cluster], now_ms=NOW_MS, random_bytes=os.urandom)
    server = await start(directory, node_id)
    try:
        for topic in topics:
            if not turn:
                await make(server, topic)
            partition = server.broker.partitions.leader(topic, 0)
            for number in range(turn * ROUND, (turn + 1) * ROUND):
                write(partition, topic, number)
                if number % 10 == 7:
                    abort(partition, number // 10)
        await server.broker.active.snapshot()
        found = {topic: read(server.broker.partitions.leader(topic, 0))[0] for topic in topics}
        ends = {topic: server.broker.partitions.leader(topic, 0).log.log_end_offset for topic in topics}
        log = server.broker.partitions.leader("t", 0).log
        return found, ends, len(log.reader.aborted_between(0, log.log_end_offset))
    finally:
        await server.stop("the test ends")


def read(partition: Partition) -> tuple[dict[int, bytes], list[int]]:
    """Every value that can be read, by its offset, and the offsets at which nothing could. One after the other, as a
    consumer does that seeks past what it is refused.
    """
    log, found, refused = partition.log, dict[int, bytes](), list[int]()
    offset, end_offset = log.log_start_offset, log.log_end_offset
    while offset < end_offset:
        before = offset
        try:
            parts = partition.read(offset, 500, end_offset, True).parts
        except BrokerError:
            refused.append(offset)
            offset += 1
            continue
        for part in parts:
            for header, batch in split_batches(part):
                found.update(
                    (one.offset, bytes(one.value or b"")) for one in read_records(batch) if not header.is_control
                )
                offset = header.next_offset
        assert offset > before, f"nothing at {before}"
    return found, refused


Mutation = Callable[[Path, Written], None]


def plain(partition: Partition) -> None:
    """One record of nobody in particular."""
    partition.append(memoryview(build_batch([(None, value(partition.topic, 10_000))], timestamp_ms=NOW_MS)))
