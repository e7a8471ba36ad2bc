"""`client.quota.callback.class` with a real client: the tenant of the example has one budget over its clients.

A budget of 100 kB/s lets 1 MB pass at once. Each client sends 700 kB, the second of the tenant 910 kB at most, so two
with a budget each would not wait.
"""

import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer, ThrottleEvent

from tests.conformance.quotas.speaker import Speaker
from tests.support.servers import Server, free_port, start_kavka
from tests.support.topics import create_topic
from tests.support.waiting import until_outside

TOPIC = "of-tenants"
LIMIT = 100_000
PIECE_BYTES, PIECES, PIECES_ALONE = 70_000, 10, 13
WAITING = "\nkavka_quota_callback_waiting 0.0"
EXAMPLES = Path(__file__).parents[3] / "examples"


class Client:
    """librdkafka's producer, which notes what it is told to wait."""

    def __init__(self, bootstrap: str, client_id: str) -> None:
        self.told_ms = 0.0
        options = {"bootstrap.servers": bootstrap, "client.id": client_id, "throttle_cb": self._told, "linger.ms": 0}
        self._producer = Producer(options)

    def _told(self, event: ThrottleEvent) -> None:
        self.told_ms = max(self.told_ms, event.throttle_time * 1000)

    def send(self, size_bytes: int) -> None:
        self._producer.produce(TOPIC, bytes(size_bytes))
        assert self._producer.flush(30) == 0


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, start_one: Callable[..., Server]) -> tuple[Server, Callable[[], str]]:
    """A broker with the callback of the example, and its page of metrics."""
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))
    admin = f"127.0.0.1:{free_port()}"
    name = "tenant_quota:TenantQuotas"
    server = start_one({"client.quota.callback.class": name, "kavka.admin.listener": admin})

    def read() -> str:
        with urllib.request.urlopen(f"http://{admin}/metrics", timeout=60) as answer:
            text: bytes = answer.read()
        return text.decode()

    return server, read


@pytest.fixture
def start_one(tmp_path: Path) -> Callable[..., Server]:
    def start(settings: dict[str, str]) -> Server:
        return start_kavka(tmp_path / "broker", settings)

    return start


def test_a_tenant_has_one_budget_over_its_clients(page: tuple[Server, Callable[[], str]]) -> None:
    server, metrics = page
    try:
        create_topic(server, TOPIC)
        with Speaker(server.address, "admin") as admin:
            admin.set_quotas([("user", "acme")], {"producer_byte_rate": LIMIT})
        clients = [Client(server.bootstrap, name) for name in ("acme.etl", "acme.web", "apex.etl")]
        for client in clients:
            client.send(1)  # from here on the callback is asked for it
        until_outside(lambda: WAITING in metrics())
        first, second, other = clients
        for client in (first, other):
            for _ in range(PIECES):
                client.send(PIECE_BYTES)
        for _ in range(PIECES_ALONE):
            if second.told_ms <= 1000:
                second.send(PIECE_BYTES)
        assert first.told_ms == other.told_ms == 0
        assert second.told_ms > 1000
        assert 'user="tenant=acme"' in metrics()
    finally:
        server.kill()
