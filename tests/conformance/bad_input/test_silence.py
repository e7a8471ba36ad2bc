"""Peers that stop in the middle: they cost a connection, not the broker, and not forever."""

import struct
from collections.abc import Callable

import pytest

from tests.conformance.clients.records import RECORDS
from tests.conformance.clients.test_confluent_kafka import consume, create, produce
from tests.support.servers import Server, resident_bytes
from tests.support.wire import METADATA, Connection, brokers_registered, header

IDLE_MS = 1_500


@pytest.mark.parametrize(
    "half",
    [b"\x00\x00", struct.pack(">i", 100), struct.pack(">i", 100) + header(METADATA, 1)],
    ids=["half a size", "a size", "half a request"],
)
def test_half_a_request_then_silence_ends_with_the_idle_time(start: Callable[..., Server], half: bytes) -> None:
    server = start(connections_max_idle_ms=str(IDLE_MS))
    with Connection(server.address) as silent:
        silent.send(half)
        assert brokers_registered(server.address) == 1
        assert silent.is_closed()
    assert brokers_registered(server.address) == 1


def test_many_halves_do_not_keep_others_from_their_records(server: Server, name: str) -> None:
    create(server, name)
    claim = struct.pack(">i", 50_000_000) + header(METADATA, 1)
    with_all_open = [Connection(server.address) for _ in range(200)]
    try:
        before = resident_bytes(server.pid)
        for connection in with_all_open:
            connection.send(claim)
        produce(server, name)
        assert sorted(consume(server, name, name, len(RECORDS))) == sorted(RECORDS)
        grown = resident_bytes(server.pid) - before
        assert grown < 200_000_000, "a claimed size is not a reason to take its memory: 200 claims are 10 GB"
    finally:
        for connection in with_all_open:
            connection.close()
