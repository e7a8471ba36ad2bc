"""What throttled clients and idle connections hold of a broker, asked of Apache Kafka in the same tests.

- A connection ends when nothing has come or gone on it for `connections.max.idle.ms`, whatever it waits for. While
  it is throttled it is not read from, so that a client which is gone is not noticed either.
- A throttled full fetch is answered without a session: its client would not know of it.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from tests.conformance.quotas.speaker import LAST_WITH_NAMES, SIZE, TOPIC, Speaker
from tests.support.servers import Server, start_apache_kafka, start_kavka
from tests.support.topics import create_topic
from tests.support.wire import brokers_registered

pytestmark = [pytest.mark.slow, pytest.mark.extended]

IDLE_MS = 2_000
GONE_SECONDS_MAX = 60.0  # the delays below are of minutes
SLOW_BYTES = 4 * 1024 * 1024


@pytest.fixture(scope="module", params=[start_kavka, start_apache_kafka], ids=["kavka", "apache-kafka"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    start: Callable[..., Server] = request.param
    running = start(tmp_path_factory.mktemp("throttled"), {"connections.max.idle.ms": str(IDLE_MS)})
    try:
        prepare(running)
        yield running
    finally:
        running.kill()


def prepare(server: Server) -> None:
    """A topic with records to read, and a quota for a producer and a consumer."""
    create_topic(server, TOPIC)
    # It connects again where its first requests take longer than a connection may be idle.
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for _ in range(SLOW_BYTES * 4 // SIZE):
        producer.produce(TOPIC, bytes(SIZE))
    assert producer.flush(60) == 0
    with Speaker(server.address, "admin") as admin:
        admin.limit("slow-consumer", "consumer_byte_rate", 1000)
        admin.limit("slow-producer", "producer_byte_rate", 1000)  # the last, for it is waited for
    wait_until(lambda: throttles(server))


def throttles(server: Server) -> bool:
    """Apache Kafka answers when a limit is written; its broker applies it a little later."""
    with Speaker(server.address, "slow-producer") as producer:
        return producer.produce() > 0


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + GONE_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "not so after a long time"
        time.sleep(0.05)


def sockets_of(server: Server) -> int:
    return sum(is_socket(path) for path in Path(f"/proc/{server.pid}/fd").iterdir())


def is_socket(path: Path) -> bool:
    try:
        return str(path.readlink()).startswith("socket:")
    except FileNotFoundError:  # it was closed meanwhile
        return False


def fetch_request(max_wait_ms: int, offset: int, session_epoch: int = -1) -> FetchRequest:
    wanted = FetchPartition(0, fetch_offset=offset, partition_max_bytes=SLOW_BYTES * 4)
    return FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=SLOW_BYTES * 4, session_epoch=session_epoch,
        topics=[FetchTopic(TOPIC, partitions=[wanted])],
    )  # fmt: skip


def throttled(server: Server) -> None:
    """Twenty clients that the broker is to hold for minutes, and that are gone."""
    for _ in range(20):
        with Speaker(server.address, "slow-producer") as producer:
            assert producer.produce() > GONE_SECONDS_MAX * 1000


def reading_nothing(server: Server) -> None:
    """Twenty clients that ask for more than their sockets hold, and read the size of it."""
    for _ in range(20):
        reader = stay(Speaker(server.address, "reader"))
        reader.send(fetch_request(0, 0), LAST_WITH_NAMES)
        assert reader.answer_bytes() > SLOW_BYTES


_staying: list[Speaker] = []


def stay(speaker: Speaker) -> Speaker:
    _staying.append(speaker)
    return speaker


@pytest.fixture(autouse=True)
def leave() -> Iterator[None]:
    yield
    while _staying:
        _staying.pop().close()


def end_offset(server: Server) -> int:
    with Speaker(server.address, "reader") as reader:
        answer = reader.ask(fetch_request(0, 0), FetchResponse, LAST_WITH_NAMES)
    return answer.responses[0].partitions[0].high_watermark


@pytest.mark.parametrize("come", [throttled, reading_nothing])
def test_a_connection_on_which_nothing_moves_ends_with_the_idle_time(
    server: Server, come: Callable[[Server], None]
) -> None:
    wait_until(lambda: brokers_registered(server.address) == 1)
    before = sockets_of(server)

    come(server)

    wait_until(lambda: sockets_of(server) < before + 5)


def test_a_long_poll_longer_than_the_idle_time_is_cut_off(server: Server) -> None:
    with Speaker(server.address, "waiting") as waiting:
        waiting.send(fetch_request(600_000, end_offset(server)), LAST_WITH_NAMES)
        assert waiting.is_closed()


def test_a_throttled_full_fetch_is_answered_without_a_session(server: Server) -> None:
    sessions, delays = [], []
    for _ in range(4):
        with Speaker(server.address, "slow-consumer") as consumer:
            answer = consumer.ask(fetch_request(0, 0, session_epoch=0), FetchResponse, LAST_WITH_NAMES)
        sessions.append(answer.session_id)
        delays.append(answer.throttle_time_ms)

    assert all(delays[1:]), "the quota was not reached"
    assert [session for session, delay in zip(sessions, delays, strict=True) if delay and session] == []
