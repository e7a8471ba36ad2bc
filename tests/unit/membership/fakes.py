"""A controller that answers as the test says, and an image that moves when the test says so."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.peers import ApiRanges, Peer, Unreachable
from kavka_broker.protocol.message import Message

Answer = Callable[[Message], Awaitable[Message]]


class FakeQuorum:
    """Who leads, by the test's word, and the image."""

    def __init__(self) -> None:
        self.metadata = Metadata()
        self.subscribers: list[Callable[[Sequence[Message]], None]] = []
        self.leader_listeners: list[Callable[[], None]] = []
        self.endpoint: tuple[str, int] | None = ("one", 1)

    def leader_endpoint(self) -> tuple[str, int] | None:
        return self.endpoint

    def elect(self, endpoint: tuple[str, int] | None) -> None:
        self.endpoint = endpoint
        for tell in self.leader_listeners:
            tell()

    def commit(self, *records: Message) -> None:
        for record in records:
            self.metadata.replay(record)
        for tell in self.subscribers:
            tell(records)


class FakePeer:
    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.versions: ApiRanges | None = None
        self.is_closed = False
        self.silences = 0  # each would have ended the connection

    async def ask(self, request: Message, response: type[Any], *, timeout_ms: float) -> Any:
        if self.is_closed:
            raise Unreachable("closed")
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self.answer(request)
        except TimeoutError:
            self.silences += 1
            raise Unreachable(f"no answer within {timeout_ms:.0f} ms") from None

    def close(self) -> None:
        self.is_closed = True


class FakePeers:
    """Nodes by their address; one that is not there refuses."""

    def __init__(self, nodes: dict[tuple[str, int], Answer]) -> None:
        self.nodes = nodes
        self.opened: list[FakePeer] = []

    def to(self, host: str, port: int, *, client_id: str) -> Peer:
        self.opened.append(FakePeer(self.nodes.get((host, port), refuse)))
        return cast(Peer, self.opened[-1])

    async def probe(self, host: str, port: int, timeout_ms: float) -> bool | None:
        return (host, port) in self.nodes


async def refuse(_: Message) -> Message:
    raise Unreachable("refused", refused=True)
