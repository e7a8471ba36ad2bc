"""How fast connections may come: what is refused, described and done is that of Apache Kafka, asked in the same tests.

Above the rate of its address a connection is held and closed unheard; above that of a listener or of the broker it
waits, and is served. Where time is measured it has a least value only, that of the mechanism: with two samples of a
second, at most `limit * (seconds + 2)` and one more get through.
"""

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from struct import pack

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import incremental_alter_configs_request as altering
from kavka_broker.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kavka_broker.protocol.messages.describe_configs_response import DescribeConfigsResponse
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tests.conformance.quotas.speaker import Speaker
from tests.support.asking import ask
from tests.support.servers import Server, free_port, start_apache_kafka, start_kavka
from tests.support.waiting import until_outside
from tests.support.wire import ANSWER_SECONDS_MAX, header

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

BROKER, SET, DELETE = 4, 0, 1
RATE = "max.connection.creation.rate"
OF_CLIENTS = f"listener.name.clients.{RATE}"
LIMIT = 4
SPAN_SECONDS = 2
ELSEWHERE = "127.0.0.2"
API_VERSIONS = header(18, 0)


@dataclass(frozen=True, slots=True)
class Listening:
    """A broker with a listener for brokers, which is not bound by the broker's rate, and one for clients."""

    server: Server
    clients: tuple[str, int]


def start(starter: Callable[..., Server], directory: str, factory: pytest.TempPathFactory) -> Listening:
    first, second, controller = free_port(), free_port(), free_port()
    listeners = {"PLAINTEXT": first, "CLIENTS": second, "CONTROLLER": controller}
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items()),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in listeners),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "quota.window.num": str(SPAN_SECONDS),
    }
    return Listening(starter(factory.mktemp(directory), settings), ("127.0.0.1", second))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Listening, Listening]]:
    with ThreadPoolExecutor() as pool:
        theirs = pool.submit(start, start_apache_kafka, "kafka", tmp_path_factory)
        ours = start(start_kavka, "kavka", tmp_path_factory)
        pair = ours, theirs.result()
    yield pair
    for each in pair:
        each.server.kill()


# --- configurations -------------------------------------------------------------------------------------------------


def alter(server: Server, broker: str, key: str, value: str | None, *, validate_only: bool = False) -> ErrorCode:
    config = altering.AlterableConfig(key, DELETE if value is None else SET, value)
    resource = altering.AlterConfigsResource(BROKER, broker, [config])
    request = altering.IncrementalAlterConfigsRequest([resource], validate_only)
    (answer,) = ask(server.address, request, IncrementalAlterConfigsResponse).responses
    assert bool(answer.error_message) is bool(answer.error_code)
    return ErrorCode(answer.error_code)


def described(server: Server, broker: str, key: str) -> list[tuple[str, str | None, int, bool, int, list[str]]]:
    resource = DescribeConfigsResource(BROKER, broker, None)
    request = DescribeConfigsRequest([resource], include_synonyms=True)
    (answer,) = ask(server.address, request, DescribeConfigsResponse).results
    assert answer.error_code == 0
    return [
        (
            found.name, found.value, found.config_source, found.read_only, found.config_type,
            [f"{one.name}={one.value} of {one.source}" for one in found.synonyms],
        )
        for found in answer.configs
        if found.name == key
    ]  # fmt: skip


@pytest.mark.parametrize("broker", ["1", ""])
@pytest.mark.parametrize("key", [RATE, OF_CLIENTS, f"listener.name.plaintext.{RATE}"])
def test_a_rate_is_taken_or_refused_alike(both: tuple[Listening, Listening], key: str, broker: str) -> None:
    said = {
        value: [alter(each.server, broker, key, value, validate_only=True) for each in both]
        for value in ("-1", "0", "1", "16", "2147483647", "2147483648", "1.5", "abc", "")
    }
    assert {value: codes for value, codes in said.items() if codes[0] != codes[1]} == {}


