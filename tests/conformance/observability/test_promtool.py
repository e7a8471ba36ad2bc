"""What a broker that has served a throttled client shows, as Prometheus' own checker reads it."""

import urllib.request
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from tests.support.programs import kafka_tool, promtool
from tests.support.servers import Server, free_port
from tests.support.topics import create_topic

pytestmark = [pytest.mark.promtool, pytest.mark.java]


def test_promtool_has_nothing_to_say(start: Callable[..., Server], name: str) -> None:
    admin = f"127.0.0.1:{free_port()}"
    server = start(kavka_admin_listener=admin)
    create_topic(server, name)
    limit = ("--alter", "--add-config", "producer_byte_rate=1000", "--entity-type", "clients", "--entity-name", "etl")
    kafka_tool("configs", "--bootstrap-server", server.bootstrap, *limit)
    producer = Producer({"bootstrap.servers": server.bootstrap, "client.id": "etl"})
    producer.produce(name, b"x" * 50_000)
    assert producer.flush(60) == 0

    with urllib.request.urlopen(f"http://{admin}/metrics", timeout=60) as answer:
        text = answer.read().decode()

    assert 'kavka_client_throttle_seconds_total{client_id="etl",quota_type="produce",user=""}' in text
    assert promtool("check", "metrics", stdin=text) == ""
