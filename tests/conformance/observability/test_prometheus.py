"""Two brokers under load and a real Prometheus: every query of the dashboards and rules finds what it asks for."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kavka_broker.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kavka_broker.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kavka_broker.runtime.dashboard_names import DASHBOARD_FAMILIES
from tests.conformance.groups.share_consumers import Consumers
from tests.conformance.observability.watching import (
    CLUSTER,
    DASHBOARDS,
    Prometheus,
    alerts,
    prometheus,
    queries,
    recorded,
    textfiles,
    wait,
)
from tests.conformance.quotas.speaker import Speaker
from tests.support.nodes import Nodes, cluster, combined
from tests.support.servers import free_port
from tests.support.tokens import Issuer
from tests.support.topics import create_topic
from tests.unit.operator.person import run

pytestmark = [pytest.mark.promtool, pytest.mark.java]

NAME = re.compile(r"[a-zA-Z_:][\w:]*")
DOCS = Path(__file__).parents[3] / "docs"
OAUTH = "org.apache.kafka.common.security.oauthbearer"
TOPIC = "watched"
ALONE = {"enable.auto.commit": False}
LIMITS = {
    "producer_byte_rate": 20_000,
    "consumer_byte_rate": 20_000,
    "request_percentage": 50,
    "controller_mutation_rate": 100,
    "kavka_observed_producer_byte_rate": 10_000,
}


def take_tokens(nodes: Nodes, keys: Path) -> None:
    """Give each node a listener for clients with tokens, whose keys are in a file."""
    keys.write_bytes(Issuer(keys.with_suffix(".pem")).key_set())
    for server in nodes.servers.values():
        path = server.directory / "server.properties"
        text = path.read_text().replace("listeners=", f"listeners=TOKENS://127.0.0.1:{free_port()},", 1)
        text = text.replace("protocol.map=", "protocol.map=TOKENS:SASL_PLAINTEXT,")
        path.write_text(text + "".join(f"{key}={value}\n" for key, value in of_tokens(keys).items()))


def of_tokens(keys: Path) -> dict[str, str]:
    own = "listener.name.tokens.oauthbearer"
    return {
        "listener.name.tokens.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{own}.sasl.jaas.config": f"{OAUTH}.OAuthBearerLoginModule required;",
        f"{own}.sasl.server.callback.handler.class": f"{OAUTH}.OAuthBearerValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.issuer": "https://issuer.example",
        "sasl.oauthbearer.expected.audience": "kafka",
    }


def admin_ports(nodes: Nodes) -> list[str]:
    """Give each node a page of metrics; returns their addresses."""
    targets = []
    for server in nodes.servers.values():
        path, target = server.directory / "server.properties", f"127.0.0.1:{free_port()}"
        path.write_text(path.read_text().replace("kavka.admin.listener=", f"kavka.admin.listener={target}"))
        targets.append(target)
    return targets


def configure(nodes: Nodes) -> None:
    """Create a topic with two replicas, quotas on everybody, and one that they shadow."""
    create_topic(nodes[1], TOPIC, 2, 2)
    limits = [OpData(key, limit) for key, limit in LIMITS.items()]
    entries = [EntryData([EntityData("user", None)], limits), EntryData([EntityData("client-id", "etl")], limits)]
    entries.append(EntryData([EntityData("ip", None)], [OpData("connection_creation_rate", 1000)]))
    with Speaker(nodes[1].address, "admin") as admin:
        answer = admin.ask(AlterClientQuotasRequest(entries), AlterClientQuotasResponse, 1)
    assert [entry.error_code for entry in answer.entries] == [0, 0, 0]


@contextmanager
def busy(bootstrap: str) -> Iterator[None]:
    """Write and read more than the quotas allow until the block ends."""
    is_over = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "client.id": "etl", "linger.ms": 0})
        while not is_over.wait(0.02):
            for partition in (0, 1):
                producer.produce(TOPIC, b"x" * 2_000, partition=partition)
            producer.poll(0)
        producer.purge()

    def read() -> None:
        consumer = Consumer({"bootstrap.servers": bootstrap, "client.id": "report", "group.id": "none", **ALONE})
        consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in (0, 1)])
        while not is_over.is_set():
            consumer.poll(0.1)
            consumer.commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=True)
        consumer.close()

    threads = [threading.Thread(target=work, daemon=True) for work in (write, read)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join(60)


@contextmanager
def sharing(directory: Path, bootstrap: str) -> Iterator[None]:
    """Read in a share group until the block ends."""
    consumers = Consumers(directory, bootstrap, TOPIC, "shares")
    consumers.start()
    try:
        yield
    finally:
        consumers.end()


def test_every_query_of_the_dashboards_and_rules_finds_data(tmp_path: Path) -> None:
    collector = f"http://127.0.0.1:{free_port()}/v1/metrics"  # nobody is there
    key = tmp_path / "audit.key"
    key.write_bytes(b"k" * 32)
    settings = {
        "kavka.metrics.names": "confluent,strimzi",
        "kavka.telemetry.otlp.endpoint": collector,
        "kavka.audit.key.file": str(key),
        "kavka.audit.interval.ms": "1000",
        "default.replication.factor": "2",
        "kavka.group.lag.interval.ms": "500",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "2",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "2",
    }
    with cluster(tmp_path, combined(2), settings, started=False) as nodes:
        targets = admin_ports(nodes)
        take_tokens(nodes, tmp_path / "keys.json")
        nodes.start()
        configure(nodes)
        verified = ("--metrics-file", str(tmp_path / "audit.prom"), "--key-file", str(key))
        words = ("audit", "verify", "--bootstrap", nodes.bootstrap, "--cluster", CLUSTER, *verified)
        wait("the trail is verified", lambda: run(*words)[0])  # its topic is made after the start
        with (
            textfiles(tmp_path) as collected,
            prometheus(tmp_path, [*targets, collected]) as watching,
            busy(nodes.bootstrap),
            sharing(tmp_path, nodes.bootstrap),
        ):
            wait("both nodes and the file are read", lambda: not watching.is_up(3))
            wait("names that no /metrics has", lambda: unknown_names(watching))
            wait("queries without data", lambda: unanswered(watching))
            for expression in (*(alert["expr"] for alert in alerts().values()), *documented(), *marked()):
                watching.series(expression)  # raises where Prometheus does not understand it


def asked() -> dict[str, str]:
    """Every query of the dashboards, and the names of what is recorded."""
    shown = {f"{path.name}: {title}: {query}": query for path in DASHBOARDS for title, query in queries(path)}
    return {**shown, **{name: name for name in recorded()}}


def marked() -> list[str]:
    """The queries that mark moments: mostly there are none."""
    return [
        mark["expr"].replace("$cluster", CLUSTER)
        for path in DASHBOARDS
        for mark in json.loads(path.read_text())["annotations"]["list"]
    ]


def documented() -> list[str]:
    """The queries that the documents show; a line that begins with spaces goes on with the one above it."""
    pages = [page.read_text() for page in sorted(DOCS.rglob("*.md"))]
    blocks = [block for page in pages for block in re.findall(r"^```promql\n(.*?)^```", page, re.MULTILINE | re.DOTALL)]
    return [query for block in blocks for query in re.sub(r"\n +", " ", block).splitlines()]


def unanswered(watching: Prometheus) -> list[str]:
    return [what for what, query in asked().items() if not watching.series(query)]


def unknown_names(watching: Prometheus) -> list[str]:
    """What rules and dashboards name that neither a broker nor a rule gives."""
    expressions = [*asked().values(), *recorded().values(), *(alert["expr"] for alert in alerts().values())]
    wanted = {name for one in expressions for name in NAME.findall(one) if name.startswith(("kavka_", "kafka_"))}
    wanted |= {family.name for family in DASHBOARD_FAMILIES}
    return sorted(wanted - watching.names())
