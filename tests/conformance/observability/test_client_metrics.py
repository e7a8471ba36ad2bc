"""Client metrics with those who use them: Apache Kafka's tools subscribe, real clients push, a scrape shows it."""

import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from kavka_broker.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tests.support.asking import ask
from tests.support.collector import Collector, collecting
from tests.support.programs import kafka_tool, promtool
from tests.support.servers import Server, free_port
from tests.support.topics import create_topic
from tests.support.waiting import until_outside
from tools.kafka_jars import class_path
from tools.kafka_jvm import java

pytestmark = [pytest.mark.java, pytest.mark.slow]

LEVEL, FLOW = "kavka_client_telemetry_level", "kavka_client_telemetry_flow_total"
SECONDS_MAX = 300.0  # a client of Java takes some to begin, and may be needed more than once
ADMIN = f"127.0.0.1:{free_port()}"


@pytest.fixture
def broker(start: Callable[..., Server]) -> Server:
    return start(kavka_admin_listener=ADMIN)


def tool(server: Server, name: str, *arguments: str, stdin: str = "") -> str:
    return kafka_tool(name, "--bootstrap-server", server.bootstrap, *arguments, stdin=stdin)


def scraped() -> str:
    with urllib.request.urlopen(f"http://{ADMIN}/metrics", timeout=60) as answer:
        return str(answer.read().decode())


def pushed(client_id: str) -> dict[tuple[str, str, str], float]:
    """What a client has pushed: family, software and metric, with the value."""
    return {
        (sample.name, sample.labels["client_software"], sample.labels["metric"]): sample.value
        for family in text_string_to_metric_families(scraped())
        for sample in family.samples
        if sample.name in (LEVEL, FLOW) and sample.labels["client_id"] == client_id
    }


def answered() -> list[str]:
    """How often clients asked what to push, and pushed, with the errors that they were told."""
    apis = ("GetTelemetrySubscriptions", "PushTelemetry")
    return [line for line in scraped().splitlines() if line.startswith("kavka_request") and any(map(line.count, apis))]


def subscribe(server: Server, name: str, metrics: str) -> None:
    tool(server, "client-metrics", "--alter", "--name", name, "--metrics", metrics, "--interval", "100")


def test_kafkas_tools_create_describe_list_and_delete_a_subscription(broker: Server) -> None:
    name = ("--name", "lag")
    settings = ("--metrics", "org.apache.kafka.consumer.,x", "--interval", "5000", "--match", "client_id=a.*")
    tool(broker, "client-metrics", "--alter", *name, *settings)
    assert tool(broker, "client-metrics", "--list").split() == ["lag"]
    for described in (
        tool(broker, "client-metrics", "--describe", *name),
        tool(broker, "configs", "--describe", "--entity-type", "client-metrics", "--entity-name", "lag"),
    ):
        assert "metrics=org.apache.kafka.consumer.,x" in described
        assert "interval.ms=5000" in described
        assert "match=client_id=a.*" in described
    entity = ("--entity-type", "client-metrics", "--entity-name", "lag")
    tool(broker, "configs", "--alter", *entity, "--add-config", "interval.ms=100,metrics=[y,z]")
    tool(broker, "configs", "--alter", *entity, "--delete-config", "match")
    described = tool(broker, "client-metrics", "--describe")
    assert "metrics=y,z" in described
    assert "interval.ms=100" in described
    assert "match=client_id" not in described
    tool(broker, "client-metrics", "--delete", *name)
    assert tool(broker, "client-metrics", "--list").split() == []


def test_kafkas_tool_takes_odd_names(broker: Server) -> None:
    names = ["*", "<default>", "a b", "a/b", "ünï"]
    for name in names:
        alter_by_message(broker, name)
    assert sorted(tool(broker, "client-metrics", "--list").splitlines()) == names
    described = tool(broker, "client-metrics", "--describe")
    assert [name for name in names if f"Client metrics configs for {name} are" not in described] == []
    tool(broker, "client-metrics", "--delete", "--name", "a b")
    assert "a b" not in tool(broker, "client-metrics", "--list").splitlines()


