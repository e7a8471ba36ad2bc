"""Limits that topics set to their clients: Kafka's tools set, show and delete them; real clients share them.

Apache Kafka knows no such configs. It is the judge of what its tools take and show, and it is not to be harmed by them
in a directory that it takes over.
"""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from tests.conformance.metadata.test_exchange import swapped
from tests.support.programs import kafka_tool
from tests.support.servers import Server, start_apache_kafka, start_kavka
from tests.support.topics import create_topic

pytestmark = [pytest.mark.slow, pytest.mark.extended]

PRODUCED, FETCHED = "kavka.topic.producer.byte.rate", "kavka.topic.consumer.byte.rate"
LIMIT = 1_000_000
WINDOW_SECONDS = 2  # three samples, two of them whole
CLIENTS = 3
BATCH_BYTES, VALUE_BYTES = 20_000, 9_000
SECONDS = 14.0
TRIES = 4
TIMEOUT_SECONDS = 60.0


@pytest.fixture(scope="module")
def kavka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    window = {"quota.window.num": str(WINDOW_SECONDS + 1)}
    server = start_kavka(tmp_path_factory.mktemp("limited-topics"), window)
    yield server
    server.kill()


class Sharing:
    """Clients of one topic, each with a user's usual loop in a thread, and the bytes that they have moved together."""

    def __init__(self, server: Server, topic: str) -> None:
        self.counts = [0] * CLIENTS
        self.began = time.monotonic()
        self._bootstrap, self._topic = server.bootstrap, topic
        self._stops = threading.Event()
        self._threads = [threading.Thread(target=self.run, args=(number,)) for number in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def run(self, number: int) -> None:
        raise NotImplementedError

    def watch(self) -> float:
        """The rate once the first burst is over, while what has passed stays below what the limit allows. A rate that
        is none of the limit is measured again: the machine may have stood still, or caught up on that.
        """
        rate = self._rate()
        for _ in range(TRIES):
            rate = self._rate()
            if is_of_limit(rate):
                break
        return rate

    def _rate(self) -> float:
        """The rate over half of the time."""
        before, began = sum(self.counts), time.monotonic()
        while time.monotonic() < began + SECONDS / 2:
            time.sleep(0.25)
            moved = sum(self.counts)
            elapsed = time.monotonic() - self.began
            windows = 1 + elapsed // WINDOW_SECONDS
            assert moved <= LIMIT * (elapsed + WINDOW_SECONDS) + CLIENTS * LIMIT * windows
        return (sum(self.counts) - before) / (time.monotonic() - began)

    def stop(self) -> None:
        self._stops.set()
        for thread in self._threads:
            thread.join(TIMEOUT_SECONDS)


class Producing(Sharing):
    def run(self, number: int) -> None:
        settings = {"bootstrap.servers": self._bootstrap, "batch.size": BATCH_BYTES, "linger.ms": 0}
        producer = Producer({**settings, "queue.buffering.max.messages": 20, "client.id": f"producer-{number}"})

        def count(error: object, _: object) -> None:
            self.counts[number] += 0 if error else VALUE_BYTES

        while not self._stops.is_set():
            try:
                producer.produce(self._topic, bytes(VALUE_BYTES), on_delivery=count)
            except BufferError:
                producer.poll(0.01)
            producer.poll(0)
        producer.purge()
        producer.flush(TIMEOUT_SECONDS)


class Consuming(Sharing):
    def run(self, number: int) -> None:
        settings = {
            "bootstrap.servers": self._bootstrap,
            "group.id": f"g{number}",
            "fetch.message.max.bytes": BATCH_BYTES,
        }
        consumer = Consumer({**settings, "queued.min.messages": 1, "enable.auto.commit": False})
        consumer.assign([TopicPartition(self._topic, 0, 0)])
        while not self._stops.is_set():
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                self.counts[number] += len(message.value() or b"")
        consumer.close()


def is_of_limit(rate: float) -> bool:
    return 0.85 < rate / LIMIT < 1.15


def judge(clients: Sharing) -> None:
    """Together they have the limit, and each its share."""
    try:
        rate = clients.watch()
    finally:
        clients.stop()
    assert is_of_limit(rate), f"{rate / LIMIT:.3f} of the limit"
    assert min(clients.counts) > sum(clients.counts) / CLIENTS / 2, f"{clients.counts}: somebody starved"


def test_three_producers_share_the_limit_of_their_topic(kavka: Server) -> None:
    create_topic(kavka, "produced", 1, 1, **{PRODUCED: str(LIMIT)})
    judge(Producing(kavka, "produced"))


def test_three_consumers_share_the_limit_of_their_topic(kavka: Server) -> None:
    create_topic(kavka, "fetched", 1, 1, **{FETCHED: str(LIMIT)})
    producer = Producer({"bootstrap.servers": kavka.bootstrap})
    for _ in range(int(LIMIT * SECONDS) // VALUE_BYTES):
        producer.produce("fetched", bytes(VALUE_BYTES))
        producer.poll(0)
    assert producer.flush(TIMEOUT_SECONDS) == 0
    judge(Consuming(kavka, "fetched"))


def test_an_admin_client_reads_the_limit(kavka: Server) -> None:
    create_topic(kavka, "described", 1, 1, **{PRODUCED: "5"})
    resource = ConfigResource(ConfigResource.Type.TOPIC, "described")
    admin = AdminClient({"bootstrap.servers": kavka.bootstrap})
    configs = admin.describe_configs([resource])[resource].result(30)
    assert (configs[PRODUCED].value, configs[PRODUCED].is_default) == ("5", False)
    assert (configs[FETCHED].value, configs[FETCHED].is_default) == (str(2**63 - 1), True)


def configs_tool(server: Server, *arguments: str) -> str:
    entity = ("--entity-type", "topics", "--entity-name", "tooled")
    return kafka_tool("configs", "--bootstrap-server", server.bootstrap, *arguments, *entity)


@pytest.mark.java
def test_kafkas_tools_set_show_and_delete_a_limit(kavka: Server) -> None:
    create_topic(kavka, "tooled")
    configs_tool(kavka, "--alter", "--add-config", f"{PRODUCED}=200000")
    assert f"{PRODUCED}=200000 sensitive=false" in configs_tool(kavka, "--describe")
    shown = kafka_tool("topics", "--bootstrap-server", kavka.bootstrap, "--describe", "--topic", "tooled")
    assert f"{PRODUCED}=200000" in shown
    with pytest.raises(AssertionError, match=r'InvalidConfigurationException: .* "0" is not allowed; write 1 or more'):
        configs_tool(kavka, "--alter", "--add-config", f"{PRODUCED}=0")
    configs_tool(kavka, "--alter", "--delete-config", PRODUCED)
    assert PRODUCED not in configs_tool(kavka, "--describe")


@pytest.mark.java
def test_a_java_producer_is_held_and_loses_nothing(kavka: Server) -> None:
    create_topic(kavka, "java", 1, 1, **{PRODUCED: "200000"})
    records, size_bytes, limit = 100, 10_000, 200_000
    began = time.monotonic()
    said = kafka_tool(
        "producer-perf-test", "--bootstrap-server", kavka.bootstrap, "--topic", "java", "--num-records", str(records),
        "--record-size", str(size_bytes), "--throughput", "-1", "--command-property", "acks=all",
    )  # fmt: skip
    assert f"{records} records sent" in said
    assert time.monotonic() - began > records * size_bytes / limit - WINDOW_SECONDS - 1
    consumer = Consumer({"bootstrap.servers": kavka.bootstrap, "group.id": "ends"})
    assert consumer.get_watermark_offsets(TopicPartition("java", 0), timeout=TIMEOUT_SECONDS) == (0, records)
    consumer.close()


@pytest.mark.java
def test_apache_kafka_takes_the_directory_over_unharmed_and_leaves_them(tmp_path: Path) -> None:
    kavka = start_kavka(tmp_path / "kavka")
    create_topic(kavka, "tooled", 1, 1, **{PRODUCED: "1000000", FETCHED: "2000000"})
    producer = Producer({"bootstrap.servers": kavka.bootstrap})
    producer.produce("tooled", b"kept")
    assert producer.flush(TIMEOUT_SECONDS) == 0
    assert kavka.stop() == 0
    program = start_apache_kafka(tmp_path / "kafka")
    program.stop()
    kafka = swapped(kavka, program)
    kafka.start()
    try:
        bootstrap = ("--bootstrap-server", kafka.bootstrap)
        read = ("--topic", "tooled", "--from-beginning", "--max-messages", "1")
        assert kafka_tool("console-consumer", *bootstrap, *read) == "kept\n"
        configs_tool(kafka, "--alter", "--add-config", "retention.ms=3600000")
        described = configs_tool(kafka, "--describe")
        assert "retention.ms=3600000" in described
        assert PRODUCED not in described
    finally:
        kafka.stop()
    kavka.start()
    try:
        described = configs_tool(kavka, "--describe")
        for config in (f"{PRODUCED}=1000000", f"{FETCHED}=2000000", "retention.ms=3600000"):
            assert config in described
    finally:
        kavka.stop()
