"""Clients that nobody knows: no API answers them, and a thousand that guess wait as configured and hinder nobody.

`KAVKA_TEST_SERVER=apache-kafka` runs it against the real thing.
"""

import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Producer

from kavka_broker.protocol.codec import decode
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from tests.conformance.security.test_logins_agree import AUTHENTICATE, HANDSHAKE, PLAIN_1, VERSIONS, refused
from tests.conformance.security.test_plain import ANSWER_SECONDS_MAX, PASSWORDS, of_librdkafka, settings
from tests.support.servers import Server, free_port, is_apache_kafka, start_server
from tests.support.topics import create_topic
from tests.support.wire import Connection, header

DELAY_SECONDS = 0.5
GUESSES, AT_ONCE = 1_000, 250
WRONG = refused(b"\0alice\0wrong")[1]
SASL_AUTHENTICATION_FAILED = 58


@pytest.fixture(scope="module")
def sasl_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, sasl_port: int) -> Iterator[Server]:
    delay = {"connection.failed.authentication.delay.ms": str(int(DELAY_SECONDS * 1000))}
    found = start_server(
        tmp_path_factory.mktemp("strangers"), {**settings(free_port(), sasl_port, free_port()), **delay}
    )
    yield found
    found.kill()


def test_no_api_answers_who_has_not_logged_in(server: Server, sasl_port: int) -> None:
    """Of every API that the broker serves, in the oldest and the newest version."""
    del server
    address = ("127.0.0.1", sasl_port)
    with Connection(address) as connection:
        answer = connection.request(VERSIONS, 0, b"")
    assert answer is not None
    served = decode(ApiVersionsResponse, 0, memoryview(answer)[4:]).api_keys
    assert len(served) > 50
    for api in served:
        if api.api_key in {VERSIONS, HANDSHAKE}:
            continue
        for version in {api.min_version, api.max_version}:
            with Connection(address) as stranger:
                assert stranger.request(api.api_key, version, bytes(32)) is None, (api.api_key, version)


def test_a_thousand_guesses_wait_as_configured_and_hinder_nobody(server: Server, sasl_port: int, name: str) -> None:
    create_topic(server, name)
    for _ in range(GUESSES // AT_ONCE):
        with ExitStack() as stack:
            began = time.monotonic()
            guessing = [stack.enter_context(guess(sasl_port)) for _ in range(AT_ONCE)]
            producer = Producer(of_librdkafka(sasl_port, "alice", PASSWORDS["alice"]))
            producer.produce(name, b"x")
            assert producer.flush(ANSWER_SECONDS_MAX) == 0
            for connection in guessing:
                answer = connection.receive()
                assert answer is not None
                assert struct.unpack_from(">h", answer, 4)[0] == SASL_AUTHENTICATION_FAILED
                assert connection.receive() is None
            assert time.monotonic() - began >= DELAY_SECONDS
    if not is_apache_kafka():
        assert server.log_path.read_text().count("authentication.failed") < GUESSES / 2, "guesses fill no disk"


def guess(port: int) -> Connection:
    """A connection that has sent a wrong password, and waits for its answer."""
    connection = Connection(("127.0.0.1", port), ANSWER_SECONDS_MAX)
    assert isinstance(PLAIN_1, tuple)
    assert connection.request(*PLAIN_1) is not None
    assert isinstance(WRONG, tuple)
    connection.send_frame(header(AUTHENTICATE, 1) + WRONG[2])
    return connection