def alter_by_message(server: Server, name: str) -> None:
    """Make a subscription without the seconds that a tool takes to start."""
    configs = [AlterableConfig("metrics", 0, "x")]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(16, name, configs)])
    (answer,) = ask(server.address, request, IncrementalAlterConfigsResponse).responses
    assert answer.error_code == 0


def test_what_java_clients_push_is_shown(broker: Server, name: str) -> None:
    subscribe(broker, "all", "*")
    create_topic(broker, name)
    software = "apache-kafka-java/4.3.1"
    sent = (FLOW, software, "org.apache.kafka.producer.record.send.total")
    consumed = (FLOW, software, "org.apache.kafka.consumer.fetch.manager.records.consumed.total")

    def have_sent() -> bool:
        """Whether this client, or one before it, has lived for long enough to have asked before its end."""
        tool(broker, "console-producer", "--topic", name, stdin="a\nb\nc\n")
        return pushed("console-producer").get(sent, 0) >= 3

    seconds: list[float] = []

    def have_consumed() -> bool:
        """Whether a consumer has pushed while it waited for more: for the answer to its last push none waits."""
        begun = time.monotonic()
        tool(broker, "console-consumer", "--topic", name, "--from-beginning", "--timeout-ms", "3000")
        seconds.append(time.monotonic() - begun)
        return pushed("console-consumer").get(consumed, 0) >= 3

    until_outside(have_sent, SECONDS_MAX)
    room = (LEVEL, software, "org.apache.kafka.producer.buffer.total.bytes")
    assert pushed("console-producer")[room] == 32 * 1024 * 1024  # now: a minute after its last push it is gone
    try:
        until_outside(have_consumed, SECONDS_MAX)
    except AssertionError as error:
        took = ", ".join(f"{each:.1f}" for each in seconds)
        raise AssertionError(f"consumers took {took} s; {answered()}; {pushed('console-consumer')}") from error
    assert promtool("check", "metrics", stdin=scraped()) == ""


def test_what_librdkafka_pushes_is_shown(broker: Server, name: str) -> None:
    subscribe(broker, "producers", "org.apache.kafka.producer.")
    create_topic(broker, name)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "app"})

    def has_pushed() -> bool:
        producer.produce(name, b"x")
        producer.flush(60)
        return bool(pushed("app"))

    until_outside(has_pushed)
    found = pushed("app")
    assert {software.partition("/")[0] for _, software, _ in found} == {"confluent-kafka-python"}
    assert all(metric.startswith("org.apache.kafka.producer.") for _, _, metric in found)


def passed_on(collector: Collector) -> list[tuple[str, str, bytes]]:
    """What a collector got of the producer; the client that makes topics pushes too."""
    return [received for received in collector.received if b"passed-on" in received[2]]


def test_what_is_passed_on_is_metrics_to_kafkas_own_reader(start: Callable[..., Server], name: str) -> None:
    with collecting() as collector:
        server = start(kavka_telemetry_otlp_endpoint=collector.endpoint)
        subscribe(server, "all", "*")
        create_topic(server, name)
        producer = Producer({"bootstrap.servers": server.bootstrap, "client.id": "passed-on"})
        producer.produce(name, b"x")
        producer.flush(60)
        until_outside(lambda: passed_on(collector))
        path, kind, push = passed_on(collector)[0]

    assert (path, kind) == ("/v1/metrics", "application/x-protobuf")
    program = Path(__file__).with_name("ReadMetrics.java")
    ran = subprocess.run(
        [*java("256M"), "-cp", class_path(), str(program)], input=push, capture_output=True, check=True
    )
    said = ran.stdout.decode().splitlines()
    assert "attribute client_id=passed-on" in said
    assert "attribute client_source_address=127.0.0.1" in said
    assert any(line.startswith("metric org.apache.kafka.producer.") for line in said)


def test_pushes_are_not_offered_where_nobody_asks_for_them(broker: Server) -> None:
    said = tool(broker, "broker-api-versions")
    assert "GetTelemetrySubscriptions(71): UNSUPPORTED" in said
    assert "PushTelemetry(72): UNSUPPORTED" in said
