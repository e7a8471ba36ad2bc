"""Losses and duplicates that really happened, on a broker with librdkafka's clients: the report has their numbers."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kavka_audit.completeness.clients import CountedConsumer, CountedProducer, Teller
from kavka_audit.completeness.offset_ranges import BUCKET_MS, bucket_of
from tests.support.programs import promtool
from tests.support.servers import Server, start_kavka
from tests.support.topics import create_topic
from tests.support.waiting import until_outside
from tests.unit.operator.person import run

WHOLE, LOST, TWICE, SKIPPED, AGAIN = 500, 20, 7, 11, 30
NOW_MS = int(time.time() * 1000)
CLOSED_MS = bucket_of(NOW_MS) - 3 * BUCKET_MS + 5
"""A moment in a bucket that is closed whenever the test runs."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    key = tmp_path / "audit.key"
    key.write_text("0123456789abcdef" * 4)
    found = start_kavka(tmp_path / "broker", {"kavka.audit.key.file": str(key), "num.partitions": "1"})
    yield found
    found.kill()


def plain(server: Server, **others: Any) -> Producer:
    return Producer({"bootstrap.servers": server.bootstrap, **others})


def write(producer: Any, topic: str, count: int, timestamp_ms: int = CLOSED_MS) -> None:
    for number in range(count):
        producer.produce(topic, f"{number}".encode(), timestamp=timestamp_ms)
        producer.poll(0)
    assert producer.flush(60) == 0


def counted(server: Server, topic: str, count: int) -> None:
    """A producer that tells, for as long as it takes to write this."""
    teller = Teller(plain(server), "producer", "shop")
    write(CountedProducer(plain(server), teller), topic, count)
    teller.close()


def read(consumer: Any, count: int) -> None:
    for _ in range(count):
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None


def has_trail(server: Server) -> bool:
    return "__audit_events" in AdminClient({"bootstrap.servers": server.bootstrap}).list_topics(timeout=60).topics


def verdicts(server: Server, directory: Path) -> dict[tuple[str, int, str], tuple[int, int, int]]:
    until_outside(lambda: has_trail(server))
    code, said = run("audit", "run", "--bootstrap", server.bootstrap, "--directory", str(directory))
    assert code == 0, said
    found = duckdb.read_parquet(str(directory / "tables/completeness.parquet"))
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    assert all(row["is_closed"] for row in rows)
    return {
        (row["topic"], row["bucket_ms"], row["name"]): (row["expected"], row["missing"], row["duplicates"])
        for row in rows
    }


def cut(server: Server, topic: str, size: int) -> None:
    """Kill the broker and take the end of a log away, as a disk does that forgets."""
    server.kill()
    (log,) = (server.data / f"{topic}-0").glob("*.log")
    with log.open("r+b") as file:
        file.truncate(size)
    server.start()


def size_of(server: Server, topic: str) -> int:
    (log,) = (server.data / f"{topic}-0").glob("*.log")
    return log.stat().st_size


def test_each_loss_and_each_duplicate_is_reported_to_the_record(server: Server, tmp_path: Path) -> None:
    bucket = bucket_of(CLOSED_MS)
    create_topic(server, "orders")
    create_topic(server, "__audit_counts")
    counted(server, "orders", WHOLE)
    kept = size_of(server, "orders")
    counted(server, "orders", LOST)  # acknowledged, and gone with the disk
    cut(server, "orders", kept)
    assert verdicts(server, tmp_path / "audit") == {("orders", bucket, ""): (WHOLE + LOST, LOST, 0)}

    counted(server, "orders", WHOLE)  # stands where the lost ones stood
    assert verdicts(server, tmp_path / "audit") == {("orders", bucket, ""): (2 * WHOLE + LOST, LOST, 0)}
    write(plain(server), "orders", TWICE)  # nobody says to have written it, as when a batch is sent again
    assert verdicts(server, tmp_path / "audit") == {("orders", bucket, ""): (2 * WHOLE + LOST, LOST, TWICE)}


def test_a_group_that_skips_and_reads_again_is_reported_to_the_record(server: Server, tmp_path: Path) -> None:
    bucket, later = bucket_of(CLOSED_MS), bucket_of(CLOSED_MS) + BUCKET_MS
    create_topic(server, "orders")
    create_topic(server, "__audit_counts")
    write(plain(server), "orders", WHOLE)
    write(plain(server), "orders", WHOLE, later)
    teller = Teller(plain(server), "consumer", "g")
    settings = {"bootstrap.servers": server.bootstrap, "group.id": "g", "enable.auto.commit": False}
    consumer = CountedConsumer(Consumer({**settings, "auto.offset.reset": "earliest"}), teller)
    consumer.assign([TopicPartition("orders", 0, 0)])
    read(consumer, WHOLE)
    consumer.commit(asynchronous=False)
    consumer.seek(TopicPartition("orders", 0, WHOLE - AGAIN))
    read(consumer, AGAIN)
    consumer.seek(TopicPartition("orders", 0, WHOLE + SKIPPED))
    read(consumer, WHOLE - SKIPPED)
    consumer.close()
    teller.close()
    assert verdicts(server, tmp_path / "audit") == {
        ("orders", bucket, "g"): (WHOLE, 0, AGAIN),
        ("orders", later, "g"): (WHOLE, SKIPPED, 0),
    }


@pytest.mark.promtool
def test_promtool_has_nothing_to_say_about_the_figures(server: Server, tmp_path: Path) -> None:
    create_topic(server, "orders")
    create_topic(server, "__audit_counts")
    counted(server, "orders", WHOLE)
    directory = tmp_path / "audit"
    verdicts(server, directory)
    text = (directory / "metrics.prom").read_text()
    assert 'topic="orders",tier="log",group=""} 1.0\n' in text
    assert promtool("check", "metrics", stdin=text) == ""
