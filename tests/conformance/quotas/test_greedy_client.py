"""A client that keeps to nothing: 300 connections with large requests, or 10,000 with small ones, 64 of them sent ahead
on each, deaf to `throttle_time_ms`, back at once when closed. It costs the broker a stated amount of memory, and no
other client a request.

The broker closes connections for `max.connections`, which the listener of brokers is not bound by: so it tells those of
the greedy client from those of its victim whatever the time that goes by.
"""

import resource
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

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(is_apache_kafka(), reason="Apache Kafka has no metrics page"),
    pytest.mark.extended,
]

GREEDY, VICTIM = "greedy", "victim"
REQUESTS = 64
ANSWERED_EACH = 128
"""Connections after which it waits for an answer: the kernel takes no more than its backlog at once."""
OTHER_FILES = 1_000
COME_SECONDS_MAX = 300.0  # ten thousand connections are work


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many connections, the size of each request, and how much memory each may cost the broker."""

    connections: int
    record_bytes: int
    left: int  # `max.connections` leaves so many, the broker's own to itself and the victim's among them
    bytes_max: int

    @property
    def memory_bytes_max(self) -> int:
        return self.connections * self.bytes_max + 16 * 1024 * 1024


CROWDS = (
    # A muted connection keeps what came in one reading; the rest is for objects and what the allocator holds. They grew
    # by 8 and 93 MB.
    Crowd(300, 16 * 1024, 50, SHARED_BYTES),
    Crowd(10_000, 1024, 9_700, 12 * 1024),
)
for crowd in CROWDS:
    sent_bytes = crowd.connections * REQUESTS * crowd.record_bytes
    assert sent_bytes > 3 * crowd.memory_bytes_max, "a broker that read it all would not be noticed"


def produce_request(size: int) -> ProduceRequest:
    data = [PartitionProduceData(0, build_batch([(None, bytes(size))]))]
    return ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[TopicProduceData(TOPIC, partition_data=data)])


def frames(record_bytes: int) -> bytes:
    header = RequestHeader(ProduceRequest.API_KEY, LAST_WITH_NAMES, 7, GREEDY)
    frame = encode_request_header(header) + encode(produce_request(record_bytes), LAST_WITH_NAMES)
    return (pack(">i", len(frame)) + frame) * REQUESTS


@dataclass(slots=True)
class Greedy:
    """All its connections, in one thread."""

    address: tuple[str, int]
    crowd: Crowd
    came: int = 0
    _selector: selectors.DefaultSelector = field(default_factory=selectors.DefaultSelector)
    _data: bytes = b""

    def __post_init__(self) -> None:
        self._data = frames(self.crowd.record_bytes)

    def run(self, ended: threading.Event) -> None:
        for number in range(self.crowd.connections):
            self._come(is_answered=number % ANSWERED_EACH == 0)
        while not ended.is_set():
            for key, events in self._selector.select(0.1):
                assert isinstance(key.fileobj, socket.socket)
                self._serve(key.fileobj, key.data, events)
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._selector.close()

    def has_come_again(self, times: int) -> bool:
        return self.came >= self.crowd.connections + times

    def _come(self, *, is_answered: bool = False) -> None:
        connection = socket.create_connection(self.address)
        self.came += 1
        data = memoryview(self._data)
        if is_answered:
            data = data[connection.send(data) :]
            connection.recv(1)
        connection.setblocking(False)
        self._selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, data)

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
        with urllib.request.urlopen(f"http://{self.pages}/metrics", timeout=60) as answer:
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
def many_files() -> Iterator[None]:
    """Allow this process, and the broker that it starts, a file for each connection."""
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(crowd.connections for crowd in CROWDS) + OTHER_FILES
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before, wanted), most))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))


@pytest.fixture
def target(tmp_path: Path, many_files: None) -> Iterator[Target]:
    brokers, clients, controller, pages = (free_port() for _ in range(4))
    listeners = {"PLAINTEXT": brokers, "CLIENTS": clients, "CONTROLLER": controller}
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items()),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in listeners),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "kavka.admin.listener": f"127.0.0.1:{pages}",
    }
    server = start_kavka(tmp_path / "broker", settings)
    try:
        yield Target(server, ("127.0.0.1", clients), f"127.0.0.1:{pages}")
    finally:
        server.kill()


@pytest.mark.parametrize("crowd", CROWDS, ids=lambda crowd: str(crowd.connections))
def test_a_greedy_client_costs_a_stated_memory_and_no_other_client_a_request(target: Target, crowd: Crowd) -> None:
    create_topic(target.server, TOPIC)
    with Speaker(target.server.address, "admin") as admin:
        admin.produce()
        admin.limit(GREEDY, "producer_byte_rate", 1)
    greedy, victim = Greedy(target.clients, crowd), Victim(target.server.address)
    Path(f"/proc/{target.server.pid}/clear_refs").write_text("5")  # the peak is of now
    before_bytes = peak_bytes(target.server.pid)

    with running(greedy, victim):
        for round_ in (1, 2):
            until_outside(lambda: target.held() == crowd.connections, COME_SECONDS_MAX)
            target.allow_connections(crowd.left)
            until_outside(partial(greedy.has_come_again, round_ * (crowd.connections - crowd.left)), COME_SECONDS_MAX)
            target.allow_connections(None)
        until_outside(lambda: target.held() == crowd.connections, COME_SECONDS_MAX)
        served = victim.served
        until_outside(lambda: victim.served > served)
    assert peak_bytes(target.server.pid) - before_bytes < crowd.memory_bytes_max
