"""Those who connect where a login is asked for, and do not log in.

| rule | broken where |
|---|---|
| SilenceEnds | a connection without a login is kept for longer than `kavka.login.timeout.ms`, or closed sooner |

They come once all is quiet: a node that is paused may be late.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from tests.sim.clients import Client
from tests.sim.node import INTERNAL_PORT, Node

TIMEOUT_SECONDS: Final = 30.0  # as it is by default
LATE_SECONDS: Final = 1.0
CONNECT_SECONDS_MAX: Final = 5.0


class Listening(asyncio.Protocol):
    """Says nothing, and notes when it is over."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(asyncio.get_running_loop().time())


class Silent(Client):
    """Comes to each node."""

    async def run(self) -> None:
        """Nothing, before all is quiet."""

    async def judge(self, nodes: Sequence[Node]) -> list[str]:
        """What is wrong at each of these nodes."""
        return [what for found in await asyncio.gather(*map(self._at, nodes)) for what in found]

    async def _at(self, node: Node) -> list[str]:
        began, life = self.loop.time(), node.lives
        async with asyncio.timeout(CONNECT_SECONDS_MAX):
            transport, listening = await self.loop.create_connection(Listening, node.host, INTERNAL_PORT)
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS + LATE_SECONDS):
                lasted = await listening.ended - began
        except TimeoutError:
            return [f"SilenceEnds: {node.process} keeps a connection without a login"]
        finally:
            transport.close()
        if lasted < TIMEOUT_SECONDS and node.lives == life:
            return [f"SilenceEnds: {node.process} has closed a connection without a login after {lasted:.1f} s"]
        return []