def test_keys_of_a_listener_that_all_brokers_may_have_are_those_of_kafka(both: tuple[Listening, Listening]) -> None:
    said = {
        (broker, key): [alter(each.server, broker, f"listener.name.{key}", "7", validate_only=True) for each in both]
        for broker in ("", "1")
        for key in (
            "clients.max.connections",
            "clients.nope",
            "clients.num.partitions",
            "nosuch.nope",
            "nope",
            "",
            "a.",
        )
    }
    assert {asked: codes for asked, codes in said.items() if codes[0] != codes[1]} == {}
    assert {codes[0] for codes in said.values()} == {ErrorCode.NONE, ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize(("broker", "key"), [("1", RATE), ("", RATE), ("1", OF_CLIENTS), ("", OF_CLIENTS)])
def test_a_rate_is_described_alike(both: tuple[Listening, Listening], broker: str, key: str) -> None:
    def show(value: str) -> bool:
        ours, theirs = (described(each.server, broker, key) for each in both)
        return [found[1] for found in ours] == [value] and ours == theirs

    for value in ("1000000", "1000001"):
        for each in both:
            assert alter(each.server, broker, key, value) == 0
        until_outside(partial(show, value))
    for each in both:
        assert alter(each.server, broker, key, None) == 0
    until_outside(lambda: described(both[0].server, broker, key) == described(both[1].server, broker, key))


# --- connections ----------------------------------------------------------------------------------------------------


def come(address: tuple[str, int], count: int, source: str = "127.0.0.1") -> list[bool]:
    """Connect so many times at once, and ask on each; whether each was answered, and not closed."""
    with ExitStack() as opened:
        sockets = [
            opened.enter_context(socket.create_connection(address, ANSWER_SECONDS_MAX, (source, 0)))
            for _ in range(count)
        ]
        return [is_answered(one) for one in sockets]


def is_answered(connection: socket.socket) -> bool:
    try:
        connection.sendall(pack(">i", len(API_VERSIONS)) + API_VERSIONS)
        return bool(connection.recv(1))
    except (ConnectionResetError, BrokenPipeError):
        return False


@pytest.mark.parametrize("entity", [ELSEWHERE, None])
def test_above_the_rate_of_its_address_a_connection_is_closed(
    both: tuple[Listening, Listening], entity: str | None
) -> None:
    def play(each: Listening) -> None:
        with Speaker(each.server.address, "admin") as admin:
            admin.set_quotas([("ip", entity)], {"connection_creation_rate": LIMIT})
            until_outside(lambda: not all(come(each.clients, 4 * LIMIT, ELSEWHERE)))  # it is in force
            until_outside(lambda: all(come(each.clients, 1, ELSEWHERE)))  # those that were closed do not count
            began = time.monotonic()
            answered = come(each.clients, 40, ELSEWHERE)
            assert sum(answered) <= LIMIT * (time.monotonic() - began + SPAN_SECONDS) + 1
            if entity is not None:
                assert all(come(each.clients, 40)), "another address is not bound"
            admin.set_quotas([("ip", entity)], {"connection_creation_rate": None})
        until_outside(lambda: all(come(each.clients, 4 * LIMIT, ELSEWHERE)))

    with ThreadPoolExecutor() as pool:
        list(pool.map(play, both))


@pytest.mark.parametrize(("broker", "key"), [("", RATE), ("1", OF_CLIENTS)])
def test_above_the_rate_of_a_listener_connections_wait_and_are_served(
    both: tuple[Listening, Listening], broker: str, key: str
) -> None:
    def has_waited(each: Listening) -> bool:
        began, count = time.monotonic(), 13
        assert all(come(each.clients, count)), "it was closed"
        return time.monotonic() - began >= (count - 1) / LIMIT - SPAN_SECONDS

    def play(each: Listening) -> None:
        assert alter(each.server, broker, key, str(LIMIT)) == 0
        until_outside(lambda: has_waited(each))  # Apache Kafka applies it a little after it has answered
        assert alter(each.server, broker, key, None) == 0

    with ThreadPoolExecutor() as pool:
        list(pool.map(play, both))
