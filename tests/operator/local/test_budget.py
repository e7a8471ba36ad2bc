"""A budget of the whole cluster on three real brokers: it goes where the traffic is, and to the living."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import urlopen

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from prometheus_client.parser import text_string_to_metric_families

from tests.operator.local.support import Kavka, wait_until

NODES = (0, 1, 2)
BUDGET = 600_000
ENTITY = 'client id "hungry"'
QUOTA = f"""
---
apiVersion: kavka.dev/v1alpha1
kind: ClientQuota
metadata: {{name: hungry}}
spec:
  clusterRef: {{name: quickstart}}
  entity: {{clientId: {{name: hungry}}}}
  limits: {{producerByteRate: {BUDGET}}}
  scope: Cluster
"""


def limit(kavka: Kavka, node: int) -> float:
    """What a broker allows the client now; nothing where it does not answer."""
    offsets = json.loads((kavka.cluster / "members.json").read_text())["portOffsets"]
    try:
        with urlopen(f"http://127.0.0.1:{kavka.metrics_port + offsets[str(node)]}/metrics", timeout=60) as answer:
            page = answer.read().decode()
    except OSError:
        return 0.0
    limits = [
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == "kavka_quota_limit" and sample.labels["entity"] == ENTITY
    ]
    return sum(limits)


def leader(kavka: Kavka, partition: int) -> int:
    found = AdminClient({"bootstrap.servers": ",".join(kavka.addresses())}).list_topics("flights", timeout=60)
    return int(found.topics["flights"].partitions[partition].leader)


@contextmanager
def hungry(kavka: Kavka, partition: int) -> Iterator[None]:
    """A client that sends to one partition as much as it may."""
    halt = threading.Event()
    client = Producer({"bootstrap.servers": ",".join(kavka.addresses()), "client.id": "hungry", "acks": 1})

    def send() -> None:
        while not halt.is_set():
            try:
                client.produce("flights", bytes(50_000), partition=partition)
            except BufferError:
                client.poll(0.05)
            client.poll(0)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        halt.set()
        thread.join()
        client.purge()


def test_a_budget_follows_the_traffic_and_leaves_the_dead(kavka: Kavka) -> None:
    kavka.up(kavka.file(brokers=3, replicas=3, more=QUOTA))
    wait_until(lambda: sum(limit(kavka, node) for node in NODES) >= BUDGET * 0.99, "the budget is divided")
    busy = leader(kavka, 0)
    with hungry(kavka, 0):
        wait_until(lambda: limit(kavka, busy) >= 0.95 * BUDGET, "the busy broker has nearly all of it")
        os.kill(kavka.pid(busy), signal.SIGSTOP)
        told: list[int] = []  # asked again, another broker may not have heard of the heir yet

        def has_heir() -> bool:
            told.append(leader(kavka, 0))
            return told[-1] not in {busy, -1}

        wait_until(has_heir, "another broker leads")
        heir = told[-1]
        wait_until(lambda: limit(kavka, heir) >= 0.9 * BUDGET, "the heir has nearly all of it")
        os.kill(kavka.pid(busy), signal.SIGCONT)
