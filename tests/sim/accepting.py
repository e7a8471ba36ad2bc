"""How a simulated broker listens: the loop makes its connections, and none of them ever has to wait for room."""

import asyncio

from kavka_broker.net.acceptor import Admission


class LoopAcceptor:
    """Listens by the loop's own server."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._server: asyncio.Server

    async def bind(self, host: str | None, port: int) -> int:
        """Take the address without serving it yet; its port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._admission.admit, host, port, start_serving=False)
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Take connections from now on."""
        await self._server.start_serving()

    def look_again(self) -> None:
        """Nobody waits."""

    async def close(self) -> None:
        """Stop listening."""
        self._server.close()
