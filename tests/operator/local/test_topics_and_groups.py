"""`kavka topics` and `kavka groups` of a cluster with topics that a client made and a group that is behind."""

import json
from typing import Any

from confluent_kafka import Consumer, Producer

from tests.operator.local.support import Kavka, wait_until

RECORDS, READ = 1_000, 300


def test_topics_that_clients_made_and_a_group_that_is_behind(kavka: Kavka) -> None:
    code, said = kavka.run("up", "-d", "--ephemeral", "--port", "0", "-o", "json")
    assert code == 0, said
    bootstrap = json.loads(said)["bootstrapServers"]
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce("orders", key=str(number), value=bytes(100))
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "etl", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["orders"])
        read = 0

        def has_read() -> bool:
            nonlocal read
            read += len(consumer.consume(READ - read, 1))
            return read == READ

        wait_until(has_read, "some records are read")
        consumer.commit(asynchronous=False)
        for words, has_resource in (((), False), (("--bootstrap", bootstrap), None)):  # None: unknown
            (found,) = [one for one in told(kavka, "topics", *words)["topics"] if one["name"] == "orders"]
            assert (found["records"], found["hasResource"]) == (RECORDS, has_resource)
            assert found["sizeBytes"] > RECORDS * 100
            (group,) = told(kavka, "groups", *words)["groups"]
            assert (group["name"], group["state"], group["lag"]) == ("etl", "Stable", RECORDS - READ)
            assert len(group["members"]) == 1
    finally:
        consumer.close()
    assert "orders   0           0        0          0         0       1,000" in kavka.run("topics", "-t", "orders")[1]
    assert kavka.run("topics", "-t", "none") == (1, "error: there is no topic none, or it may not be described\n")
    assert kavka.run("groups", "-g", "none") == (1, "error: there is no group none, or it may not be described\n")


def told(kavka: Kavka, *words: str) -> dict[str, list[dict[str, Any]]]:
    """What a command tells programs."""
    code, said = kavka.run(*words, "-o", "json")
    assert code == 0, said
    found: dict[str, list[dict[str, Any]]] = json.loads(said)
    return found
