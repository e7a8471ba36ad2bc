"""A search for garbage finds little when connections come and go; it would hold the loop to look at thousands."""

import asyncio
import gc
import socket
from pathlib import Path

from kavka_broker.net.acceptor import COLLECT_AFTER
from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from tests.support.in_process import running
from tests.support.waiting import until

CONNECTIONS = 20
BODY = encode_request_header(RequestHeader(18, 3, 1, "guest")) + encode(ApiVersionsRequest("guest", "1"), 3)
FRAME = len(BODY).to_bytes(4, "big") + BODY


def test_a_connection_that_has_ended_is_freed_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            loop, port = asyncio.get_running_loop(), inside.server.advertised[0].port

            async def come_and_go() -> None:
                with socket.socket() as guest:  # which leaves nothing itself, as a transport would
                    guest.setblocking(False)
                    await loop.sock_connect(guest, ("127.0.0.1", port))
                    await loop.sock_sendall(guest, FRAME)
                    assert await loop.sock_recv(guest, 4)
                await until(lambda: not any(listener.connections for listener in inside.server.addresses))

            await come_and_go()
            gc.collect()
            gc.disable()
            try:
                for _ in range(CONNECTIONS):
                    await come_and_go()
                assert gc.collect() < CONNECTIONS
            finally:
                gc.enable()

    asyncio.run(scenario())


def test_young_objects_are_searched_for_garbage_while_as_many_connections_go_as_come(tmp_path: Path) -> None:
    searches: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            searches.append(info["generation"])

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            port = inside.server.advertised[0].port
            for _ in range(2 * COLLECT_AFTER):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                await writer.wait_closed()
            await until(lambda: len(searches) == 2)

    gc.disable()  # so that Python does not search by itself
    gc.callbacks.append(note)
    try:
        asyncio.run(scenario())
    finally:
        gc.callbacks.remove(note)
        gc.enable()
    assert searches == [1, 1]
