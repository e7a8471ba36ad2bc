"""A full disk: KAFKA_STORAGE_ERROR, nothing acknowledged is lost, and with room again the broker serves as before.

The file system is a small tmpfs, which needs root.
"""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest

from tests.support.messages import place_of, value_of
from tests.support.servers import Server, start_server
from tests.support.topics import create_topic

pytestmark = pytest.mark.root

DISK_BYTES = 24 * 1024 * 1024
RECORD_BYTES = 100_000
SECONDS_MAX = 60.0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own that is full soon."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk)], check=False)
    if mounted.returncode != 0:
        pytest.skip("this root may not mount a file system")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.fixture
def on_small_disk(small_disk: Path, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    with contextlib.ExitStack() as stack:

        def starter() -> Server:
            settings = {"log.dirs": str(small_disk / "data"), "log.segment.bytes": "4194304"}
            server = start_server(tmp_path / "broker", settings)
            stack.callback(server.kill)
            return server

        yield starter


def fill(server: Server, topic: str) -> tuple[dict[tuple[int, int], bytes], str]:
    """Produce until the first refusal; what was acknowledged where, and the name of the error."""
    acknowledged: dict[tuple[int, int], bytes] = {}
    errors: list[str] = []

    def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            errors.append(error.name())
        else:
            acknowledged[place_of(message)] = value_of(message)

    settings = {"bootstrap.servers": server.bootstrap, "acks": "all", "linger.ms": 0, "retries": 0}
    producer = confluent_kafka.Producer({**settings, "enable.idempotence": False, "compression.type": "none"})
    for _ in range(2 * DISK_BYTES // RECORD_BYTES):
        producer.produce(topic, os.urandom(RECORD_BYTES), on_delivery=delivered)
        producer.flush(SECONDS_MAX)
        if errors:
            break
    assert errors, "the disk never became full"
    return acknowledged, errors[0]


def test_a_full_disk_refuses_and_loses_nothing(
    on_small_disk: Callable[..., Server], small_disk: Path, name: str
) -> None:
    server = on_small_disk()
    create_topic(server, name)
    acknowledged, error = fill(server, name)
    assert error == "KAFKA_STORAGE_ERROR"
    assert acknowledged
    server.kill()
    subprocess.run(["mount", "-o", f"remount,size={4 * DISK_BYTES}", str(small_disk)], check=True)
    server.start()
    kept = read_all_values(server, name)
    assert {place: kept.get(place) for place in acknowledged} == acknowledged


def read_all_values(server: Server, topic: str) -> dict[tuple[int, int], bytes]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": server.bootstrap, "group.id": topic})
    end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), SECONDS_MAX)[1]
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    seen: dict[tuple[int, int], bytes] = {}
    while len(seen) < end:
        message = consumer.poll(SECONDS_MAX)
        assert message is not None
        assert message.error() is None
        seen[place_of(message)] = value_of(message)
    consumer.close()
    return seen
