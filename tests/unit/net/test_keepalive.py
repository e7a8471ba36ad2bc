"""A connection whose peer's host is gone ends by the kernel's questions, long before `connections.max.idle.ms`."""

import socket

from kavka_broker.net.acceptor import KEEPALIVE
from kavka_broker.net.connection import Connection
from tests.support.waiting import until
from tests.unit.net.test_turns_of_connections import Served, run


def socket_of(connection: Connection) -> socket.socket:
    found: socket.socket = connection._transport.get_extra_info("socket")
    return found


def test_the_kernel_asks_whether_a_peer_is_there() -> None:
    async def scenario(served: Served) -> None:
        await served.connect()
        await until(lambda: bool(served.connections))
        (connection,) = served.connections
        taken = socket_of(connection)
        assert taken.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        known = {name: getattr(socket, name) for name in KEEPALIVE if hasattr(socket, name)}
        found = {name: taken.getsockopt(socket.IPPROTO_TCP, number) for name, number in known.items()}
        assert found == {name: KEEPALIVE[name] for name in known}
        assert "TCP_KEEPCNT" in known, "Linux and macOS both have it"

    run(scenario)
