"""`kavka quota recommend` beside a client that a quota holds back, and one that nothing limits."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
import yaml
from confluent_kafka import Producer

from kavka_broker.core.quota.entity import Entity
from kavka_operator.domain.plan import AlterQuota
from kavka_operator.kafka.broker_metrics import read_pages
from kavka_operator.kafka.client import KafkaClient
from tests.support.servers import Server, free_port, is_apache_kafka
from tests.support.topics import create_topic
from tests.support.waiting import until_outside
from tests.unit.operator.person import run

LIMIT = 100_000


def produce(server: Server, topic: str, client_id: str, done: threading.Event) -> int:
    """Produce until it is enough; how many records."""
    settings = {"bootstrap.servers": server.bootstrap, "client.id": client_id, "log_level": 0}
    producer, count = Producer({**settings, "batch.size": 20_000, "queue.buffering.max.messages": 200}), 0
    while not done.is_set():
        with suppress(BufferError):
            producer.produce(topic, b"x" * 10_000)  # however seldom a busy machine has its turn: more than the limit
            count += 1
        producer.poll(0.005)
    producer.purge()
    producer.flush(60)
    return count


def are_busy(pages: str) -> bool:
    """Whether both clients are known, and the one is held back."""
    told = {
        key.client_id: figures
        for page in read_pages([f"http://{pages}/metrics"]).values()
        for key, figures in page.clients.items()
        if key.kind == "produce"
    }
    return {"held", "free"} <= told.keys() and (told["held"].demand or 0) > (told["held"].rate or 0)


@pytest.mark.skipif(is_apache_kafka(), reason="Apache Kafka has no metrics page")
def test_a_held_client_is_recommended_more_than_it_has_and_a_free_one_is_observed(
    start: Callable[..., Server], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kavka_operator.kafka.broker_metrics.TIMEOUT_SECONDS", 60.0)  # of three pages none is left out
    pages = f"127.0.0.1:{free_port()}"
    server = start(kavka_admin_listener=pages, quota_window_num="2")
    create_topic(server, name)
    admin = KafkaClient(server.bootstrap)
    admin.perform(AlterQuota(Entity(None, "held"), {"producer_byte_rate": float(LIMIT), "request_percentage": 50.0}))
    admin.close()
    done = threading.Event()
    with ThreadPoolExecutor() as pool:
        busy = [pool.submit(produce, server, name, client_id, done) for client_id in ("held", "free")]
        try:
            until_outside(lambda: are_busy(pages))
            code, said = run("quota", "recommend", "--bootstrap", server.bootstrap, "--metrics", pages, "--for", "4s")
        finally:
            done.set()
        assert all(each.result() > 0 for each in busy)
    assert code == 0, said
    text = said[said.index("# Limits") :]
    found = {resource["metadata"]["name"]: resource["spec"] for resource in yaml.safe_load_all(text) if resource}
    assert found["recommended-held"]["mode"] == "Enforce"
    assert found["recommended-held"]["limits"]["requestPercentage"] == 50.0
    assert found["recommended-free"]["mode"] == "Observe"
    assert "now 100k, enforced" in text
    assert "estimated from" in text
    (wanted,) = (line for line in text.splitlines() if "now 100k" in line)
    assert "producerByteRate: demand" in wanted
