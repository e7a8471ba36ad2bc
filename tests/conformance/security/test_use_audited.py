"""The audit trail adds up to what clients of librdkafka counted themselves: records, bytes of a topic, and delays."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kavka_broker.core.audit.chain import Kind
from tests.conformance.security.test_audit import KEY, trail
from tests.support.programs import kafka_tool
from tests.support.servers import Server, start_kavka
from tests.support.topics import create_topic
from tests.support.waiting import until_outside

RECORDS = 5_000
SIZE = 1_000
LIMIT = 200_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    key = tmp_path / "audit.key"
    key.write_bytes(KEY.secret)
    found = start_kavka(tmp_path / "broker", {"kavka.audit.key.file": str(key), "num.partitions": "1"})
    yield found
    found.kill()


def produce(server: Server, topic: str, client_id: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap, "client.id": client_id, "linger.ms": 0})
    for number in range(records):
        producer.produce(topic, b"v" * SIZE, key=str(number))
        producer.poll(0)
    assert producer.flush(60) == 0


def consume(server: Server, topic: str, client_id: str, records: int) -> None:
    settings = {"bootstrap.servers": server.bootstrap, "client.id": client_id, "group.id": client_id}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    for _ in range(records):
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
    consumer.close()


def of_client(server: Server, client_id: str) -> list[dict[str, Any]]:
    events = [json.loads(entry.value) for entry in trail(server) if entry.value]
    return [event for event in events if event.get("actor", {}).get("app_name") == client_id]


def sums(events: list[dict[str, Any]], operation: str, name: str, key: str) -> int:
    chosen = [
        event
        for event in events
        if (event["api"]["operation"], event["resources"][0]["name"]) == (operation, name) and "unmapped" in event
    ]
    return sum(event["unmapped"]["kafka"].get(key, 0) for event in chosen)


def test_the_trail_adds_up_to_what_clients_counted(server: Server) -> None:
    create_topic(server, "orders")
    produce(server, "orders", "writer", RECORDS)
    consume(server, "orders", "reader", RECORDS)
    name = ("--entity-type", "clients", "--entity-name", "greedy")
    limit = ("--alter", *name, "--add-config", f"producer_byte_rate={LIMIT}")
    kafka_tool("configs", "--bootstrap-server", server.bootstrap, *limit)
    delays: list[int] = []
    settings = {"bootstrap.servers": server.bootstrap, "client.id": "greedy", "statistics.interval.ms": 100}
    told = Producer(settings | {"throttle_cb": lambda event: delays.append(round(event.throttle_time * 1000))})
    for _ in range(3_000):
        told.produce("orders", b"v" * SIZE)
        told.poll(0)
    assert told.flush(60) == 0

    server.stop()
    server.start()
    until_outside(lambda: any(entry.kind is Kind.END for entry in trail(server)))
    writer, reader, greedy = (of_client(server, client_id) for client_id in ("writer", "reader", "greedy"))
    assert sums(writer, "WRITE", "orders", "records") == RECORDS
    assert sums(writer, "WRITE", "orders", "bytes") > RECORDS * SIZE
    assert sums(reader, "READ", "orders", "bytes") >= sums(writer, "WRITE", "orders", "bytes")
    assert {event["actor"]["user"]["name"] for event in writer + reader} == {"ANONYMOUS"}
    held = [event for event in greedy if event["disposition_id"] == 14]
    kafka = held[0]["unmapped"]["kafka"]
    assert (kafka["quota_type"], kafka["quota_limit"]) == ("produce", LIMIT)
    assert held[0]["resources"][0]["type"] == "client_quota"
    assert delays
    # librdkafka tells the application of a delay when it changes: the trail has that one and may have more.
    assert max(event["unmapped"]["kafka"]["throttle_time_ms_max"] for event in held) >= max(delays)
    assert not [event for event in writer + reader if event["disposition_id"] == 14]
