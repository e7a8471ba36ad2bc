"""Logins that do not hold for good, over raw frames: Kavka and Apache Kafka say for how long, renew them, refuse the
same renewals and close the same connections (KIP-368).
"""

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conformance.security.test_logins_agree import (
    AUTHENTICATE,
    CLOSED,
    HANDSHAKE,
    METADATA_1,
    PLAIN_1,
    PROOF,
    RIGHT,
    VERSIONS_0,
    Step,
    code_of,
    text,
    token,
)
from tests.conformance.security.test_plain import PASSWORDS, jaas
from tests.support.servers import Server, free_port, start_apache_kafka, start_kavka
from tests.support.wire import Connection

pytestmark = pytest.mark.java

LIFETIMES_MS = {"LONG": 3_600_000, "SHORT": 1}
SCRAM = "SCRAM-SHA-256"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
END = "the end of a short session"
WAIT_SECONDS = 0.1
BARE_0: Step = (HANDSHAKE, 0, text("PLAIN"))
SCRAM_1: Step = (HANDSHAKE, 1, text(SCRAM))
PROOF_0: Step = (AUTHENTICATE, 0, token(RIGHT))
PROOF_OF_BOB: Step = (AUTHENTICATE, 1, token(b"\0bob\0" + PASSWORDS["bob"].encode()))
WRONG: Step = (AUTHENTICATE, 1, token(b"\0alice\0wrong"))

SEQUENCES: dict[str, tuple[str, Sequence[Step | str]]] = {
    "a login that holds": ("LONG", [PLAIN_1, PROOF, METADATA_1, VERSIONS_0]),
    "an oldest token, which is not told": ("LONG", [PLAIN_1, PROOF_0, METADATA_1]),
    "a login whose end has come": ("SHORT", [PLAIN_1, PROOF, END, METADATA_1]),
    "versions behind the end": ("SHORT", [PLAIN_1, PROOF, END, VERSIONS_0]),
    "a token behind the end": ("SHORT", [PLAIN_1, PROOF, END, PROOF]),
    "the end of one that is not told": ("SHORT", [PLAIN_1, PROOF_0, END, METADATA_1]),
    "the end of bare tokens": ("SHORT", [BARE_0, RIGHT, END, METADATA_1]),
    "a renewal before the end": ("LONG", [PLAIN_1, PROOF, PLAIN_1, PROOF, METADATA_1]),
    "a renewal behind the end": ("SHORT", [PLAIN_1, PROOF, END, PLAIN_1, PROOF, END, METADATA_1]),
    "a renewal by bare tokens": ("LONG", [PLAIN_1, PROOF, BARE_0, RIGHT, METADATA_1]),
    "a renewal of bare tokens": ("LONG", [BARE_0, RIGHT, PLAIN_1, PROOF, METADATA_1]),
    "a renewal by the oldest token": ("LONG", [PLAIN_1, PROOF, PLAIN_1, PROOF_0, METADATA_1]),
    "a renewal by another user": ("LONG", [PLAIN_1, PROOF, PLAIN_1, PROOF_OF_BOB, METADATA_1]),
    "a renewal by a wrong password": ("LONG", [PLAIN_1, PROOF, PLAIN_1, WRONG, METADATA_1]),
    "a renewal by bytes that are no token": ("LONG", [PLAIN_1, PROOF, PLAIN_1, (AUTHENTICATE, 1, token(b""))]),
    "a renewal by another mechanism": ("LONG", [PLAIN_1, PROOF, SCRAM_1, (AUTHENTICATE, 1, token(b"n,,n=alice,r=x"))]),
    "a renewal by another mechanism, then versions": ("LONG", [PLAIN_1, PROOF, SCRAM_1, VERSIONS_0]),
    "a renewal by a mechanism that is not served": ("LONG", [PLAIN_1, PROOF, (HANDSHAKE, 1, text("GSSAPI")), PROOF]),
    "versions within a renewal": ("LONG", [PLAIN_1, PROOF, PLAIN_1, VERSIONS_0]),
    "metadata within a renewal": ("LONG", [PLAIN_1, PROOF, PLAIN_1, METADATA_1]),
    "a second handshake within a renewal": ("LONG", [PLAIN_1, PROOF, PLAIN_1, PLAIN_1]),
    "a token without a handshake": ("LONG", [PLAIN_1, PROOF, PROOF, METADATA_1]),
    "a long token within a renewal": ("LONG", [PLAIN_1, PROOF, PLAIN_1, (AUTHENTICATE, 1, token(b"x" * 600_000))]),
}


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, int]]]:
    """By listener, the ports of Kavka and those of Apache Kafka."""
    starts: list[Callable[[Path, dict[str, str]], Server]] = [start_kavka, start_apache_kafka]
    found = [{name: free_port() for name in (*LIFETIMES_MS, "PLAINTEXT", "CONTROLLER")} for _ in starts]
    with ExitStack() as stack:
        for start, own in zip(starts, found, strict=True):
            server = start(tmp_path_factory.mktemp("sessions"), settings(own))
            stack.callback(server.kill)
        yield found


def settings(ports: dict[str, int]) -> dict[str, str]:
    users = jaas(**{f"user_{name}": password for name, password in PASSWORDS.items()}).replace("\\", "\\\\")
    own = [f"listener.name.{name.lower()}" for name in LIFETIMES_MS]
    lifetimes = {f"listener.name.{name.lower()}.plain": str(ms) for name, ms in LIFETIMES_MS.items()}
    return {
        # The first is what the tests' own tools use.
        "listeners": ",".join(
            f"{name}://127.0.0.1:{ports[name]}" for name in ("PLAINTEXT", *LIFETIMES_MS, "CONTROLLER")
        ),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        + ",".join(f"{name}:SASL_PLAINTEXT" for name in LIFETIMES_MS),
        "sasl.enabled.mechanisms": f"PLAIN,{SCRAM}",
        **{f"{name}.plain.sasl.jaas.config": users for name in own},
        **{f"{name}.{SCRAM.lower()}.sasl.jaas.config": f"{SCRAM_MODULE} required;" for name in own},
        **{f"{name}.connections.max.reauth.ms": text for name, text in lifetimes.items()},
    }


def played(port: int, steps: Sequence[Step | str]) -> list[object]:
    """The code of each answer and the lifetime that it says, or that the connection was closed."""
    seen = list[object]()
    with Connection(("127.0.0.1", port)) as connection:
        for step in steps:
            if isinstance(step, str):
                time.sleep(WAIT_SECONDS)
                continue
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
            seen.append(said(step, answer))
    return seen


def said(step: Step, answer: bytes) -> object:
    """The code of an answer; with the error message and the lifetime where it is about a token."""
    if isinstance(step, bytes) or step[0] != AUTHENTICATE:
        return code_of(step, answer)
    code, length = struct.unpack_from(">hh", answer, 4)
    words = answer[8 : 8 + length] if length > 0 else b""
    return code, words, struct.unpack(">q", answer[-8:])[0] if step[1] > 0 else None


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_a_session_is_as_long_and_ends_as_with_apache_kafka(ports: list[dict[str, int]], sequence: str) -> None:
    listener, steps = SEQUENCES[sequence]
    kavka, kafka = (played(own[listener], steps) for own in ports)
    assert kavka == kafka
