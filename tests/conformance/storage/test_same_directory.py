"""One directory, two brokers: what Apache Kafka wrote is read here, and the other way round."""

import sys
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
import pytest

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.record import build_batch, read_records
from kavka_broker.storage.disk import RealDisk
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import CLEAN_SHUTDOWN
from kavka_broker.storage.log_manager import LogManager
from tests.support.servers import Server, start_apache_kafka
from tests.support.topics import create_topic

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPIC = "shared"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS_A_CODEC = 300
SECONDS_MAX = 60.0


def value_of(number: int) -> bytes:
    return b"%d " % number + b"payload " * 100


def produce(server: Server, first: int, codec: str) -> int:
    """Records from number `first` on; returns the number that comes next."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": server.bootstrap, "compression.type": codec, "enable.idempotence": True}
    )
    for number in range(first, first + RECORDS_A_CODEC):
        producer.produce(TOPIC, value_of(number), key=b"%d" % number, headers={"codec": codec})
    assert producer.flush(SECONDS_MAX) == 0
    return first + RECORDS_A_CODEC


def consume(server: Server, count: int) -> list[bytes | None]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": server.bootstrap, "group.id": "none"})
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
    seen: list[bytes | None] = []
    while len(seen) < count:
        message = consumer.poll(SECONDS_MAX)
        assert message is not None, f"{len(seen)} of {count} records came"
        assert message.error() is None
        seen.append(message.value())
    consumer.close()
    return seen


def open_directory(server: Server) -> tuple[LogManager, Log]:
    manager = LogManager.open(RealDisk(), [str(server.data)], node_id=1)
    manager.load(lambda topic: LogConfig(), 0)
    log = manager.get(TOPIC, 0)
    assert log is not None
    return manager, log


def values(log: Log) -> list[bytes | None]:
    offset, found = 0, list[bytes | None]()
    while offset < log.log_end_offset:
        for part in log.read(offset, 1 << 20).parts:
            for header, batch in split_batches(part):
                found += [record.value for record in read_records(batch)]
                offset = header.next_offset
    return found


@pytest.fixture
def kafka(tmp_path: Path) -> Server:
    """Apache Kafka with a topic of one partition and records of every codec."""
    server = start_apache_kafka(tmp_path / "broker")
    create_topic(server, TOPIC, segment_bytes=str(1 << 20))
    return server


@pytest.mark.parametrize("stop", [Server.stop, Server.kill], ids=["stopped", "killed"])
def test_one_directory_serves_kafka_and_kavka_in_turn(kafka: Server, stop: Callable[[Server], int]) -> None:
    try:
        count = 0
        for codec in CODECS:
            count = produce(kafka, count, codec)
        stop(kafka)

        manager, log = open_directory(kafka)
        assert manager.directories[0].is_clean == (stop is Server.stop)
        assert values(log) == [value_of(number) for number in range(count)]
        assert log.epochs.latest >= 0
        assert len(log.producers) == len(CODECS)
        for compression in Compression:
            batch = build_batch([(b"k", value_of(count))], timestamp_ms=1, compression=compression)
            log.append_as_leader(memoryview(batch), log.epochs.latest, 1)
            count += 1
        manager.close()

        kafka.start()
        assert consume(kafka, count) == [value_of(number) for number in range(count)]
        count = produce(kafka, count, "lz4")
        stop(kafka)
        manager, log = open_directory(kafka)
        assert values(log) == [value_of(number) for number in range(count)]
        manager.close()
    finally:
        kafka.kill()


@pytest.mark.extended
def test_two_brokers_take_turns(kafka: Server) -> None:
    """The metadata too: the one goes on as the cluster that the other left."""
    config = kafka.directory / "server.properties"
    apache, kavka = kafka.command, [sys.executable, "-m", "kavka_broker", "run", "--config", str(config)]
    try:
        count = produce(kafka, 0, "gzip")
        for command, codec in ((kavka, "zstd"), (apache, "lz4")):
            kafka.stop()
            kafka.command = command
            kafka.start()
            assert consume(kafka, count) == [value_of(number) for number in range(count)]
            count = produce(kafka, count, codec)
    finally:
        kafka.kill()


@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped", "killed"])
@pytest.mark.extended
def test_snapshots_of_producers_are_taken_over(kafka: Server, is_clean: bool) -> None:
    """What Kavka writes behind Kafka's fields is passed over, however Apache Kafka starts: none is thrown away."""
    try:
        kafka.stop()
        manager, log = open_directory(kafka)
        log.config = LogConfig(internal_segment_bytes=20_000)
        for sequence in range(60):
            batch = build_batch(
                [(b"k", bytes(1000))], timestamp_ms=1, producer_id=7, producer_epoch=3, base_sequence=sequence
            )
            log.append_as_leader(memoryview(batch), max(0, log.epochs.latest), 1)
        rolled = max(segment.base_offset for segment in log.segments)
        manager.close()
        if not is_clean:
            (kafka.data / CLEAN_SHUTDOWN).unlink()
        kafka.start()
        kafka.stop()
        said = (kafka.directory / "server.log").read_text()
        assert f"Loading producer state from snapshot file 'SnapshotFile(offset={60 if is_clean else rolled}," in said
        assert "orrupt" not in said
    finally:
        kafka.kill()
