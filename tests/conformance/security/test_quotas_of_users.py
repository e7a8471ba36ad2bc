"""Quotas of users that have logged in: the example of precedence that Kafka's designers give, and all eight levels.

"If client1 has a client quota of 1KB and user1 has a user quota of 1MB, when client1 is run by user1, the quota limit
will be 1MB. [...] On the other hand, client1 would have a quota of 1KB if it is run by user2 when user2 has no quota."

`KAVKA_TEST_SERVER=apache-kafka` runs it against the real thing.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.conformance.quotas.speaker import TOPIC, Speaker
from tests.conformance.security.test_plain import PASSWORDS, settings
from tests.support.programs import kafka_tool
from tests.support.servers import Server, free_port, is_apache_kafka, start_server
from tests.support.topics import create_topic

pytestmark = pytest.mark.java

KEY = "producer_byte_rate"
SMALL, LARGE = 1024, 1024 * 1024
USER, CLIENT = "user", "client-id"
USER_1, USER_2 = PASSWORDS
APPLIED_SECONDS = 1.0  # in Apache Kafka, whose broker answers before it applies a limit

#: From the least specific to the most: each takes over from the one before it, whether it is smaller or larger.
LEVELS: tuple[list[tuple[str, str | None]], ...] = (
    [(CLIENT, None)],
    [(CLIENT, "client1")],
    [(USER, None)],
    [(USER, None), (CLIENT, None)],
    [(USER, None), (CLIENT, "client1")],
    [(USER, USER_1)],
    [(USER, USER_1), (CLIENT, None)],
    [(USER, USER_1), (CLIENT, "client1")],
)


@dataclass(frozen=True, slots=True)
class Limited:
    """A broker of its own, where users log in."""

    server: Server
    port: int

    def is_throttled(self, user: str, client_id: str) -> bool:
        """Whether a user that sends more than the small limit allows, on a new connection, is told to wait."""
        with Speaker(("127.0.0.1", self.port), client_id) as speaker:
            speaker.log_in(user, PASSWORDS[user])
            return speaker.produce() > 0

    def alter(self, *arguments: str) -> None:
        """With Kafka's tool, as the document has it."""
        kafka_tool("configs", "--bootstrap-server", self.server.bootstrap, "--alter", *arguments)
        self.wait()

    def wait(self) -> None:
        if is_apache_kafka():
            time.sleep(APPLIED_SECONDS)


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    port = free_port()
    server = start_server(tmp_path_factory.mktemp("limited"), settings(free_port(), port, free_port()))
    create_topic(server, TOPIC)
    yield Limited(server, port)
    server.kill()


def entity(**names: str) -> list[str]:
    return [word for kind, name in names.items() for word in ("--entity-type", kind, "--entity-name", name)]


def test_the_user_quota_holds_and_not_the_smaller_one_of_its_client(limited: Limited) -> None:
    altered = [entity(clients="client1"), entity(users=USER_1)]
    limited.alter("--add-config", f"{KEY}={SMALL}", *altered[0])
    limited.alter("--add-config", f"{KEY}={LARGE}", *altered[1])
    assert not limited.is_throttled(USER_1, "client1")
    assert limited.is_throttled(USER_2, "client1"), "it has no quota, and its client has"
    assert not limited.is_throttled(USER_2, "client2"), "neither has one"
    altered.append(entity(users=USER_1, clients="client1"))
    limited.alter("--add-config", f"{KEY}={SMALL}", *altered[2])
    assert limited.is_throttled(USER_1, "client1"), "to enforce 1KB it takes the pair"
    assert not limited.is_throttled(USER_1, "client2")
    for words in altered:
        limited.alter("--delete-config", KEY, *words)
    assert not limited.is_throttled(USER_1, "client3")


def test_each_level_takes_over_from_the_one_below_it(limited: Limited) -> None:
    with Speaker(limited.server.address, "admin") as admin:
        for number, level in enumerate(LEVELS):
            is_small = number % 2 == 0
            admin.set_quotas(level, {KEY: float(SMALL if is_small else LARGE)})
            limited.wait()
            assert limited.is_throttled(USER_1, "client1") is is_small, f"level {8 - number}"
        for level in LEVELS:
            admin.set_quotas(level, {KEY: None})
