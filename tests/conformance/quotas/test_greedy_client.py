"""A client that keeps to nothing: 300 connections, 64 requests sent ahead on each, deaf to `throttle_time_ms`, back at
once when closed. It costs the broker a stated amount of memory, and no other client a request.

The broker closes connections for `max.connections`, which the listener of brokers is not bound by: so it tells those of
the greedy client from those of its victim whatever the time that goes by.
"""

import selectors
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from struct import pack

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kavka_broker.net.request_memory import SHARED_BYTES
from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header
from kavka_broker.protocol.messages import incremental_alter_configs_request as altering
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.record import build_batch
from tests.conformance.quotas.speaker import LAST_WITH_NAMES, TOPIC, Speaker
from tests.support.asking import ask
from tests.support.servers import Server, free_port, is_apache_kafka, start_kavka
from tests.support.topics import create_topic
from tests.support.waiting import until_outside

pytestmark = [pytest.mark.slow, pytest.mark.skipif(is_apache_kafka(), reason="Apache Kafka has no metrics page")]

GREEDY, VICTIM = "greedy", "victim"
CONNECTIONS = 300
REQUESTS = 64
RECORD_BYTES = 16 * 1024
LEFT = 50
"""Connections that `max.connections` leaves, the broker's own to itself and the victim's among them."""
MEMORY_BYTES_MAX = CONNECTIONS * 4 * SHARED_BYTES + 16 * 1024 * 1024
"""A muted connection keeps what came in one reading, of at most SHARED_BYTES; the rest is for objects and what the
allocator holds of connections that are gone. It grew by 48 MB at most, of these 95.
"""
SENT_BYTES = CONNECTIONS * REQUESTS * RECORD_BYTES
assert SENT_BYTES > 3 * MEMORY_BYTES_MAX, "a broker that read it all would not be noticed"


def produce_request(size: int) -> ProduceRequest:
    data = [PartitionProduceData(0, build_batch([(None, bytes(size))]))]
    return ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[TopicProduceData(TOPIC, partition_data=data)])


def frames() -> bytes:
    header = RequestHeader(ProduceRequest.API_KEY, LAST_WITH_NAMES, 7, GREEDY)
    frame = encode_request_header(header) + encode(produce_request(RECORD_BYTES), LAST_WITH_NAMES)
    return (pack(">i", len(frame)) + frame) * REQUESTS


@dataclass(slots=True)
class Greedy:
    """All its connections, in one thread."""

    address: tuple[str, int]
    data: bytes = field(default_factory=frames)
    came_again: int = 0
    _selector: selectors.DefaultSelector = field(default_factory=selectors.DefaultSelector)

    def run(self, ended: threading.Event) -> None:
        for _ in range(CONNECTIONS):
            self._come()
        while not ended.is_set():
            for key, events in self._selector.select(0.1):
                assert isinstance(key.fileobj, socket.socket)
                self._serve(key.fileobj, key.data, events)
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._selector.close()

    def has_come_again(self, times: int) -> bool:
        return self.came_again >= times

    def _come(self) -> None:
        connection = socket.create_connection(self.address)
        connection.setblocking(False)
        self._selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, memoryview(self.data))

    def _serve(self, connection: socket.socket, rest: memoryview, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                rest = rest[connection.send(rest) :]
                wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if rest else 0)
                self._selector.modify(connection, wanted, rest)
            if events & selectors.EVENT_READ and not connection.recv(65536):
                raise ConnectionResetError
        except BlockingIOError:
            return
        except OSError:
            self._selector.unregister(connection)
            connection.close()
            self.came_again += 1
            self._come()


@dataclass(slots=True)
class Victim:
    """A client within its quota, that asks again and again on one connection."""

    address: tuple[str, int]
    served: int = 0

    def run(self, ended: threading.Event) -> None:
        with Speaker(self.address, VICTIM) as speaker:
            while not ended.is_set():
                answer = speaker.ask(produce_request(100), ProduceResponse, LAST_WITH_NAMES)
                (partition,) = answer.responses[0].partition_responses
                assert (partition.error_code, answer.throttle_time_ms) == (0, 0)
                self.served += 1


@contextmanager
def running(*actors: Greedy | Victim) -> Iterator[None]:
    """Let actors run in threads of their own; what fails there, fails here."""
    ended, failures = threading.Event(), list[BaseException]()

    def run(actor: Greedy | Victim) -> None:
        try:
            actor.run(ended)
        except BaseException as failure:  # noqa: BLE001  (raised below)
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(actor,)) for actor in actors]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    for failure in failures:
        raise failure


@dataclass(frozen=True, slots=True)
class Target:
    server: Server
    clients: tuple[str, int]
    pages: str

    def held(self) -> float:
        """How many connections the quota holds back."""
        with urllib.request.urlopen(f"http://{self.pages}/metrics", timeout=20) as answer:
            families = text_string_to_metric_families(answer.read().decode())
        return sum(
            sample.value
            for family in families
            for sample in family.samples
            if sample.name == "kavka_quota_throttled_connections" and sample.labels["quota_type"] == "produce"
        )

    def allow_connections(self, count: int | None) -> None:
        config = altering.AlterableConfig(
            "max.connections", 1 if count is None else 0, None if count is None else str(count)
        )
        request = altering.IncrementalAlterConfigsRequest([altering.AlterConfigsResource(4, "", [config])])
        (answer,) = ask(self.server.address, request, IncrementalAlterConfigsResponse).responses
        assert answer.error_code == 0, answer.error_message


def peak_bytes(pid: int) -> int:
    """The most memory that a process has held."""
    (line,) = (one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    brokers, clients, controller, pages = (free_port() for _ in range(4))
    listeners = {"PLAINTEXT": brokers, "CLIENTS": clients, "CONTROLLER": controller}
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items()),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in listeners),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "socket.listen.backlog.size": str(2 * CONNECTIONS),
        "kavka.admin.listener": f"127.0.0.1:{pages}",
    }
    server = start_kavka(tmp_path / "broker", settings)
    try:
        yield Target(server, ("127.0.0.1", clients), f"127.0.0.1:{pages}")
    finally:
        server.kill()


def test_a_greedy_client_costs_a_stated_memory_and_no_other_client_a_request(target: Target) -> None:
    create_topic(target.server, TOPIC)
    with Speaker(target.server.address, "admin") as admin:
        admin.produce()
        admin.limit(GREEDY, "producer_byte_rate", 1)
    greedy, victim = Greedy(target.clients), Victim(target.server.address)
    Path(f"/proc/{target.server.pid}/clear_refs").write_text("5")  # the peak is of now
    before_bytes = peak_bytes(target.server.pid)

    with running(greedy, victim):
        for round_ in (1, 2):
            until_outside(lambda: target.held() == CONNECTIONS)
            target.allow_connections(LEFT)
            until_outside(partial(greedy.has_come_again, round_ * (CONNECTIONS - LEFT)))
            target.allow_connections(None)
        until_outside(lambda: target.held() == CONNECTIONS)
        served = victim.served
        until_outside(lambda: victim.served > served)
    assert peak_bytes(target.server.pid) - before_bytes < MEMORY_BYTES_MAX
