"""Frames of a client that is about to log in, in any order and with anything in them, to a broker in this process.

Each is answered, or the connection closed; and no request is answered before a user has been proved.
"""

import asyncio
from collections import Counter
from pathlib import Path
from random import Random
from struct import pack
from typing import Final

from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header, read_response_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kavka_broker.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kavka_broker.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kavka_broker.request.registry import APIS
from tests.property.hostile.parsers import PLAIN, changed
from tests.support.in_process import running
from tests.unit.authentication.scripted import FIRST, LAST

METADATA, AUTHENTICATE = 3, 36
ANSWER_SECONDS_MAX: Final = 60
STEPS_MAX: Final = 6
MECHANISMS: Final = ("PLAIN", "PLAIN", "PLAIN", "SCRAM-SHA-256", "GSSAPI", "")
MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SETTINGS: Final = {
    "listeners": "CLIENTS://127.0.0.1:0,NODES://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,NODES:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "NODES",
    "listener.name.clients.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.clients.plain.sasl.jaas.config": f'{MODULE} required user_alice="alice-secret";',
    "connection.failed.authentication.delay.ms": "0",
}


def step(chance: Random) -> tuple[Message, int]:
    """One request and its version: of a login, or another."""
    kind = chance.choice((ApiVersionsRequest, SaslHandshakeRequest, SaslAuthenticateRequest, MetadataRequest))
    version = chance.randint(*APIS[kind.API_KEY or 0].versions)
    if kind is SaslHandshakeRequest:
        return SaslHandshakeRequest(chance.choice(MECHANISMS)), version
    if kind is SaslAuthenticateRequest:
        return SaslAuthenticateRequest(changed(chance.choice((PLAIN, PLAIN, FIRST, LAST)), chance)), version
    return kind(), version


def frames(number: int) -> list[tuple[int, int, bytes]]:
    """What a client sends on one connection: often an honest beginning, then anything. Key, version and bytes."""
    chance = Random(f"any login {number}")
    honest: list[tuple[Message, int]] = [(ApiVersionsRequest("a", "1"), 3), (SaslHandshakeRequest("PLAIN"), 1)]
    if chance.random() < 0.5:
        honest.append((SaslAuthenticateRequest(PLAIN), 1))
    steps = honest[chance.randrange(2) :] if chance.random() < 0.6 else []
    steps += [step(chance) for _ in range(chance.randint(1, STEPS_MAX))]
    found = []
    for message, version in steps:
        assert message.API_KEY is not None
        frame = encode_request_header(RequestHeader(message.API_KEY, version, 7, "any")) + encode(message, version)
        found.append((message.API_KEY, version, changed(frame, chance) if chance.random() < 0.05 else frame))
    return found


async def play(directory: Path, numbers: range) -> Counter[str]:
    """Open a connection for each number; how many requests were answered, connections closed, and users proved."""
    counts: Counter[str] = Counter()
    async with running(directory, SETTINGS) as inside:
        port = next(address.port for address in inside.server.advertised if address.name == "CLIENTS")
        for number in numbers:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                async with asyncio.timeout(ANSWER_SECONDS_MAX):
                    await converse(reader, writer, frames(number), counts)
            except (asyncio.IncompleteReadError, OSError):
                counts["closed"] += 1
            finally:
                writer.close()
    return counts


async def converse(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    requests: list[tuple[int, int, bytes]],
    counts: Counter[str],
) -> None:
    """Ask one after the other until the broker closes the connection."""
    is_known = False
    for key, version, frame in requests:
        writer.write(pack(">i", len(frame)) + frame)
        if frame[:4] != pack(">hh", key, version):  # it asks for something else now
            writer.write_eof()
            await reader.read()
            counts["spoilt"] += 1
            return
        size = int.from_bytes(await reader.readexactly(4), "big")
        answer = memoryview(await reader.readexactly(size))
        counts["answered"] += 1
        if key == METADATA:
            _, body = read_response_header(key, version, answer)
            # Where a token is due, Apache Kafka too answers with nothing in it, and closes.
            assert is_known or not decode(MetadataResponse, version, answer[body:]).brokers
            counts["metadata"] += is_known
        if key == AUTHENTICATE:
            _, body = read_response_header(key, version, answer)
            told = decode(SaslAuthenticateResponse, version, answer[body:])
            if not told.error_code:
                assert PLAIN in frame, "a user was proved by another token"
                is_known = True
                counts["proved"] += 1
