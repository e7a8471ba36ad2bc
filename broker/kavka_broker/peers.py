"""Other nodes of the cluster, as this one asks them.

A node asks in Kafka's own protocol, over one connection to each address that it has something to ask of. What it needs
of that connection is small enough for the simulator to stand in for it: a question and its answer, or the news that
there is none. `net.outbound` is the real one.
"""

from collections.abc import Awaitable, Mapping
from typing import Protocol, TypeVar

from kavka_broker.protocol.message import Message

__all__ = ["ApiRanges", "Peer", "Peers", "Unreachable"]

R = TypeVar("R", bound=Message)
#: The oldest and the newest version of each API, by its key.
ApiRanges = Mapping[int, tuple[int, int]]


class Unreachable(Exception):
    """No answer: no connection, a lost one, or too long a wait. Whether the request was served is not known.

    `refused`: the other side's system said that no process listens there, so one that did listen is gone.
    """

    def __init__(self, reason: str, *, refused: bool = False) -> None:
        super().__init__(reason)
        self.refused = refused


class Peer(Protocol):
    """A connection to one node: opened by the first request, and again by the next after a loss."""

    @property
    def versions(self) -> ApiRanges | None:
        """Return what the node served when the connection was opened last; None before."""
        ...

    def ask(self, request: Message, response: type[R], *, timeout_ms: float) -> Awaitable[R]:
        """Return the answer, in the newest version that both sides know. Several requests may be under way; they are
        sent in the order of the calls, each within its call where the connection stands and no request waits for it.
        The answer raises Unreachable where there is none; a request not answered in time ends the connection.
        """
        ...

    def close(self) -> None:
        """Close the connection; requests that still wait for an answer get Unreachable."""
        ...


class Peers(Protocol):
    """A source of connections."""

    def to(self, host: str, port: int, *, client_id: str) -> Peer:
        """Return a connection of the caller's own; nothing is sent yet."""
        ...

    async def probe(self, host: str, port: int, timeout_ms: float) -> bool | None:
        """Return True where a process listens, False where none does, None where nothing came back."""
        ...
