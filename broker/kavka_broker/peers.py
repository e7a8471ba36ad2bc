"""Other nodes of the cluster, as this one asks them.

A node asks in Kafka's own protocol, over one connection to each address that it has something to ask of. What it needs
of that connection is small enough for the simulator to stand in for it: a question and its answer, or the news that
there is none. `net.outbound` is the real one.
"""

from collections.abc import Awaitable
from typing import Protocol, TypeVar

from kavka_broker.protocol.message import Message

__all__ = ["Peer", "Peers", "Unreachable"]

R = TypeVar("R", bound=Message)


class Unreachable(Exception):
    """There was no answer: no connection, a lost one, or too long a wait. Whether the request was served is not known.

    `refused`: the other side's system said that nobody listens there, so a process that did listen there is gone.
    """

    def __init__(self, reason: str, *, refused: bool = False) -> None:
        super().__init__(reason)
        self.refused = refused


class Peer(Protocol):
    """One connection to one node: opened by the first question, and anew by the next after a loss."""

    def ask(self, request: Message, response: type[R], *, timeout_ms: float) -> Awaitable[R]:
        """The answer, in the newest version that both sides know. Several questions may be under way; they are sent in
        the order of the calls, each within its call where the connection stands and nobody waits for it. Whoever awaits
        an answer gets Unreachable where there is none; a question that was not answered in time ends the connection.
        """
        ...

    def close(self) -> None:
        """Give the connection up; who still waits for an answer gets Unreachable."""
        ...


class Peers(Protocol):
    """Where connections come from."""

    def to(self, host: str, port: int, *, client_id: str) -> Peer:
        """A connection of the caller's own; nothing is sent yet."""
        ...

    async def probe(self, host: str, port: int, timeout_ms: float) -> bool | None:
        """True: somebody listens there. False: nobody does. None: nothing is known, since nothing came back."""
        ...
