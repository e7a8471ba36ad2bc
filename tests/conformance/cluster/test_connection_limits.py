"""How many connections a broker takes, and what becomes of the others: Kavka and Apache Kafka do the same (KIP-402).

One of two listeners is that of brokers, which is protected. Each server has one network thread a listener, since Apache
Kafka looks in each thread apart for the connection that was idle the longest.
"""

import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kavka_broker.protocol.messages import incremental_alter_configs_request as altering
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tests.support.asking import ask_on
from tests.support.servers import Server, free_port, start_apache_kafka, start_kavka
from tests.support.wire import API_VERSIONS, Connection, header

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

BROKER, SET, DELETE = 4, 0, 1
CONNECTIONS_MAX = 4  # of all bounds that the tests set
SECONDS_MAX = 60.0


class Doors:
    """A server with a listener for brokers and one for clients."""

    def __init__(self, server: Server, clients: tuple[str, int]) -> None:
        self.server = server
        self._clients = clients
        self.admin = Connection(server.address, SECONDS_MAX)
        self._open: list[Connection] = []

    def inside(self) -> Connection:
        """A connection through the listener of brokers."""
        return self._connected(self.server.address)

    def outside(self) -> Connection:
        """A connection through the listener of clients."""
        return self._connected(self._clients)

    def _connected(self, address: tuple[str, int]) -> Connection:
        self._open.append(Connection(address, SECONDS_MAX))
        return self._open[-1]

    def close_all(self) -> None:
        while self._open:
            self._open.pop().close()

    def alter(self, values: dict[str, str | None], broker: str = "") -> None:
        """Set or delete broker configs, through a connection that stays and is counted."""
        changes = [
            altering.AlterableConfig(one, DELETE if value is None else SET, value) for one, value in values.items()
        ]
        request = altering.IncrementalAlterConfigsRequest([altering.AlterConfigsResource(BROKER, broker, changes)])
        (answer,) = ask_on(self.admin, request, IncrementalAlterConfigsResponse, 1).responses
        assert answer.error_code == 0, answer.error_message


@pytest.fixture(scope="module", params=["kavka", "apache-kafka"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    inside, outside, controllers = free_port(), free_port(), free_port()
    names = {"PLAINTEXT": inside, "OUTSIDE": outside, "CONTROLLER": controllers}
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in names.items()),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controllers}",
        "num.network.threads": "1",
    }
    start = start_kavka if request.param == "kavka" else start_apache_kafka
    server = start(Path(tmp_path_factory.mktemp("limits")), settings)
    doors = Doors(server, ("127.0.0.1", outside))
    try:
        yield doors
    finally:
        doors.admin.close()
        server.kill()


@pytest.fixture
def doors(running: Doors) -> Iterator[Doors]:
    """Only the client that alters configs is connected, and nothing is limited."""
    yield running
    running.close_all()
    running.alter(dict.fromkeys(("max.connections", "max.connections.per.ip", "max.connections.per.ip.overrides")))
    for broker in ("", "1"):
        running.alter({"listener.name.outside.max.connections": None}, broker)
    until(lambda: all(is_served(running.outside()) for _ in range(CONNECTIONS_MAX)))
    running.close_all()


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not done():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.02)


def ask(connection: Connection) -> None:
    connection.send_frame(header(API_VERSIONS, 0))


def is_served(connection: Connection) -> bool:
    try:
        ask(connection)
    except (BrokenPipeError, ConnectionResetError):
        return False
    return connection.receive() is not None


def serves(connection: Connection) -> Connection:
    assert is_served(connection), "closed without an answer"
    return connection


def waits(connection: Connection, other: Connection) -> bool:
    """Whether nothing is heard of a connection that has asked, not even its end, while another is served."""
    return all(is_served(other) for _ in range(3)) and not select.select([connection.socket], [], [], 0.5)[0]


def is_full(doors: Doors, count: int) -> bool:
    """Whether clients may have so many connections and no more; none of them stays."""
    served, last = [doors.outside() for _ in range(count)], doors.outside()
    full = all(is_served(one) for one in served)
    if full:
        ask(last)
        # A bound that comes meanwhile may close any of them: then it is looked at once more.
        full = waits(last, served[0]) or (is_served(served[0]) and last.is_closed())
    doors.close_all()
    return full


def test_a_connection_too_many_waits_and_is_served_when_another_ends(doors: Doors) -> None:
    doors.alter({"max.connections": "4"})
    until(lambda: is_full(doors, 3))
    clients = [serves(doors.outside()) for _ in range(3)]
    late = doors.outside()
    ask(late)
    assert waits(late, clients[0])
    clients.pop().close()
    assert late.receive() is not None
    assert all(is_served(client) for client in clients)


def test_for_a_broker_the_client_that_was_idle_the_longest_is_closed(doors: Doors) -> None:
    doors.alter({"max.connections": "4"})
    until(lambda: is_full(doors, 3))
    first, second, third = (serves(doors.outside()) for _ in range(3))
    # Each has to be idle for longer than the next, by any clock.
    for one in (second, first, third):
        time.sleep(0.05)
        serves(one)
    broker = serves(doors.inside())
    assert second.is_closed()
    assert all(is_served(one) for one in (first, third, broker))


def test_a_lower_bound_closes_those_that_are_too_many(doors: Doors) -> None:
    clients = []
    for _ in range(4):
        clients.append(serves(doors.outside()))
        time.sleep(0.05)
    doors.alter({"max.connections": "3"})
    assert clients[0].is_closed()
    assert clients[1].is_closed()
    assert all(is_served(client) for client in clients[2:])


@pytest.mark.parametrize("broker", ["", "1"])
def test_a_listener_has_a_bound_of_its_own(doors: Doors, broker: str) -> None:
    doors.alter({"listener.name.outside.max.connections": "1"}, broker)
    until(lambda: is_full(doors, 1))
    client, late = serves(doors.outside()), doors.outside()
    ask(late)
    serves(doors.inside())
    assert waits(late, client)
    doors.alter({"listener.name.outside.max.connections": None}, broker)
    assert late.receive() is not None


def test_an_address_is_counted_over_all_listeners(doors: Doors) -> None:
    doors.alter({"max.connections.per.ip": "2"})
    until(lambda: is_full(doors, 1))
    until(lambda: is_served(doors.outside()))  # the former ones are gone
    assert not is_served(doors.outside())
    assert not is_served(doors.inside())
    doors.close_all()
    until(lambda: is_served(doors.inside()))


def test_an_address_may_be_named_by_its_host(doors: Doors) -> None:
    doors.alter({"max.connections.per.ip.overrides": "localhost:2"})
    until(lambda: is_full(doors, 1))
    doors.alter({"max.connections.per.ip.overrides": "localhost:3"})
    until(lambda: is_full(doors, 2))
