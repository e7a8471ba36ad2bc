"""Document 000's precedence with users that have logged in: of the eight levels the most specific holds, larger or
smaller, for clients that we did not write. A commit plays two of the levels, for each waits until it is
throttled: all of them are played without clients by tests/property/quota.

`KAVKA_TEST_SERVER=apache-kafka` runs it against the real thing.
"""

import time
from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import Producer

from kavka_broker.core.quota.entity import DEFAULT, Entity
from kavka_operator.domain.plan import AlterQuota, SetCredential
from kavka_operator.kafka.client import KafkaClient
from tests.conformance.security.test_scram import of_librdkafka, settings
from tests.support.drawn import in_turn
from tests.support.servers import Server, free_port, is_apache_kafka, start_server
from tests.support.topics import create_topic

MECHANISM, PASSWORD = "SCRAM-SHA-512", "pass"
LOW, HIGH = 10_000.0, 1e9
RECORDS, RECORD_BYTES = 6, 20_000
ANSWER_SECONDS_MAX = 60.0
TOPIC = "t"
KEY = "producer_byte_rate"
SHORT_WINDOWS = {"quota.window.num": "2", "quota.window.size.seconds": "1"}

LEVELS = (
    Entity("user1", "client1"),
    Entity("user1", DEFAULT),
    Entity("user1", None),
    Entity(DEFAULT, "client1"),
    Entity(DEFAULT, DEFAULT),
    Entity(DEFAULT, None),
    Entity(None, "client1"),
    Entity(None, DEFAULT),
)
"""What can limit client1 of user1, the most specific first."""


@pytest.fixture(scope="module")
def sasl_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, sasl_port: int) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("levels")
    found = start_server(directory, {**settings(free_port(), sasl_port, free_port()), **SHORT_WINDOWS})
    create_topic(found, TOPIC)
    yield found
    found.kill()


@pytest.fixture
def client(server: Server) -> Iterator[KafkaClient]:
    """An admin client, without any quota before and after."""
    found = KafkaClient(server.bootstrap)
    found.perform_many([SetCredential(user, MECHANISM, 4096, PASSWORD) for user in ("user1", "user2")])
    yield found
    found.perform_many([AlterQuota(entity, {}, (KEY,)) for entity in found.look(()).quotas])
    found.close()


def limit(client: KafkaClient, limits: Sequence[AlterQuota]) -> None:
    """Set limits, and let them be in force."""
    assert not any(client.perform_many(limits))
    if is_apache_kafka():
        time.sleep(1)  # it answers when the limit is written; its broker applies it a little later


def is_throttled(port: int, user: str, client_id: str) -> bool:
    """Whether a producer that has logged in is held back at 60 KB a second."""
    times: list[float] = []
    told = {"throttle_cb": lambda event: times.append(event.throttle_time), "client.id": client_id}
    producer = Producer(of_librdkafka(port, MECHANISM, user, PASSWORD, **{"linger.ms": 0, **told}))
    for _ in range(RECORDS):
        producer.produce(TOPIC, b"x" * RECORD_BYTES)
        assert producer.flush(ANSWER_SECONDS_MAX) == 0
    producer.poll(0)
    return max(times, default=0.0) > 0


@pytest.mark.parametrize("level", in_turn(range(len(LEVELS)), 4))
def test_of_eight_levels_the_most_specific_holds(client: KafkaClient, sasl_port: int, level: int) -> None:
    """It is the smallest first, then the largest, whatever those below it are."""
    for here, below in ((LOW, HIGH), (HIGH, LOW)):
        limits = [AlterQuota(LEVELS[level], {KEY: here})]
        limits += [AlterQuota(entity, {KEY: below}) for entity in LEVELS[level + 1 :]]
        limit(client, limits)
        assert is_throttled(sasl_port, "user1", "client1") == (here == LOW)


def test_the_worked_example_of_the_document(client: KafkaClient, sasl_port: int) -> None:
    """client1 at 1 KB and user1 at 1 MB: user1's client1 has 1 MB, user2's has 1 KB, until the pair has a limit."""
    limit(client, [AlterQuota(Entity(None, "client1"), {KEY: LOW}), AlterQuota(Entity("user1"), {KEY: HIGH})])
    assert not is_throttled(sasl_port, "user1", "client1")
    assert is_throttled(sasl_port, "user2", "client1")
    assert not is_throttled(sasl_port, "user2", "client2")
    limit(client, [AlterQuota(Entity("user1", "client1"), {KEY: LOW})])
    assert is_throttled(sasl_port, "user1", "client1")
    assert not is_throttled(sasl_port, "user1", "client2")
