"""What a node of the quorum uses of its process. Tests and the simulation give their own."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from kavka_broker.interfaces import Clock
from kavka_broker.loop.timers import Timers
from kavka_broker.peers import Peer, Peers, Unreachable
from kavka_broker.protocol.errors import InvariantViolation

RunBlocking = Callable[[Callable[[], None]], Awaitable[None]]


class NoPeers:
    """Peers of a node that is the only voter: it asks no other node."""

    def to(self, host: str, port: int, *, client_id: str) -> Peer:
        """Raises Unreachable: a node without a quorum has no way to reach others."""
        raise Unreachable(f"{host}:{port}: {client_id} has no way to reach others")

    async def probe(self, host: str, port: int, timeout_ms: float) -> bool | None:
        return None


def _raise(error: BaseException) -> None:
    raise InvariantViolation(f"the metadata log cannot go on: {error}") from error


@dataclass(frozen=True, slots=True)
class Ports:
    """Time, other nodes, threads and chance, and how the process ends."""

    clock: Clock
    timers: Timers | None = None  # of the loop that the node starts in
    peers: Peers = field(default_factory=NoPeers)
    run_blocking: RunBlocking = asyncio.to_thread
    random_bytes: Callable[[int], bytes] = os.urandom
    crash: Callable[[BaseException], None] = _raise

    def random(self, low: int, high: int) -> int:
        """Draw a number, both bounds included."""
        return low + int.from_bytes(self.random_bytes(8), "big") % (high - low + 1)
