"""Logins over raw frames, in order and out of order: Kavka and Apache Kafka answer with the same codes, or close."""

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conformance.security.test_plain import PASSWORDS, settings
from tests.support.servers import Server, free_port, start_apache_kafka, start_kavka
from tests.support.wire import Connection

pytestmark = pytest.mark.java

VERSIONS, HANDSHAKE, AUTHENTICATE, METADATA, HEARTBEAT = 18, 17, 36, 3, 12
RIGHT = b"\0alice\0" + PASSWORDS["alice"].encode()
CLOSED = "closed"
Step = tuple[int, int, bytes] | bytes


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def token(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


VERSIONS_0: Step = (VERSIONS, 0, b"")
PLAIN_1: Step = (HANDSHAKE, 1, text("PLAIN"))
PROOF: Step = (AUTHENTICATE, 1, token(RIGHT))
METADATA_1: Step = (METADATA, 1, struct.pack(">i", 0))
HEARTBEAT_0: Step = (HEARTBEAT, 0, text("g") + struct.pack(">i", 1) + text("m"))


def refused(value: bytes) -> list[Step]:
    """A login with a token that proves nothing, and a try behind it."""
    return [PLAIN_1, (AUTHENTICATE, 1, token(value)), PROOF]


SEQUENCES: dict[str, Sequence[Step]] = {
    "the usual": [VERSIONS_0, PLAIN_1, PROOF, VERSIONS_0, METADATA_1],
    "without versions": [PLAIN_1, PROOF, METADATA_1],
    "a second handshake once known": [PLAIN_1, PROOF, PLAIN_1, METADATA_1],
    "a second token once known": [PLAIN_1, PROOF, PROOF, METADATA_1],
    "the oldest token": [PLAIN_1, (AUTHENTICATE, 0, token(RIGHT)), METADATA_1],
    "bare tokens": [(HANDSHAKE, 0, text("PLAIN")), RIGHT, METADATA_1],
    "a wrong bare token": [(HANDSHAKE, 0, text("PLAIN")), b"\0alice\0wrong", METADATA_1],
    "a request within bare tokens": [(HANDSHAKE, 0, text("PLAIN")), PROOF],
    "a mechanism that is not served": [(HANDSHAKE, 1, text("SCRAM-SHA-256")), PLAIN_1],
    "a mechanism in small letters": [(HANDSHAKE, 1, text("plain"))],
    "no mechanism": [(HANDSHAKE, 1, text(""))],
    "metadata first": [METADATA_1],
    "heartbeat first": [HEARTBEAT_0],
    "a token first": [PROOF],
    "versions after the handshake": [PLAIN_1, VERSIONS_0],
    "heartbeat after the handshake": [PLAIN_1, HEARTBEAT_0, PROOF],
    "metadata after the handshake": [PLAIN_1, METADATA_1, PROOF],
    "a second handshake": [PLAIN_1, PLAIN_1],
    "a version of the handshake that is not served": [(HANDSHAKE, 2, text("PLAIN"))],
    "a version of versions that is not served": [(VERSIONS, 99, b""), VERSIONS_0, PLAIN_1, PROOF],
    "an API that there is not": [(9999, 0, b"")],
    "a wrong password": refused(b"\0alice\0wrong"),
    "a user that there is not": refused(b"\0carol\0wrong"),
    "no password": refused(b"\0alice\0"),
    "no user": refused(b"\0\0secret"),
    "another authorization id": refused(b"bob" + RIGHT),
    "the same authorization id": [PLAIN_1, (AUTHENTICATE, 1, token(b"alice" + RIGHT)), METADATA_1],
    "two parts": refused(b"alice\0secret"),
    "four parts": refused(RIGHT + b"\0x"),
    "an empty token": refused(b""),
    "bytes that are no text": refused(b"\0\xff\xfe\0x"),
    "a long token": refused(b"\0alice\0" + b"x" * 100_000),
    "a frame above sasl.server.max.receive.size": [PLAIN_1, (AUTHENTICATE, 1, token(b"x" * 600_000))],
}


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[int]]:
    """The ports on which Kavka and Apache Kafka ask who their clients are."""
    found = [free_port(), free_port()]
    starts: list[Callable[[Path, dict[str, str]], Server]] = [start_kavka, start_apache_kafka]
    with ExitStack() as stack:
        for start, port in zip(starts, found, strict=True):
            server = start(tmp_path_factory.mktemp("logins"), settings(free_port(), port, free_port()))
            stack.callback(server.kill)
        yield found


def played(port: int, steps: Sequence[Step]) -> list[object]:
    """The code of each answer, a bare answer's length, or that the connection was closed."""
    seen = list[object]()
    with Connection(("127.0.0.1", port)) as connection:
        for step in steps:
            try:
                if isinstance(step, bytes):
                    connection.send_frame(step)
                    answer = connection.receive()
                else:
                    answer = connection.request(*step)
            except (BrokenPipeError, ConnectionResetError):
                answer = None
            if answer is None:
                return [*seen, CLOSED]
            seen.append(code_of(step, answer))
    return seen


def code_of(step: Step, answer: bytes) -> object:
    if isinstance(step, bytes):
        return len(answer)
    return "answered" if step[0] == METADATA else struct.unpack_from(">h", answer, 4)[0]


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_a_sequence_of_frames_gets_the_same_answers_from_both(ports: list[int], sequence: str) -> None:
    kavka, kafka = (played(port, SEQUENCES[sequence]) for port in ports)
    assert kavka == kafka
