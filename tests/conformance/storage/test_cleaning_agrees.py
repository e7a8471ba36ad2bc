"""The same records, cleaned by Kavka and by Apache Kafka: what stays is the same, record by record.

Apache Kafka writes the directory: idempotent and transactional producers, every codec, tombstones, aborted
transactions. A copy of it is cleaned by either, and both are given the same records after that and clean once more, by
when the horizon of the first run's tombstones has passed in one of the topics. Then each serves what the other has
cleaned.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

import confluent_kafka
import pytest

from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.protocol.records.record import Record, read_records
from tests.conformance.side_by_side.products import KAFKA, KAVKA, become
from tests.conformance.storage.test_dump_log import dump, files
from tests.support.servers import Server, start_apache_kafka
from tests.support.topics import create_topic

pytestmark = [pytest.mark.java, pytest.mark.slow]

#: Tombstones stay, or go with the second run.
KEEPS, DROPS = "keeps", "drops"
TOPICS: Final = {KEEPS: 86_400_000, DROPS: 0}
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
KEYS, ROUND = 40, 120
BEGAN_MS: Final = 1_700_000_000_000
SECONDS_MAX: Final = 90.0
SETTINGS: Final = {
    "log.cleaner.enable": "false",
    "log.cleaner.dedupe.buffer.size": "4000000",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
}
Logged = list[tuple[Record, bool]]


def write(server: Server, topic: str, codec: str, first: int, end: str = "", keys: str = "key") -> int:
    """A round of records from number `first` on, in a transaction where it is to `end`; the number that comes next."""
    own: dict[str, object] = {"transactional.id": f"{topic}-{codec}-{end}"} if end else {}
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": server.bootstrap,
            "compression.type": codec,
            "enable.idempotence": True,
            "linger.ms": 20,
            "batch.num.messages": 30,
            **own,
        }
    )
    if end:
        producer.init_transactions(SECONDS_MAX)
        producer.begin_transaction()
    random = Random(first)
    for number in range(first, first + ROUND):
        value = None if random.random() < 0.15 else b"%d " % number + b"payload " * random.randrange(20)
        key = f"{keys}-{random.randrange(KEYS)}".encode()
        producer.produce(topic, value, key, partition=0, timestamp=BEGAN_MS + number, headers={"codec": codec})
    assert producer.flush(SECONDS_MAX) == 0
    if end == "commit":
        producer.commit_transaction(SECONDS_MAX)
    elif end == "abort":
        producer.abort_transaction(SECONDS_MAX)
    return first + ROUND


def fill(server: Server, topic: str) -> None:
    number = 0
    for codec in CODECS:
        number = write(server, topic, codec, number)
        for end in ("abort", "commit"):
            number = write(server, topic, codec, number, end)
    write(server, topic, "none", number)


def copy_of(server: Server, directory: Path, product: str) -> Server:
    """The same node on a copy of its directory, which cleans, run by `product`."""
    shutil.copytree(server.directory, directory)
    config = directory / "server.properties"
    text = config.read_text().replace(str(server.directory), str(directory))
    config.write_text(text)
    copied = Server(list(server.command), server.address, directory)
    copied.command = [part.replace(str(server.directory), str(directory)) for part in server.command]
    become(copied, product)
    return copied


def cleaned_to(server: Server, topic: str) -> int:
    """Up to where the checkpoint says that it is cleaned."""
    path = server.data / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    return next((int(line.split()[2]) for line in lines if line.startswith(f"{topic} 0 ")), 0)


def wait_until_clean(server: Server) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    for topic in TOPICS:
        while (reached := cleaned_to(server, topic)) < (wanted := active_base(server, topic)):
            assert time.monotonic() < deadline, f"{topic}: cleaned to {reached} of {wanted}\n{server.last_lines()}"
            time.sleep(0.2)


def active_base(server: Server, topic: str) -> int:
    return int(max((server.data / f"{topic}-0").glob("*.log")).stem)


def records(server: Server, topic: str) -> Logged:
    """All records with their offsets, keys, values, times and headers, and whether they are markers."""
    found = []
    for path in sorted((server.data / f"{topic}-0").glob("*.log")):
        for header, batch in split_batches(path.read_bytes()):
            found += [(record, header.is_control) for record in read_records(batch)]
    return found


def consumed(server: Server, topic: str, isolation: str) -> list[tuple[int | None, bytes | None, bytes | None, object]]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": "judge",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    seen: list[tuple[int | None, bytes | None, bytes | None, object]] = []
    while True:
        message = consumer.poll(SECONDS_MAX)
        assert message is not None, f"neither records nor the end after {SECONDS_MAX:g} s"
        if message.error() is not None:
            consumer.close()
            return seen
        seen.append((message.offset(), message.key(), message.value(), message.timestamp()))


def enable_cleaner(server: Server, *, is_on: bool) -> None:
    config = server.directory / "server.properties"
    before, after = (f"log.cleaner.enable={value}" for value in (str(not is_on).lower(), str(is_on).lower()))
    config.write_text(config.read_text().replace(before, after))


def clean_twice(server: Server) -> list[dict[str, Logged]]:
    """What stands in the logs after one run of the cleaner, and after more records and another: nothing is written
    while it runs, so that either product runs once.
    """
    found = []
    for number in (0, 1_000_000):
        if number:
            enable_cleaner(server, is_on=False)
            with running(server):
                for topic in TOPICS:
                    for turn in range(3):
                        write(server, topic, "none", number + turn * ROUND, keys="later")
        enable_cleaner(server, is_on=True)
        with running(server):
            wait_until_clean(server)
        found.append({topic: records(server, topic) for topic in TOPICS})
    return found


@contextmanager
def running(server: Server) -> Iterator[None]:
    server.start()
    try:
        yield
    finally:
        server.stop()


def test_both_keep_the_same(tmp_path: Path) -> None:
    origin = start_apache_kafka(tmp_path / "origin", SETTINGS)
    try:
        for topic, retention_ms in TOPICS.items():
            create_topic(
                origin,
                topic,
                cleanup_policy="compact",
                internal_segment_bytes="6000",
                delete_retention_ms=str(retention_ms),
            )
            fill(origin, topic)
    finally:
        origin.stop()
    before = {topic: records(origin, topic) for topic in TOPICS}
    by_kafka = copy_of(origin, tmp_path / "kafka", KAFKA)
    by_kavka = copy_of(origin, tmp_path / "kavka", KAVKA)
    theirs, ours = clean_twice(by_kafka), clean_twice(by_kavka)
    for turn, (one, other) in enumerate(zip(theirs, ours, strict=True)):
        for topic in TOPICS:
            assert other[topic] == one[topic], f"run {turn} of {topic}"
    assert len(ours[0][KEEPS]) < len(before[KEEPS]) / 3
    tombstones = {topic: sum(record.value is None for record, _ in ours[-1][topic]) for topic in TOPICS}
    assert tombstones[KEEPS] > tombstones[DROPS]
    expect_dump_log_reads(by_kavka)
    expect_each_serves_the_other(by_kafka, by_kavka)


def expect_dump_log_reads(server: Server) -> None:
    for topic in TOPICS:
        text = dump("--deep-iteration", "--files", files(server.data / f"{topic}-0", ".log"))
        assert "isvalid: false" not in text
        for suffix in (".index", ".timeindex"):
            text = dump("--files", files(server.data / f"{topic}-0", suffix))
            assert "Mismatches" not in text
            assert "Non-consecutive" not in text


def expect_each_serves_the_other(by_kafka: Server, by_kavka: Server) -> None:
    seen = []
    exchange: list[tuple[Server, str]] = [(by_kafka, KAVKA), (by_kavka, KAFKA)]
    for server, product in exchange:
        become(server, product)
        with running(server):
            isolations = ("read_committed", "read_uncommitted")
            seen.append([consumed(server, topic, isolation) for topic in TOPICS for isolation in isolations])
    assert seen[0] == seen[1]
    assert all(seen[0])
