"""Connections take turns by their client, however many it has."""

import asyncio
from itertools import count
from struct import pack
from types import SimpleNamespace
from typing import Any

from kavka_broker.api.broker import Client as Requester
from kavka_broker.core.fairness import QUANTUM_NS
from kavka_broker.net.limits import Limits
from kavka_broker.net.listener import Listener
from kavka_broker.runtime.clock import SystemClock
from kavka_broker.timers import Timers

CONNECTIONS = 8
REQUESTS = 100
READINGS_PER_QUANTUM = 4
BEGUN_MAX = 200
"""A turn begins two or three requests; without turns 64 of each connection are begun before others are read."""


class Handlers:
    """Stands in for the dispatcher: a request is the name of its client, and its answer."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    def begin(self, frame: memoryview, _peer: object, _keep: object) -> Any:
        body = bytes(frame)
        client_id = body.decode().rstrip(".")
        self.begun.append(client_id)
        return SimpleNamespace(
            api=SimpleNamespace(pipelined=False, name=""),
            client=Requester(0, client_id, 0, "", ""),
            pieces=[pack(">i", len(body)), body],
            waiting=None,
            counted_bytes=0,
            is_of_peer=False,
        )

    def sent(self) -> None:
        """It measures no time."""


def framed(client_id: str) -> bytes:
    return pack(">i", 8) + client_id.ljust(8, ".").encode()


async def scenario() -> None:
    handlers, clock, limits = Handlers(), SystemClock(), Limits()
    timers = Timers(clock, asyncio.get_running_loop())
    limits.turns.now_ns = count(step=QUANTUM_NS // READINGS_PER_QUANTUM).__next__
    listener = Listener("PLAINTEXT", handlers, limits, clock, timers)  # type: ignore[arg-type]
    port = await listener.bind("127.0.0.1", 0)
    await listener.serve()
    reader, light = await asyncio.open_connection("127.0.0.1", port)
    flooding = [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(CONNECTIONS)]
    for writer in flooding:
        writer.write(framed("many") * REQUESTS)
    while "many" not in handlers.begun:
        await asyncio.sleep(0)
    for _ in range(5):
        before = len(handlers.begun)
        light.write(framed("light"))
        await reader.readexactly(12)
        assert len(handlers.begun) - before <= BEGUN_MAX, "it waited for more than some turns of the other"
    assert handlers.begun.count("many") < CONNECTIONS * REQUESTS
    for writer in (light, *flooding):
        writer.close()
    await listener.close()


def test_a_client_with_one_connection_does_not_wait_for_all_of_one_with_many() -> None:
    asyncio.run(scenario())
