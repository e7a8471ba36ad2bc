"""Real clients under a quota with the default window, on three replicas: what passes is what the quota allows.

A client may take ten seconds' worth at once, the limit from then on, and with each connection one request too many in
each window. Nothing here depends on how fast the machine is: what was taken is looked at before the time.
`python -m bench.quotas` shows the rates over minutes, beside Apache Kafka.
"""

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from bench.quota_clients import (
    REQUEST_BYTES,
    Client,
    PipelinedFetcher,
    PipelinedProducer,
    RdkafkaConsumer,
    RdkafkaProducer,
)
from tests.conformance.quotas.speaker import Speaker
from tests.support.nodes import Nodes, cluster
from tests.support.topics import create_topic
from tests.support.waiting import until_outside

pytestmark = [pytest.mark.slow, pytest.mark.extended]

LIMIT = 512 * 1024
WINDOW_SECONDS = 10
SECONDS = 25.0
BATCH_BYTES = 1_000_000  # librdkafka's batch.size
ANSWER_BYTES = 512 * 1024  # what the fetches of the bare socket ask for
MESSAGE_BYTES = 1024 * 1024  # what librdkafka asks for of a partition
FILLED_BYTES = 8 * 1024 * 1024

Make = Callable[[Nodes, str], Client]

#: By client id: the client, the quota that it is under, and the largest request or answer.
CLIENTS: dict[str, tuple[Make, str, int]] = {
    "large-records": (lambda n, t: RdkafkaProducer(n.bootstrap, t, t, 16 * 1024), "producer_byte_rate", BATCH_BYTES),
    "small-records": (lambda n, t: RdkafkaProducer(n.bootstrap, t, t, 1024), "producer_byte_rate", BATCH_BYTES),
    "pipelined": (lambda n, t: PipelinedProducer(port(n, t), t, t, 64), "producer_byte_rate", REQUEST_BYTES),
    "consumer": (lambda n, t: RdkafkaConsumer(n.bootstrap, t, t), "consumer_byte_rate", MESSAGE_BYTES),
    "fetches": (lambda n, t: PipelinedFetcher(port(n, t), t, t, 16), "consumer_byte_rate", ANSWER_BYTES),
}


def port(nodes: Nodes, topic: str) -> int:
    leader = AdminClient({"bootstrap.servers": nodes.bootstrap}).list_topics(topic).topics[topic].partitions[0].leader
    return nodes[leader].address[1]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with cluster(tmp_path_factory.mktemp("over-time")) as running:
        yield running


def prepare(nodes: Nodes, name: str, key: str) -> None:
    """A topic for the client of this name, filled where it is to be read, and a quota."""
    create_topic(nodes[1], name, 1, 3)
    if key == "consumer_byte_rate":
        producer = Producer({"bootstrap.servers": nodes.bootstrap})
        for _ in range(FILLED_BYTES // 16_384):
            producer.produce(name, bytes(16_384))
        assert producer.flush(60) == 0
    with Speaker(nodes[1].address, "admin") as speaker:
        speaker.limit(name, key, LIMIT)


def test_what_passes_is_what_the_quota_allows(nodes: Nodes) -> None:
    for name, (_, key, _) in CLIENTS.items():
        prepare(nodes, name, key)
    for server in nodes.servers.values():
        with Speaker(server.address, "admin") as speaker:
            for name, (_, key, _) in CLIENTS.items():
                until_outside(lambda name=name, key=key: speaker.is_limited(name, key, LIMIT))  # type: ignore[misc]
    time.sleep(1)  # Apache Kafka applies it a little after it shows it
    began = time.monotonic()
    running = {name: make(nodes, name) for name, (make, _, _) in CLIENTS.items()}
    try:
        while time.monotonic() < began + SECONDS:
            time.sleep(0.5)
            for name, client in running.items():
                taken = client.taken
                elapsed = time.monotonic() - began
                windows = 1 + elapsed // WINDOW_SECONDS
                assert taken <= LIMIT * (elapsed + WINDOW_SECONDS) + CLIENTS[name][2] * windows, name
        for name, client in running.items():
            assert client.taken > LIMIT * WINDOW_SECONDS / 2, f"{name} has hardly sent anything"
    finally:
        for client in running.values():
            client.stop()
